"""What was declared and is contradicted by the data, in words: the fallback of every decision while it stays so."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats
from stagewise.kernels.promise import BASELINE, CEILING, DISPUTED, KINDS, NOISE, Promise
from stagewise.kernels.radius import Belief
from stagewise.kernels.watch import SAFE_TAKEN, SQUARES, TAKEN, least_noise, surely_noise
from stagewise.problem.thresholds import Thresholds


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


def regressed(
    constraint: int, promise: Promise, belief: Belief, tally: Floats, known: Floats, neglected: float
) -> Evidence:
    """Return what a regression has seen of a cost (see `watch.contradiction`)."""
    signals = belief.noise.size
    signal = signals - promise.limits.size + constraint
    squares = surely_noise(tally[SQUARES + signal], belief.norm_bound[signal], belief.ridge, neglected)
    safe_count = float(tally[SAFE_TAKEN])
    stray = float(tally[SQUARES + signals + signal]) / max(safe_count, 1.0)
    least = least_noise(squares, tally[TAKEN], promise.alarm)
    return Evidence(float(tally[TAKEN]), float(belief.noise[signal]), least, safe_count, float(known[signal]) + stray)


def words_for(code: int, thresholds: Thresholds, ceilings: Floats, evidence: Evidence) -> str:
    """Return the sentence for a kernel's code; ceilings are signed."""
    what, j = subject(code)
    name, sign, value = thresholds.names[j], float(thresholds.signs[j]), float(thresholds.values[j])
    side = "above" if sign > 0.0 else "below"
    if what == CEILING:
        why = f"what was seen puts a mean {name!r} {side} {sign * ceilings[j]:g}, the declared bound (cost_bound)"
    elif what == NOISE:
        why = (
            f"the noise of {name!r} is declared {evidence.noise:g}, and the residuals of {evidence.outcomes:.0f} "
            f"outcomes need {evidence.least:.3g} or more; it, or another declared value, is not true"
        )
    elif what == BASELINE and thresholds.safe is not None:
        why = (
            f"the safe action's {name!r} is declared {thresholds.safe[j]:g}, and {evidence.safe_count:.0f} outcomes "
            f"seen there average {sign * evidence.safe_mean:.3g}, which it does not explain"
        )
    else:
        why = f"what was seen puts the safe action's own {name!r} {side} its threshold {value:g}"
    return f"{why}; no bound can be trusted, so the safe action is played"
