"""What was declared and is contradicted by the data, in words: the fallback of every decision while it stays so."""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import APIECE, ARMS, CELLS, DECLARED, HOME, RIDGE, ROVING, SPACE, Part, roving_action
from stagewise.kernels.promise import ALARM, BASELINE, CEILING, DISPUTED, KINDS, MODEL, NOISE, ceiling_of, has
from stagewise.kernels.signals.apiece import piece_of
from stagewise.kernels.signals.arms import declared_of_arms, shown_at
from stagewise.kernels.signals.cells import tally_of
from stagewise.kernels.signals.ridge import declared_of_ridge, frame_of, summed
from stagewise.kernels.signals.space import neglected_in
from stagewise.kernels.signals.watch import least_noise, surely_noise
from stagewise.models.part import parts_in
from stagewise.problem.thresholds import Thresholds
from stagewise.problem.words import average, several

HAS, START, STATED, SUMMED = named(has), named(roving_action), named(declared_of_ridge), named(summed)
SHOWN, STATED_OF_ARMS = named(shown_at), named(declared_of_arms)
NEGLECTED, FRAME, PIECE, TALLY = named(neglected_in), named(frame_of), named(piece_of), named(tally_of)


class Evidence(NamedTuple):
    """What was seen of one cost, signed, beside what was declared of it."""

    outcomes: float  # how many
    noise: float  # declared
    least: float  # what the residuals need at least
    safe_count: float  # outcomes at the safe action itself
    safe_mean: float  # their mean


def subject(code: int) -> tuple[int, int]:
    """Return what a kernel's code disputes, and of which constraint."""
    return (-code - DISPUTED) % KINDS, (-code - DISPUTED) // KINDS


def regressed(part: Part, settings: Floats, memory: Floats, signal: int) -> Evidence:
    """Return what a regression has seen of one of its signals."""
    seen, declared = SUMMED(part), STATED(part, settings)
    neglected = NEGLECTED(part, memory) if part.kind == SPACE else 0.0
    squares = surely_noise(seen.squares[signal], declared.bound[signal], FRAME(part, settings).ridge, neglected)
    safe_count = float(seen.at_safe)
    stray = float(seen.strays[signal]) / max(safe_count, 1.0)
    least = least_noise(squares, seen.taken, settings[ALARM])
    told = float(declared.noise[signal]), least, safe_count, float(declared.known[signal]) + stray
    return Evidence(float(seen.taken), *told)


def pulls_of(part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
    """Return what the pulls of arms have shown of one of their signals."""
    shown, noise = SHOWN(part, memory, int(layout[HOME]), signal), STATED_OF_ARMS(part, settings).noise[signal]
    least = least_noise(shown.squares, shown.pulls, settings[ALARM])
    return Evidence(float(shown.pulls), float(noise), least, float(shown.at_arm), float(shown.mean))


def seen_of_safe(part: Part, layout: Ints, settings: Floats, memory: Floats) -> Evidence:
    """Return what was seen of the safe one of actions in a context."""
    home = int(layout[HOME])
    if part.kind == CELLS:
        tally = TALLY(part, memory, home, settings)
        return Evidence(float(tally.pulls), 0.0, 0.0, float(tally.pulls), float(tally.mean))
    piece = PIECE(part, memory, home)
    seen = regressed(piece, settings, memory, 0)
    mean = float(SUMMED(piece).strays[0]) / max(seen.outcomes, 1.0)
    return seen._replace(safe_count=seen.outcomes, safe_mean=mean)


def evidence_of(part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
    """Return what a part has seen of one of its signals; a model that keeps no such sums has seen nothing."""
    if part.kind == ARMS:
        return pulls_of(part, layout, settings, memory, signal)
    if part.kind in (RIDGE, SPACE):
        return regressed(part, settings, memory, signal)
    if part.kind in (APIECE, CELLS):
        return seen_of_safe(part, layout, settings, memory)
    return Evidence(0.0, 0.0, 0.0, 0.0, 0.0)


def explained(code: int, thresholds: Thresholds, layout: Ints, settings: Floats, memory: Floats, bounds: Floats) -> str:
    """Return the sentence for a kernel's code, in the units of these thresholds; `bounds` are those of the round."""
    constraint, seen = subject(code)[1], Evidence(0.0, 0.0, 0.0, 0.0, 0.0)  # a model may dispute nothing by itself
    for part in parts_in(layout, memory):
        signal = 1 + constraint - part.first
        if 0 <= signal < part.signals:
            seen = evidence_of(part, layout, settings, memory, signal)
    if HAS(layout, ROVING) and subject(code)[0] == BASELINE:
        return words_for_start(constraint, thresholds, float(START(layout, settings).costs[constraint]), seen)
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


def words_for_start(constraint: int, thresholds: Thresholds, most: float, seen: Evidence) -> str:
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
