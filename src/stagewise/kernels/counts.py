"""Arms: means of what was seen, and how far the truth may lie from them, kept arm by arm."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel

ANYTIME, UNION, UNION_ANYTIME = 0, 1, 2


class Tally(NamedTuple):
    """What is remembered of K arms."""

    pulls: Floats  # (K,)
    widths: Floats  # (K,) the radius of a 1-sub-Gaussian mean after so many pulls
    means: Floats  # (1 + m, K) of the reward and of every cost


@kernel
def unit_radius(kind: int, pulls: float, confidence: float) -> float:
    """Return the radius of the mean of n 1-sub-Gaussian numbers; `confidence` is log 1/δ'. No pull counts as one.

    ANYTIME:        √((1 + 1/n) (log(1 + n) + 2 log 1/δ') / n)        all n at once, two-sided (Robbins' normal mixture)
    UNION:          √(2 log(1/δ') / n)                                δ' already divided by the horizon
    UNION_ANYTIME:  √(2 log(n (n + 1)/δ') / n)                        Σ 1/n(n+1) = 1
    """
    n = max(pulls, 1.0)
    if kind == ANYTIME:
        return math.sqrt((1.0 + 1.0 / n) * (math.log1p(n) + 2.0 * confidence) / n)
    if kind == UNION:
        return math.sqrt(2.0 * confidence / n)
    return math.sqrt(2.0 * (math.log(n * (n + 1.0)) + confidence) / n)


@kernel
def named_tally(constraints: int, arms: int, memory: Floats) -> Tally:
    """Name the memory: pulls | widths | means."""
    return Tally(memory[:arms], memory[arms : 2 * arms], memory[2 * arms :].reshape(1 + constraints, arms))


@kernel
def start_tally(kind: int, confidence: float, blind: float, constraints: int, arms: int, memory: Floats) -> None:
    """Write the memory of nothing seen: means of 0, widths of at least `blind`, which reaches every a-priori bound."""
    memory[:] = 0.0
    named_tally(constraints, arms, memory).widths[:] = max(unit_radius(kind, 0.0, confidence), blind)


@kernel
def absorb(arm: int, values: Floats, kind: int, confidence: float, arms: int, memory: Floats) -> None:
    """Take in the reward and the costs (1 + m,) of one pull."""
    count_pull(named_tally(values.size - 1, arms, memory), arm, values, kind, confidence)


@kernel
def count_pull(tally: Tally, arm: int, values: Floats, kind: int, confidence: float) -> None:
    """Do the same where the memory is named."""
    tally.pulls[arm] += 1.0
    tally.widths[arm] = unit_radius(kind, tally.pulls[arm], confidence)
    for signal in range(values.size):
        tally.means[signal, arm] += (values[signal] - tally.means[signal, arm]) / tally.pulls[arm]
