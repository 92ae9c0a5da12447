"""Whether realised costs are above their limit: an e-process for each limit, which trips the desk by itself.

Every decision's expected cost is at most τ, whatever came before it. So for each bet f in (0, 1) the wealth

    W_n(f) = Π_{i ≤ n} (1 + f (x_i − τ)/τ),   x_i in [0, 1], in the order of the decisions

is a non-negative supermartingale that starts at 1, and so is the average over bets. By Ville's inequality it ever
reaches 1/α with probability at most α, if all is as promised. At-least limits are the same with 1 − x and 1 − τ. Where
versions of the problem move a limit, τ is the one a decision was made under: nothing else was promised of it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.policies.problem import Problem

DRY = "feedback"
BETS = np.array([0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625])


class Trip:
    """The wealth of one limit.

    >>> trip = Trip(0.02, level=0.01)
    >>> trip.take(np.zeros(100)), trip.take(np.ones(10))
    (False, True)
    """

    def __init__(self, threshold: float, level: float) -> None:
        self.threshold, self.level = threshold, level
        self.wealth = np.zeros(BETS.size)  # logarithms
        self.count, self.total = 0, 0.0
        self.tripped = False

    def take(self, costs: Floats, thresholds: Floats | None = None) -> bool:
        """Take in costs in [0, 1] in their order; say whether the test is lost, now or before.

        `thresholds`: what was promised of each, where that is not the same for all.
        """
        limits = np.full(costs.size, self.threshold) if thresholds is None else thresholds
        told = (limits > 0.0) & (limits < 1.0)
        costs, limits = costs[told], limits[told]
        if not costs.size:
            return self.tripped
        steps = np.log1p(np.outer((costs - limits) / limits, BETS))
        paths = np.cumsum(np.vstack([self.wealth, steps]), axis=0)[1:]
        self.wealth = paths[-1].copy()
        self.count, self.total = self.count + costs.size, float(np.cumsum(np.append(self.total, costs))[-1])
        most = paths.max(axis=1)
        richest = most + np.log(np.mean(np.exp(paths - most[:, None]), axis=1))
        self.tripped = self.tripped or bool(richest.max() >= -math.log(self.level))
        return self.tripped

    def plain(self) -> list[float]:
        """Return it for a snapshot."""
        return [*self.wealth.tolist(), float(self.count), self.total, float(self.tripped)]

    def restore(self, plain: list[float]) -> None:
        """Go on from what `plain` wrote down."""
        *wealth, count, total, tripped = plain
        self.wealth, self.count, self.total, self.tripped = np.array(wealth), int(count), total, bool(tripped)


class Trips:
    """The wealth of every limit of a problem, and which trips stand in the log."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.limits = {name: Trip(*told) for name, told in levels_of(problem).items()}
        self.moved: list[tuple[int, list[float]]] = []  # from which decision on which limits were promised
        self.reasons: set[str] = set()  # kinds of trips that stand in the log

    def promise(self, place: int, problem: Problem) -> None:
        """Hold decisions from this one on against the limits of another version."""
        self.moved.append((place, [limit for limit, _ in levels_of(problem).values()]))

    def take(self, j: int, costs: Floats, places: Ints) -> None:
        """Take in costs of the j-th limit in [0, 1], of the decisions at these places."""
        promised = None
        if self.moved:  # the limit that held when each of these decisions was made
            versions = np.searchsorted([first for first, _ in self.moved], places, side="right") - 1
            promised = np.array([limits[j] for _, limits in self.moved])[versions]
        list(self.limits.values())[j].take(costs, promised)

    def revive(self) -> None:
        """Begin anew with what tripped: a person let go of the kill switch."""
        fresh = Trips(self.problem).limits
        self.limits = {name: fresh[name] if trip.tripped else trip for name, trip in self.limits.items()}
        self.reasons = set()

    def tripped(self) -> str | None:
        """Return why the desk should stop by itself, if it should."""
        for name, trip in self.limits.items():
            if trip.tripped:
                seen = trip.total / trip.count
                return (
                    f"{name!r} averages {seen:.4g} of its range over {trip.count:,} decisions, above its limit beyond "
                    f"chance (level {trip.level:.2g})"
                )
        return None

    def was_tripped(self, why: str) -> bool:
        """Say whether the log holds a trip of this kind: a person who revives the desk after it is not overruled."""
        return subject(why) in self.reasons

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        told = {name: trip.plain() for name, trip in self.limits.items()}
        return {"trips": told, "moved": self.moved, "reasons": sorted(self.reasons)}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Go on from what `plain` wrote down."""
        self.moved, self.reasons = [(first, limits) for first, limits in plain["moved"]], set(plain["reasons"])
        for name, trip in self.limits.items():
            trip.restore(plain["trips"][name])


def subject(why: str) -> str:
    """Return what a trip is about: a limit by name, or feedback."""
    return why.split(" averages ")[0] if " averages " in why else DRY


def levels_of(problem: Problem) -> dict[str, tuple[float, float]]:
    """Return each limit in [0, 1] with its level: all of them together trip by chance with probability δ at most."""
    policy = problem.policy()
    told = {}
    for j, name in enumerate(problem.limits):
        value = float(policy.thresholds.values[j])
        told[name] = (value if policy.thresholds.signs[j] > 0 else 1.0 - value), problem.delta / len(problem.limits)
    return told
