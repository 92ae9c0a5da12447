"""Arms: means of what was seen, and an interval around every one of them, kept arm by arm."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.interval import Interval, bernstein_interval, kl_interval

ANYTIME, UNION, UNION_ANYTIME, KL, BERNSTEIN = 0, 1, 2, 3, 4


class Radius(NamedTuple):
    """How the intervals are made."""

    kind: int  # ANYTIME, UNION or UNION_ANYTIME around the mean; KL or BERNSTEIN for numbers in a range of length 1
    confidence: float  # log 1/δ' of one interval
    noise: Floats  # (1 + m,) R of every signal; not read where a range is promised
    lows: Floats  # (1 + m,) the lower end of every signal's range, where one is promised


class Tally(NamedTuple):
    """What is remembered of K arms."""

    pulls: Floats  # (K,)
    means: Floats  # (1 + m, K) of the reward and of every cost
    halves: Floats  # (1 + m, K) half the length of the interval,
    centres: Floats  # (1 + m, K) and its middle: the means themselves where it is symmetric
    squares: Floats  # (1 + m, K) summed squares of deviations from the mean; only BERNSTEIN has them
    spread: Floats  # (2 + m,) pulls of all arms, and for each signal the summed squares of all deviations


@kernel
def blocks(kind: int) -> int:
    """Return how many tables (1 + m, K) are kept."""
    if kind == KL:
        return 3
    return 4 if kind == BERNSTEIN else 2


@kernel
def tally_size(kind: int, constraints: int, arms: int) -> int:
    """Return the length of the memory."""
    return (1 + blocks(kind) * (1 + constraints)) * arms + 2 + constraints


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
def named_tally(kind: int, constraints: int, arms: int, memory: Floats) -> Tally:
    """Name the memory: pulls | means | halves | centres | squares | spread; centres and squares where they are kept."""
    size, signals = (1 + constraints) * arms, 1 + constraints
    end = memory.size - 2 - constraints
    tables = memory[arms:end].reshape(blocks(kind) * signals, arms)
    centres = 2 * signals if kind in (KL, BERNSTEIN) else 0
    squares = memory[arms + 3 * size : end] if kind == BERNSTEIN else memory[:0]
    return Tally(
        memory[:arms],
        tables[:signals],
        tables[signals : 2 * signals],
        tables[centres : centres + signals],
        squares.reshape(squares.size // arms, arms),
        memory[end:],
    )


@kernel
def start_tally(radius: Radius, blind: float, constraints: int, arms: int, memory: Floats) -> None:
    """Write the memory of nothing seen: an interval that reaches `blind`, every a-priori bound, or the whole range."""
    memory[:] = 0.0
    tally = named_tally(radius.kind, constraints, arms, memory)
    for signal in range(1 + constraints):
        if radius.kind in (KL, BERNSTEIN):
            tally.halves[signal, :] = 0.5
            tally.centres[signal, :] = radius.lows[signal] + 0.5
        else:
            width = unit_radius(radius.kind, 0.0, radius.confidence)
            tally.halves[signal, :] = max(radius.noise[signal] * width, blind)


@kernel
def count_pull(tally: Tally, arm: int, values: Floats, radius: Radius) -> None:
    """Take in the reward and the costs (1 + m,) of one pull."""
    tally.pulls[arm] += 1.0
    tally.spread[0] += 1.0
    pulls, kind = tally.pulls[arm], radius.kind
    width = unit_radius(kind, pulls, radius.confidence) if kind < KL else 0.0
    for signal in range(values.size):
        before = tally.means[signal, arm]
        mean = before + (values[signal] - before) / pulls
        tally.means[signal, arm] = mean
        tally.spread[1 + signal] += (values[signal] - before) * (values[signal] - mean)
        if kind < KL:
            tally.halves[signal, arm] = radius.noise[signal] * width
            continue
        low = radius.lows[signal]
        if kind == KL:
            interval = kl_interval(pulls, mean - low, radius.confidence)
        else:
            tally.squares[signal, arm] += (values[signal] - before) * (values[signal] - mean)
            interval = bernstein_interval(pulls, mean - low, tally.squares[signal, arm], radius.confidence)
        write_interval(tally, signal, arm, low, interval)


@kernel
def write_interval(tally: Tally, signal: int, arm: int, low: float, interval: Interval) -> None:
    """Keep the middle and half the length of an interval in [0, 1], moved to where the signal's range begins."""
    tally.centres[signal, arm] = low + 0.5 * (interval.low + interval.high)
    tally.halves[signal, arm] = 0.5 * (interval.high - interval.low)
