"""The witness for policies on rays: problems with data, what the textbook makes of them, and a search over steps."""

import pickle
from typing import Any, NamedTuple

import numpy as np
from tests.engine.textbook import Fit, fitted, radius_of, unit_rows

from stagewise import PolicyState, RandomKey, SafeAction
from stagewise.engine.compile import Floats
from stagewise.policies.policy import PlayedAction
from stagewise.records.decision import Decision

READY: dict[Any, tuple[Any, PolicyState]] = {}
BASELINES = ["origin", "known", "reward unknown", "cost unknown", "unknown"]


class Problem(NamedTuple):
    """Settings of a linear policy, rays, and what was seen so far."""

    settings: dict[str, Any]
    targets: Floats  # (M, d)
    actions: Floats  # (t, d)
    values: Floats  # (t, 1 + m)

    def ready(self, kind: Any, **settings: Any) -> tuple[Any, PolicyState]:
        """Return a policy of this kind and its memory of the data, learned once however often it is asked for."""
        given = {**self.settings, **settings}
        key = (kind, pickle.dumps(given), self.actions.tobytes(), self.values.tobytes())
        if key not in READY:
            policy = kind(**given)
            state = policy.start()
            for action, values in zip(self.actions, self.values, strict=True):
                state = policy.learn_in_place(state, PlayedAction(action), values)
            READY[key] = policy, state
        return READY[key]


def random_problem(
    seed: int, baseline: str, constraints: int = 1, dimension: int = 4, rays: int = 5, scale: float = 1.0
) -> Problem:
    """Draw a problem whose costs are of the size `scale`, with none to some hundred rounds of data.

    Where the safe cost is unknown the safe action was played often enough to be left.
    """
    random = np.random.default_rng(seed)
    safe = (
        np.zeros(dimension) if baseline == "origin" else unit_rows(random, 1, dimension)[0] * random.uniform(0.4, 0.9)
    )
    units = np.array([1.0, *[scale] * constraints])
    truths = (
        unit_rows(random, 1 + constraints, dimension) * random.uniform(0.4, 0.9, (1 + constraints, 1)) * units[:, None]
    )
    truths[0] *= 1.0 if truths[0] @ safe >= 0.0 else -1.0
    at_safe = truths @ safe
    targets = unit_rows(random, rays, dimension) * random.uniform(0.5, 1.0, (rays, 1))
    rounds = int(random.choice([0, 3, 30, 200]))
    steps = random.uniform(0.0, 1.0, (rounds, 1))
    explored = (1.0 - steps) * safe + steps * targets[random.integers(rays, size=rounds)]
    repeated = 100 if baseline in ("cost unknown", "unknown") else 0
    actions = np.vstack([np.tile(safe, (repeated, 1)), explored])
    settings = {
        "safe_action": SafeAction(
            features=safe,
            reward=None if baseline in ("reward unknown", "unknown") else float(at_safe[0]),
            cost=None if baseline in ("cost unknown", "unknown") else at_safe[1:],
        ),
        "threshold": at_safe[1:] + scale * random.uniform(0.1, 0.4, constraints),
        "noise": 0.03 * units,
        "norm_bound": units,
        "ridge": 0.05,
        "mean_cost_bound": None,
    }
    return Problem(
        settings,
        targets,
        actions,
        actions @ truths.T + 0.03 * units * random.normal(size=(len(actions), 1 + constraints)),
    )


