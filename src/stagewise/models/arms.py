"""Arms without features: means, and radii that hold for all of them at all times."""

import math
from dataclasses import dataclass

import numpy as np

from stagewise.kernels import counts
from stagewise.kernels.compile import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsModel:
    """What is assumed of K arms whose every pull shows a reward and m costs."""

    arms: int  # K
    signals: int  # 1 + m
    noise: Floats  # (1 + m,) R: outcomes are R-sub-Gaussian
    kind: int  # counts.ANYTIME, UNION or UNION_ANYTIME
    confidence: float  # log 1/δ' of one radius
    blind: float  # what the radius of an arm never pulled must reach

    def start(self) -> Floats:
        """Return the memory of nothing seen."""
        memory = np.empty((2 + self.signals) * self.arms)
        width = self.blind / float(self.noise.min())
        counts.start_tally(self.kind, self.confidence, width, self.signals - 1, self.arms, memory)
        return memory

    def absorb(self, memory: Floats, arm: int, values: Floats) -> None:
        """Take in one pull, in place."""
        counts.absorb(arm, values, self.kind, self.confidence, self.arms, memory)


def union_kind(radius: str, horizon: int | None) -> int:
    """Return how the radius holds for all numbers of pulls at once."""
    if horizon is not None:
        return counts.UNION
    return counts.UNION_ANYTIME if radius == "paper" else counts.ANYTIME


def confidence_of(kind: int, delta: float, arms: int, signals: int, horizon: int | None) -> float:
    """Return log 1/δ' where all radii together fail with probability δ.

    δ' = δ/(2(m+1)KT) with a horizon, since a union bound takes each side and each number of pulls on its own;
    δ' = δ/(2(m+1)K) where Σ 1/n(n+1) does the latter; δ/((m+1)K) for the mixture, which is two-sided by itself.
    """
    share = delta / (arms * signals)
    if kind == counts.UNION:
        return math.log(2.0 * float(horizon or 1) / share)
    return math.log(2.0 / share) if kind == counts.UNION_ANYTIME else math.log(1.0 / share)
