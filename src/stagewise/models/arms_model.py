"""Model of arms without features: an interval around every arm's mean."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import ARMS
from stagewise.kernels.models.arm_means import ANYTIME, BERNSTEIN, KL, RATES, UNION, UNION_ANYTIME, unit_radius
from stagewise.kernels.models.rate_interval import LOG_REST
from stagewise.models.arms_diagnostics import ArmsDiagnostics
from stagewise.models.diagnostics import register
from stagewise.models.model_block import ModelBlockSpec, build_known_values, split_regressions

register(ARMS, ArmsDiagnostics())

RANGED = {"kl": KL, "bernstein": BERNSTEIN, "rates": RATES}  # radii for outcomes in [0, 1]
ArmRadius = Literal["hoeffding", "kl", "rates", "bernstein", "paper"]
RADII = get_args(ArmRadius)
SMALLEST_RATE = 1e-6  # lowest reference rate
UPPER_SHARE = 0.8  # of δ, for RATES: share of the costs' upper ends, which safety needs; the rest is for the other ends


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsModel:
    """The assumptions about K arms. The first signal is the reward."""

    arms: int
    signals: int  # 1 + m
    noise: Floats  # (1 + m,) R; not read where a range is declared
    lows: Floats  # (1 + m,) where every signal's range begins, where one is declared
    kind: int
    confidence: float  # log 1/δ' of one interval
    blind: float  # the least radius of an arm without pulls
    reward: float | None  # at the safe arm; None: unknown
    costs: Floats | None  # (m,) at the safe arm; None: unknown
    ends: Floats | None = None  # for RATES (3, 1 + m): reference rates, log 1/δ' of lower and of upper ends
    separate_models: bool = False  # whether every signal has a block of its own

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the blocks: one, or one each for reward and costs if only one of them is known at the safe arm."""
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in split_regressions(self.signals, *known, self.separate_models):
            yield self.build_block(first, last, anchored)

    def build_block(self, first: int, last: int, known: bool) -> ModelBlockSpec:
        """Return the intervals of signals `first` to `last`."""
        values = build_known_values(self.reward, self.costs, self.signals)
        ends = () if self.ends is None else tuple(self.ends)
        rows = (self.noise, self.lows, values if known else np.zeros(values.size), *ends)
        numbers = np.concatenate([[self.confidence, self.blind], *(row[first:last] for row in rows)])
        return ModelBlockSpec((ARMS, first, last - first, self.arms, self.kind, int(known), 0, 0, 0), numbers)

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


def get_interval_kind(radius: str, horizon: int | None) -> int:
    """Return the kind of interval, which is valid for all numbers of pulls at once."""
    if radius in RANGED:
        return RANGED[radius]
    if horizon is not None:
        return UNION
    return UNION_ANYTIME if radius == "paper" else ANYTIME


def compute_confidence(kind: int, delta: float, arms: int, signals: int, horizon: int | None) -> float:
    """Return log 1/δ' such that all intervals together fail with probability at most δ.

    δ' = δ/(2(m+1)KT) with a horizon, because a union bound counts each side and each number of pulls; δ' = δ/(2(m+1)K)
    where Σ 1/n(n+1) covers the numbers of pulls; δ/((m+1)K) for the others, which are two-sided.
    """
    share = delta / (arms * signals)
    if kind == UNION:
        return math.log(2.0 * float(horizon or 1) / share)
    return math.log(2.0 / share) if kind == UNION_ANYTIME else math.log(1.0 / share)


def split_delta(costs: int) -> tuple[float, float]:
    """Return the share of δ of each cost's upper ends, and of each signal's other ends, for RATES."""
    upper = UPPER_SHARE if costs > 0 else 0.0
    return upper / max(costs, 1), (1.0 - upper) / (costs + 2)


def build_rate_ends(delta: float, costs: int, arms: Floats, expected: Floats) -> Floats:
    """Return the settings of RATES for every signal: the reference rate, log 1/δ' of lower and of upper ends.

    δ is shared by the costs, and a signal's ends share theirs among its `arms` (1 + m,). A reference rate is at most ½,
    where the mixture is nearly that of "kl".
    """
    upper, other = split_delta(costs)
    shares = np.array([np.full(arms.size, other), [other, *np.full(arms.size - 1, upper)]])
    return np.vstack([np.clip(expected, SMALLEST_RATE, 0.5), np.log(np.maximum(arms, 1.0) / (delta * shares))])


def compute_lows(signs: Any) -> Floats:
    """Return where the range [0, 1] of every signal begins once it is signed: −1 for a limit from below."""
    return np.concatenate([[0.0], np.where(np.asarray(signs) < 0.0, -1.0, 0.0)])
