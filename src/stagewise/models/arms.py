"""Arms without features: means, and intervals that hold for all of them at all times."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels import counts
from stagewise.kernels.compile import Floats

RADII = ("hoeffding", "kl", "bernstein", "paper")
RANGED = ("kl", "bernstein")  # for outcomes in [0, 1] only


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsModel:
    """What is assumed of K arms whose every pull shows a reward and m costs."""

    arms: int  # K
    signals: int  # 1 + m
    noise: Floats  # (1 + m,) R: outcomes are R-sub-Gaussian
    lows: Floats  # (1 + m,) the lower end of each signal's range, where one is promised
    kind: int  # counts.ANYTIME, UNION, UNION_ANYTIME, KL or BERNSTEIN
    confidence: float  # log 1/δ' of one interval
    blind: float  # what the radius of an arm never pulled must reach

    @property
    def radius(self) -> counts.Radius:
        """How the intervals are made, as the kernels read it."""
        return counts.Radius(self.kind, self.confidence, self.noise, self.lows)

    def numbers(self) -> Floats:
        """Return the settings that kernels read, up to what is known of the safe arm."""
        return np.concatenate([[self.confidence], self.noise, self.lows])

    def start(self) -> Floats:
        """Return the memory of nothing seen."""
        memory = np.empty(counts.tally_size(self.kind, self.signals - 1, self.arms))
        counts.start_tally(self.radius, self.blind, self.signals - 1, self.arms, memory)
        return memory


def union_kind(radius: str, horizon: int | None) -> int:
    """Return how the interval holds for all numbers of pulls at once."""
    if radius == "kl":
        return counts.KL
    if radius == "bernstein":
        return counts.BERNSTEIN
    if horizon is not None:
        return counts.UNION
    return counts.UNION_ANYTIME if radius == "paper" else counts.ANYTIME


def confidence_of(kind: int, delta: float, arms: int, signals: int, horizon: int | None) -> float:
    """Return log 1/δ' where all intervals together fail with probability δ.

    δ' = δ/(2(m+1)KT) with a horizon, since a union bound takes each side and each number of pulls on its own;
    δ' = δ/(2(m+1)K) where Σ 1/n(n+1) does the latter; δ/((m+1)K) for the others, which are two-sided by themselves.
    """
    share = delta / (arms * signals)
    if kind == counts.UNION:
        return math.log(2.0 * float(horizon or 1) / share)
    return math.log(2.0 / share) if kind == counts.UNION_ANYTIME else math.log(1.0 / share)


def lows_of(signs: Any) -> Floats:
    """Return where the range [0, 1] of every signal begins once it is signed: −1 for a limit from below."""
    return np.concatenate([[0.0], np.where(np.asarray(signs) < 0.0, -1.0, 0.0)])
