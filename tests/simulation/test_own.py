"""Policies and worlds of someone's own: judged by what they say, and never played as something else."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.reports.guarantee import check_assumptions, compute_regret_bound
from stagewise.simulation.oracle import build_oracle

RAYS = sw.RaySet([[1.0, 0.0], [0.0, 1.0]])
LINEAR: dict[str, Any] = {"reward": [0.6, 0.8], "cost": [0.8, 0.6], "actions": RAYS, "noise": 0.1}
POLICY = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.1)
ARMS = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.1, 0.6])
OPB = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)


class Flattering(sw.LinearWorld):
    """Costs look smaller than they are."""

    def outcome(self, action: Any, draw: sw.RandomKey) -> sw.Outcome:
        seen = super().outcome(action, draw)
        return sw.Outcome(seen.reward, np.asarray(seen.cost) - 10.0)


class Squared(sw.LinearWorld):
    """Its means are none of a linear world's."""

    def means(self, action: Any) -> Any:
        return super().means(action) ** 2


class Own:
    """The arms of another world, behind the five names alone."""

    costs = 1

    def __init__(self, actions: Any = ARMS.actions) -> None:
        self.offered = actions

    def actions_in(self, draw: sw.RandomKey) -> Any:
        return self.offered

    def means(self, action: Any) -> Any:
        return ARMS.means(action)

    def outcome(self, action: Any, draw: sw.RandomKey) -> sw.Outcome:
        return ARMS.outcome(action, draw)

    def description(self) -> dict[str, Any]:
        return {"kind": "Own"}


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Plays one arm, whatever happens."""

    safe_action: sw.SafeAction = OPB.safe_action
    threshold: float = 0.2
    arm: int = 2
    is_optimistic: bool = False

    def start(self) -> None:
        return None

    def decide(self, state: None, actions: Any, draw: sw.RandomKey) -> sw.Decision:
        limit = np.array([self.threshold])
        return sw.Decision(self.arm, self.arm, 1.0, None, 0.0, limit, limit, None, draw.round)

    def learn(self, state: None, decision: sw.Decision, outcome: sw.Outcome) -> None:
        return None


def test_a_subclass_of_a_world_is_played_as_it_is() -> None:
    result = sw.simulate(replace(POLICY, check_assumptions=False), Flattering(**LINEAR), rounds=50)
    assert result.manifest["backend"] == "python"
    assert result.violations[0] > 25
    assert sw.simulate(POLICY, sw.LinearWorld(**LINEAR), rounds=50).violations[0] == 0


class Closing(sw.LinearWorld):
    """Offers everything in the first round, and one ray from then on."""

    def actions_in(self, draw: sw.RandomKey) -> Any:
        return self.actions if draw.round == 0 else sw.RaySet([[1.0, 0.0]])


def test_a_subclass_that_offers_other_actions_later_is_judged_by_those() -> None:
    optimum = sw.simulate(POLICY, Closing(**LINEAR), rounds=3, record_points=3).optimum[0]
    assert optimum == pytest.approx([0.8 * 0.3 / 0.6, 0.6 * 0.3 / 0.8, 0.6 * 0.3 / 0.8])


def test_a_subclass_of_a_world_is_not_described_as_its_parent() -> None:
    assert Flattering(**LINEAR).description()["kind"] == "Flattering"


def test_nothing_of_its_parent_is_said_of_a_subclass() -> None:
    """A theorem's bound and a declared noise would be those of the parent's own actions and outcomes."""
    world = Flattering(**LINEAR)
    assert isinstance(compute_regret_bound(POLICY, world, np.array([10])), str)
    assert [row["assumption"] for row in check_assumptions(POLICY, world)] == ["the safe action's costs are known"]


def test_a_family_is_not_drawn_from_a_subclass() -> None:
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.LinearWorldFamily(Flattering(**LINEAR))


def test_a_subclass_with_other_means_is_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED):
        sw.simulate(POLICY, Squared(**LINEAR), rounds=5)


@pytest.mark.long
def test_a_world_behind_five_names_is_the_world() -> None:
    own, known = (sw.simulate(OPB, world, rounds=300, runs=2, backend="python") for world in (Own(), ARMS))
    for field in ("regret", "reward", "cost", "optimum", "violations"):
        np.testing.assert_array_equal(getattr(own, field), getattr(known, field))


def test_only_what_is_eligible_counts_for_the_best() -> None:
    best = [build_oracle(OPB, Own(actions)).best(actions) for actions in (sw.ArmSet(3), sw.ArmSet(3).only([0, 2]))]
    assert best == pytest.approx([0.5 + 0.1 / 0.5 * 0.4, 0.1 + 0.2 / 0.6 * 0.8])


def test_what_is_no_world_is_told_what_it_lacks() -> None:
    with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE):
        sw.simulate(OPB, object(), rounds=5)


def test_actions_that_are_no_list_have_no_best_mixture() -> None:
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_ACTIONS):
        build_oracle(OPB, Own()).best(sw.BallSet(1.0))


@pytest.mark.long
def test_a_policy_of_ones_own_is_judged_by_its_threshold() -> None:
    assert sw.simulate(Fixed(), ARMS, rounds=20).violations[0] == 20
    assert sw.certify(Fixed(), ARMS, rounds=20, runs=50).verdict == "refuted"
    assert sw.certify(Fixed(arm=1), Own(), rounds=20, runs=200, confidence=0.9).verdict == "supported"


def test_hope_is_counted_where_a_policy_says_that_it_means_it() -> None:
    told = [
        sw.simulate(Fixed(is_optimistic=hopes), ARMS, rounds=20, audit=True).audit["optimism_failures"][0]
        for hopes in (True, False)
    ]
    assert told == [20, -1]
