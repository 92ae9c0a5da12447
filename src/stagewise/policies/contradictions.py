"""What was declared and is contradicted by the data, in words: the fallback of every decision while it stays so."""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import DECLARED, HOME, ROVING, roving_action
from stagewise.kernels.promise import BASELINE, CEILING, DISPUTED, KINDS, MODEL, NOISE, ceiling_of, has
from stagewise.models.answers import Evidence, answers_of
from stagewise.models.part import parts_in
from stagewise.problem.thresholds import Thresholds
from stagewise.problem.words import average, several

HAS, ROVING_ACTION = named(has), named(roving_action)


def subject(code: int) -> tuple[int, int]:
    """Return what a kernel's code disputes, and of which constraint."""
    return (-code - DISPUTED) % KINDS, (-code - DISPUTED) // KINDS


def explained(code: int, thresholds: Thresholds, layout: Ints, settings: Floats, memory: Floats, bounds: Floats) -> str:
    """Return the sentence for a kernel's code, in the units of these thresholds; `bounds` are those of the round."""
    constraint, seen = subject(code)[1], Evidence()  # a model may dispute nothing by itself
    for part in parts_in(layout, memory):
        signal = 1 + constraint - part.first
        if 0 <= signal < part.signals:
            seen = answers_of(part).evidence(part, layout, settings, memory, signal)
    if HAS(layout, ROVING) and subject(code)[0] == BASELINE:
        return words_for_round(constraint, thresholds, float(ROVING_ACTION(layout, settings).costs[constraint]), seen)
    if HAS(layout, DECLARED) and subject(code)[0] == BASELINE:
        home = bounds[1 + constraint, :, int(layout[HOME])]
        return words_for_user(constraint, thresholds, float(home[CENTRE] - home[HALF]), seen)
    return words_for(code, thresholds, ceiling_of(layout, settings, constraint), seen)


def words_for_user(constraint: int, thresholds: Thresholds, low: float, seen: Evidence) -> str:
    """Return the sentence for a safe cost declared for every user; the least it can be for one is signed."""
    name, in_unit = thresholds.names[constraint], thresholds.in_unit
    side, bound = ("at most", "or more") if thresholds.signs[constraint] > 0.0 else ("at least", "or less")
    overall = average(seen.safe_count, f"{in_unit(constraint, seen.safe_mean):.3g}")
    return (
        f"the safe action's {name!r} is declared {side} {thresholds.told[constraint]:g} for every user, and what was "
        f"seen puts it at {in_unit(constraint, low):.3g} {bound} for one of them (over all users {overall}); no bound "
        "can be trusted, so the safe action is played"
    )


def words_for_round(constraint: int, thresholds: Thresholds, most: float, seen: Evidence) -> str:
    """Return the sentence for a safe action of the round; what it costs at most is signed."""
    name, sign = thresholds.names[constraint], float(thresholds.signs[constraint])
    side, bound = ("at most", "above") if sign > 0.0 else ("at least", "below")
    told = f"{side} {thresholds.in_unit(constraint, most):g}"
    return (
        f"a round's safe action is declared to have a mean {name!r} of {told}, "
        f"and what was seen in {several(seen.outcomes)}, {seen.safe_count:.0f} of them at safe actions, puts one "
        f"{bound} what was declared; no bound can be trusted, so the safe action is played"
    )


def words_for(code: int, thresholds: Thresholds, ceiling: float, evidence: Evidence) -> str:
    """Return the sentence for a kernel's code, in the units of these thresholds; the ceiling is signed."""
    what, j = subject(code)
    name, value, bound = thresholds.names[j], float(thresholds.values[j]), thresholds.bound_name
    side = "above" if thresholds.signs[j] > 0.0 else "below"
    if what == CEILING:
        most = f"{thresholds.in_unit(j, ceiling):g}"
        why = f"what was seen puts a mean {name!r} {side} {most}, the declared bound ({bound})"
    elif what == NOISE and bound == "cost_bound":
        why = (
            f"the noise of {name!r} is declared {evidence.noise:g}, and the residuals of {several(evidence.outcomes)} "
            f"need {evidence.least:.3g} or more; it, or another declared value, is not true"
        )
    elif what == BASELINE and not math.isnan(thresholds.told[j]):
        seen = average(evidence.safe_count, f"{thresholds.in_unit(j, evidence.safe_mean):.3g}", " seen there")
        why = f"the safe action's {name!r} is declared {thresholds.told[j]:g}, and {seen}, which it does not explain"
    elif what in (MODEL, NOISE):
        why = f"no linear mean of {name!r} within what was declared (norm_bound, {bound}) explains what was seen"
    else:
        why = f"what was seen puts the safe action's own {name!r} {side} its threshold {value:g}"
    return f"{why}; no bound can be trusted, so the safe action is played"