class Reading(NamedTuple):
    """The bounds of docs/theory/rays.md at any action, from the data alone."""

    safe: Floats
    reward: Fit
    costs: list[Fit]
    radii: Floats  # (1 + m,)
    scale: float  # α_c
    thresholds: Floats
    ceilings: Floats
    shortfall: float  # the largest plausible 1 − r₀

    def pessimistic_cost(self, actions: Floats) -> Floats:
        """Return <x, μ̂> + α_c β ‖x‖, one row a cost."""
        return np.array(
            [fit.estimates(actions) + self.scale * beta * fit.widths(actions) for fit, beta in self.each_cost()]
        )

    def cheapest(self, actions: Floats) -> Floats:
        return np.array(
            [fit.estimates(actions) - self.scale * beta * fit.widths(actions) for fit, beta in self.each_cost()]
        )

    def each_cost(self) -> zip:
        return zip(self.costs, self.radii[1:], strict=True)

    @property
    def slack(self) -> Floats:
        return self.thresholds - np.minimum(self.pessimistic_cost(self.safe), self.ceilings)

    @property
    def lift(self) -> float:
        """(α_r − 1) β_c by the theorem's choice of α_r."""
        return float(np.max((1.0 + self.scale) * self.shortfall / self.slack * self.radii[1:]))

    def optimistic_reward(self, actions: Floats, lift: float | None = None) -> Floats:
        """Return <x, θ̂> + β_r ‖x‖ + (α_r − 1) β_c ‖x‖."""
        bonus = self.radii[0] * self.reward.widths(actions)
        more = (self.lift if lift is None else lift) * self.costs[0].widths(actions)
        return self.reward.estimates(actions) + bonus + more

    def along(self, target: Floats, steps: Any) -> Floats:
        steps = np.asarray(steps)[..., np.newaxis]
        return (1.0 - steps) * self.safe + steps * target

    def dearest_along(self, target: Floats, steps: Any) -> Floats:
        """Return the smaller of two true bounds: at the point itself, and between the ray's ends clipped a priori."""
        first = np.minimum(self.pessimistic_cost(self.safe), self.ceilings)[:, np.newaxis]
        last = np.minimum(self.pessimistic_cost(target), self.ceilings)[:, np.newaxis]
        steps = np.atleast_1d(steps)
        return np.minimum(self.pessimistic_cost(self.along(target, steps)), first + steps * (last - first))

    def is_safe(self, target: Floats, steps: Any) -> np.ndarray:
        return (self.dearest_along(target, steps) <= self.thresholds[:, np.newaxis]).all(axis=0)

    def is_plausible(self, target: Floats, steps: Any) -> np.ndarray:
        costs = self.cheapest(self.along(target, np.atleast_1d(steps)))
        return (costs <= self.thresholds[:, np.newaxis]).all(axis=0)


def reading_of(problem: Problem, **settings: Any) -> Reading:
    """Return what the textbook makes of a problem's data under these further settings."""
    given = {
        "radius": "joint",
        "delta": 0.05,
        "cost_confidence_scale": 1.0,
        "split_delta": True,
        **problem.settings,
        **settings,
    }
    safe, m = given["safe_action"].features, len(given["threshold"])
    costs = given["safe_action"].cost
    known = [given["safe_action"].reward, *(costs if costs is not None else [None] * m)]
    fits = [fitted(safe, known[k], given["ridge"], problem.actions, problem.values[:, k]) for k in range(1 + m)]
    radii = np.empty(1 + m)
    for k, fit in enumerate(fits):
        bound, value = given["norm_bound"][k], known[k]
        if value is not None and safe.any() and given["radius"] != "paper":
            bound = np.sqrt(bound**2 - (value / np.linalg.norm(safe)) ** 2)
        delta = given["delta"] / (1 + m if given["split_delta"] else 1)
        reach = float(len(problem.actions))
        radii[k] = radius_of(given["radius"], fit, given["noise"][k], bound, given["ridge"], delta, reach)
    shortfall = 1.0 - float(fits[0].estimates(safe))
    if known[0] is None:
        shortfall = max(0.0, shortfall + float(radii[0] * fits[0].widths(safe)))
    ceiling = np.inf if given["mean_cost_bound"] is None else given["mean_cost_bound"]
    ceilings = np.full(m, ceiling)
    return Reading(
        safe, fits[0], fits[1:], radii, given["cost_confidence_scale"], given["threshold"], ceilings, shortfall
    )


def longest(allowed: Any, target: Floats) -> float:
    """Return the longest step up to which a search over 2001 steps, refined three times, finds all allowed."""
    low, width = 0.0, 1.0
    for _ in range(4):
        steps = np.linspace(low, min(low + width, 1.0), 2001)
        fine = allowed(target, steps)
        last = len(steps) - 1 if fine.all() else max(int(np.argmin(fine)) - 1, 0)
        low, width = float(steps[last]), float(steps[1] - steps[0])
    return low


def decided(kind: Any, problem: Problem, targets: Any = None, **more: Any) -> Decision:
    """Return what a policy decides on a problem's rays, or on other ones."""
    policy, state = problem.ready(kind, **more)
    return policy.decide(state, problem.targets if targets is None else targets, RandomKey())
