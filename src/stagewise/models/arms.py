"""Arms without features: an interval around every arm's mean."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import ARMS
from stagewise.kernels.signals.arms import ANYTIME, BERNSTEIN, KL, RATES, UNION, UNION_ANYTIME, unit_radius
from stagewise.kernels.signals.rates import LOG_REST
from stagewise.models.answers import register
from stagewise.models.part import Modelled, known_at_safe, regressions
from stagewise.models.pulled import ArmsAnswers

register(ARMS, ArmsAnswers())

RANGED = {"kl": KL, "bernstein": BERNSTEIN, "rates": RATES}  # radii for outcomes in [0, 1]
ArmRadius = Literal["hoeffding", "kl", "rates", "bernstein", "paper"]
RADII = get_args(ArmRadius)
SMALLEST_RATE = 1e-6  # that is expected
UPPER_SHARE = 0.8  # of δ, by RATES, for the upper ends of the costs, on which safety rests; the rest is for other ends


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsModel:
    """What is assumed of K arms. The first signal is the reward."""

    arms: int
    signals: int  # 1 + m
    noise: Floats  # (1 + m,) R; not read where a range is promised
    lows: Floats  # (1 + m,) where every signal's range begins, where one is promised
    kind: int
    confidence: float  # log 1/δ' of one interval
    blind: float  # what the radius of an arm never pulled must reach
    reward: float | None  # at the safe arm; None: unknown
    costs: Floats | None  # (m,) at the safe arm; None: unknown
    ends: Floats | None = None  # by RATES (3, 1 + m): the rates that are expected, log 1/δ' of lower and of upper ends
    apart: bool = False  # whether every signal has a part of its own

    def parts(self) -> Iterator[Modelled]:
        """Yield the parts: the reward, and the costs where one of them is known at the safe arm and the other not."""
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in regressions(self.signals, *known, self.apart):
            yield self.part(first, last, anchored)

    def part(self, first: int, last: int, known: bool) -> Modelled:
        """Return the intervals of signals `first` to `last`."""
        values = known_at_safe(self.reward, self.costs, self.signals)
        ends = () if self.ends is None else tuple(self.ends)
        rows = (self.noise, self.lows, values if known else np.zeros(values.size), *ends)
        numbers = np.concatenate([[self.confidence, self.blind], *(row[first:last] for row in rows)])
        return Modelled((ARMS, first, last - first, self.arms, self.kind, int(known), 0, 0, 0), numbers)

    def longest_halves(self, count: int) -> Floats:
        """Return the largest half-width that an interval can have after 0, 1, …, count − 1 pulls."""
        pulls = np.maximum(np.arange(count, dtype=np.float64), 1.0)
        if self.kind in (KL, RATES):  # Pinsker, and the redundancy of the mixture: ½ log n + log 2
            budget = self.confidence - LOG_REST if self.kind == RATES else self.confidence
            halves = np.sqrt((budget + 0.5 * np.log(pulls) + math.log(2.0)) / (2.0 * pulls))
            return np.minimum(halves, 0.5)
        if self.kind == BERNSTEIN:  # a variance is at most n/4(n − 1)
            spent, others = self.confidence + np.log(4.0 * pulls * (pulls + 1.0)), np.maximum(pulls - 1.0, 1e-300)
            return np.minimum(np.sqrt(spent / (2.0 * others)) + 7.0 * spent / (3.0 * others), 0.5)
        halves = float(self.noise.max()) * np.array([unit_radius(self.kind, n, self.confidence) for n in pulls])
        halves[0] = max(halves[0], self.blind)
        return halves


def union_kind(radius: str, horizon: int | None) -> int:
    """Return how the interval holds for all numbers of pulls at once."""
    if radius in RANGED:
        return RANGED[radius]
    if horizon is not None:
        return UNION
    return UNION_ANYTIME if radius == "paper" else ANYTIME


def confidence_of(kind: int, delta: float, arms: int, signals: int, horizon: int | None) -> float:
    """Return log 1/δ' where all intervals together fail with probability δ.

    δ' = δ/(2(m+1)KT) with a horizon, since a union bound takes each side and each number of pulls on its own;
    δ' = δ/(2(m+1)K) where Σ 1/n(n+1) does the latter; δ/((m+1)K) for the others, which are two-sided by themselves.
    """
    share = delta / (arms * signals)
    if kind == UNION:
        return math.log(2.0 * float(horizon or 1) / share)
    return math.log(2.0 / share) if kind == UNION_ANYTIME else math.log(1.0 / share)


def end_shares(costs: int) -> tuple[float, float]:
    """Return which share of δ the upper ends of each cost have by RATES, and each signal's other ends."""
    upper = UPPER_SHARE if costs > 0 else 0.0
    return upper / max(costs, 1), (1.0 - upper) / (costs + 2)


def ends_of(delta: float, costs: int, arms: Floats, expected: Floats) -> Floats:
    """Return what RATES reads of every signal: the expected rate, log 1/δ' of lower and of upper ends.

    δ is shared by so many costs, and a signal's ends share theirs among its `arms` (1 + m,). An expected rate is at
    most ½, where the mixture is that of "kl", or nearly.
    """
    upper, other = end_shares(costs)
    shares = np.array([np.full(arms.size, other), [other, *np.full(arms.size - 1, upper)]])
    return np.vstack([np.clip(expected, SMALLEST_RATE, 0.5), np.log(np.maximum(arms, 1.0) / (delta * shares))])


def lows_of(signs: Any) -> Floats:
    """Return where the range [0, 1] of every signal begins once it is signed: −1 for a limit from below."""
    return np.concatenate([[0.0], np.where(np.asarray(signs) < 0.0, -1.0, 0.0)])
