"""LC-LUCB and ROFUL keep the contract in convex sets too."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.contracts.policy import Case, RaysContract

from stagewise import LCLUCB, ROFUL, AtLeast, BallSet, BoxSet, EllipsoidSet, Outcome, PolytopeSet, SafeAction

REWARD = [0.6, 0.4, -0.3]
COSTS = [[0.5, -0.3, 0.4], [-0.2, 0.6, 0.1], [0.3, 0.2, 0.6]]
ROUNDS = 20  # a decision in a convex set takes milliseconds


@dataclass(frozen=True)
class ConvexWorld:
    """A set in one round, the same a little larger in the next, and signals that are linear."""

    shape: str
    safe: np.ndarray  # (d,)
    parameters: np.ndarray  # (1 + m, d)
    noise: float = 0.05

    def actions(self, round_: int) -> Any:
        size = 0.5 + 0.1 * (round_ % 3)
        if self.shape == "ball":
            return BallSet(2.0 * size, None)
        if self.shape == "ellipsoid":
            return EllipsoidSet(size * np.diag([1.0, 0.6, 0.8]), [0.1, 0.0, 0.0])
        if self.shape == "box":
            return BoxSet(np.full(3, -size), np.full(3, size))
        return PolytopeSet(1.5 * size * np.vstack([np.eye(3), -np.eye(3)]))

    def eligible(self, round_: int) -> set[int]:
        return {0}

    def means(self, action: Any) -> np.ndarray:
        return self.parameters @ action

    def outcome(self, action: Any, round_: int) -> Outcome:
        noise = self.noise * np.random.default_rng([2, round_]).normal(size=len(self.parameters))
        reward, *costs = (self.means(action) + noise).tolist()
        return Outcome(reward, costs)


def cases() -> Iterator[Case]:
    """Yield each policy in each set once, with one limit at the origin or three elsewhere."""
    for kind, shape, several in [
        (LCLUCB, "ball", True),
        (LCLUCB, "polytope", False),
        (ROFUL, "ellipsoid", False),
        (ROFUL, "box", True),
    ]:
        parameters = np.array([REWARD, *COSTS[: 3 if several else 1]])
        safe = np.array([0.2, 0.1, 0.1]) if several else np.zeros(3)
        reward, *costs = (parameters @ safe).tolist()
        limits = {"spend": costs[0] + 0.4}
        if several:
            limits |= {"wait": costs[1] + 0.5, "clicks": AtLeast(costs[2] - 0.45)}
        index = SafeAction(features=safe, reward=reward, cost=dict(zip(limits, costs, strict=True)))
        known = {"safe_action": index, "threshold": limits, "noise": 0.05, "mean_cost_bound": 2.0}
        settings = {**known, "ridge": 0.1, "directions": 16}
        name = f"{kind.__name__}, {shape}, {len(limits)} limits"
        yield Case(name, partial(kind, **settings), ConvexWorld(shape, safe, parameters), length=ROUNDS)


QUICK = ["LCLUCB, ball, 3 limits", "ROFUL, box, 3 limits"]
SLOW = [pytest.param(case, marks=pytest.mark.slow, id=str(case)) for case in cases() if str(case) not in QUICK]


@pytest.mark.parametrize("case", [*(case for case in cases() if str(case) in QUICK), *SLOW], ids=str)
class TestConvex(RaysContract):
    def test_the_action_is_the_step_on_its_ray(self, case: Case) -> None:
        """The ray ends on the boundary of the set."""
        for one in case.rounds:
            decision, safe = one.decision, case.world.safe
            actions = one.actions.with_dimension(3)
            assert decision.probabilities is None
            assert 0.0 <= decision.step_size <= 1.0
            assert actions.contains(decision.action)
            assert (decision.action_index == 0) == (decision.message is None)
            if decision.step_size > 0.0:
                (far,) = actions.reach(safe, (decision.action - safe)[np.newaxis])
                assert decision.step_size * far == pytest.approx(1.0, rel=1e-6)

    def test_the_gap_is_certified_and_not_negative(self, case: Case) -> None:
        assert all(0.0 <= one.decision.solver_gap < np.inf for one in case.rounds)

    def test_something_is_dared(self, case: Case) -> None:
        assert sum(one.decision.message is None for one in case.rounds) >= ROUNDS // 2
