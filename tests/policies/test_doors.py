"""What is refused at the doors of policies, problems and agents: each in a sentence, and nothing is changed by it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import remembered
from tests.policies.test_agent_files import REFUSED, put, rewritten, written
from tests.policies.test_problem import USER, problem
from tests.problem.refusal import refused, refuses

import stagewise as sw
from stagewise import Agent, InvalidActions, InvalidFile, InvalidOutcome, InvalidProblem, SafeAction
from stagewise.policies.policy import Played

FIRST = sw.Draw()
ROVING = SafeAction(cost=0.05)
CONTEXT: dict[str, Any] = {"actions": 3, "context": 1, "safe_action": SafeAction(arm=0, cost=0.1), "threshold": 0.3}
LINEAR: dict[str, Any] = {"safe_action": SafeAction(features=[0.0, 0.0]), "threshold": 0.3, "noise": 0.1}


class Verbs:
    """A policy of three verbs."""

    def start(self) -> int:
        return 0

    def decide(self, state: int, actions: Any, draw: sw.Draw = FIRST) -> sw.Decision:
        nothing = np.empty(0)
        return sw.Decision(0, 0, 1.0, None, 0.0, nothing, nothing, None, draw.round)

    def learn(self, state: int, decision: sw.Decision, outcome: sw.Outcome) -> int:
        return state + 1


SETTINGS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a probability below all": (lambda: sw.LCLUCB(**LINEAR, delta=1e-320), ["delta is 1e-320", "at least"]),
    "own sets of what is never followed": (
        lambda: sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2, own_sets=True),
        ["own_sets is True", "names its own safe action"],
    ),
    "expected of no limit": (lambda: sw.ContextCAPS(**CONTEXT, expected={"complaint": 0.1}), ["expected", "cost"]),
    "expected beyond 1": (lambda: sw.ContextCAPS(**CONTEXT, expected={"cost": 1.5}), ["'cost' is 1.5", "[0, 1]"]),
    "expected of a problem": (
        lambda: problem(settings={"expected": {"opt_outs": 0.01}}).policy(),
        ["expected names 'opt_outs'", "opt_out"],
    ),
    "limits that are no tables": (
        lambda: sw.Problem.from_plain({"actions": ["a", "b"], "safe": "a", "reward": {"name": "click"}, "limits": 3}),
        ["limits are 3", "tables by name"],
    ),
}


@pytest.mark.parametrize(("call", "parts"), SETTINGS.values(), ids=SETTINGS)
def test_settings(call: Callable[[], Any], parts: list[str]) -> None:
    refuses(call, InvalidProblem, *parts)


def context_rows(policy: sw.ContextCAPS) -> np.ndarray[Any, Any]:
    return np.array(policy.rows_for(sw.Context([0.5])))


def spoiled(rows: np.ndarray[Any, Any], row: int, column: int, value: float) -> np.ndarray[Any, Any]:
    rows = rows.copy()
    rows[row, column] = value
    return rows


ROWS: dict[str, tuple[Callable[[np.ndarray[Any, Any]], Any], str]] = {
    "too few": (lambda rows: sw.Finite(rows[:2]), "one for each of 3 actions"),
    "in another order": (lambda rows: sw.Finite(rows[[1, 0, 2]]), "one for each of 3 actions"),
    "of two users": (lambda rows: sw.Finite(spoiled(rows, 1, 2, 0.25)), "several users"),
    "with another safe action": (lambda rows: sw.Finite(rows, safe=1), "name 1 as safe; here it is 0"),
    "beyond the context's range": (lambda rows: sw.Finite(spoiled(rows, 1, 2, 1.5)), "numbers in [-1, 1]"),
    "of an action that there is not": (lambda rows: sw.Finite(spoiled(rows, 2, 0, 3.0)), "from 0 to 2"),
    "of half an action": (lambda rows: sw.Finite(spoiled(rows, 2, 0, 1.5)), "from 0 to 2"),
    "without a constant": (lambda rows: sw.Finite(spoiled(rows, 0, 1, 0.5)), "from 0 to 2, 1, numbers"),
}


@pytest.mark.parametrize(("offer", "part"), ROWS.values(), ids=ROWS)
def test_rows_for_a_user(offer: Callable[[np.ndarray[Any, Any]], Any], part: str) -> None:
    """Kernels do not check bounds: a row of another action would be read as if it were this one's."""
    policy = sw.ContextCAPS(**CONTEXT)
    rows = context_rows(policy)
    assert policy.decide(policy.start(), sw.Finite(rows)).index == 0
    refuses(lambda: policy.decide(policy.start(), offer(rows)), InvalidActions, part)


def test_the_cost_of_a_problem_must_be_there() -> None:
    policy = problem().policy()
    refuses(lambda: policy.values(1.0, None), InvalidOutcome, "cost is missing", "opt_out")


def test_what_only_ours_can_do_is_refused_of_others() -> None:
    agent = Agent(Verbs())
    refuses(lambda: agent.acknowledge("noise"), InvalidProblem, "only start, decide and learn")
    refuses(lambda: Agent(sw.LCLUCB(**LINEAR)).add_action("sale"), InvalidProblem, "a policy and no problem")
    refuses(lambda: Agent(sw.LCLUCB(**LINEAR)).decide(np.eye(2), only=[0]), InvalidActions, "only is [0]", "sw.Finite")


USERS = {"age": [20], "tenure": [0], "country": ["NZ"], "action": ["offer"]} | {
    "spend": [1],
    "opt_out": [0],
    "minutes": [30],
}
ARMS = sw.OPB(arms=2, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
FRAMES: dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any, str]] = {
    "no column of rewards": (ARMS, {"action": [0, 1], "cost": [0, 0]}, {"reward": None}, InvalidOutcome, "reward is"),
    "contexts of two lengths": (
        sw.LCLUCB(**LINEAR),
        {"x": [0.1, 0.2], "y": [0.1], "reward": [0.0, 0.0], "cost": [0.0, 0.0]},
        {"context": ["x", "y"], "reward": "reward"},
        InvalidOutcome,
        "several lengths",
    ),
    "a problem's columns of two lengths": (
        problem(),
        {"age": [20, 30], "tenure": [0, 0], "country": ["NZ"] * 2, "action": ["offer"] * 2}
        | {"spend": [1.0, 2.0], "opt_out": [0], "minutes": [30.0, 30.0]},
        {},
        InvalidOutcome,
        "several lengths",
    ),
    "more outcomes than actions": (
        problem(),
        {"age": [20], "tenure": [0], "country": ["NZ"], "action": ["offer"]}
        | {"spend": [1.0, 2.0], "opt_out": [0, 0], "minutes": [30.0, 30.0]},
        {},
        InvalidOutcome,
        "'spend' has 2 values, and 'age' has 1",
    ),
    "costs that are no mapping": (problem(), USERS, {"costs": ["opt_out"]}, InvalidOutcome, "costs is"),
    "costs of no limit": (
        problem(),
        USERS,
        {"costs": {"opt": "o"}},
        InvalidOutcome,
        "costs names 'opt'",
    ),
}


@pytest.mark.parametrize(("policy", "frame", "told", "kind", "part"), FRAMES.values(), ids=FRAMES)
def test_frames(policy: Any, frame: dict[str, Any], told: dict[str, Any], kind: Any, part: str) -> None:
    agent = Agent(policy)
    before = remembered(agent)
    refuses(lambda: agent.learn_frame(frame, **told), kind, part)
    assert remembered(agent) == before


@pytest.mark.parametrize("count", [-1, 0.5, True, "3"])
def test_a_count_of_a_file_that_is_none(count: Any, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["notes"]["stays"] = count

    with refused(InvalidFile, REFUSED, f"a count in it is {count!r}"):
        Agent.load(rewritten(written(tmp_path), change))


def test_a_decision_told_with_a_safe_action_that_no_round_had() -> None:
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2)
    agent = Agent(policy, name="here")
    rays = sw.Rays(np.eye(2), safe=[0.0, 0.1])
    told = sw.Replica(agent.snapshot(), name="there").decide(rays).plain()
    for safe in ("nothing", [0, [0.0, 0.1]], [0, [0.0, 0.1], ["x"], 0.0]):
        refuses(lambda safe=safe: agent.adopt({**told, "safe": safe}), InvalidOutcome, "safe action")  # type: ignore[misc]
    long = [-1, [0.0, 0.1, 0.2], [0.05], 0.0]
    refuses(lambda: agent.adopt({**told, "safe": long}), InvalidOutcome, "none of this LCLUCB's rounds")
    assert agent.waiting == 0


def test_what_a_replica_played_is_learned_with_the_safe_action_of_its_round() -> None:
    """Else nobody would notice that the safe action of a round costs more than was declared of it."""
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2)
    agent, own, rays = Agent(policy), Agent(policy), sw.Rays(np.eye(2), safe=[0.0, 0.1])
    replica = sw.Replica(agent.snapshot(), name="there")
    for _ in range(3):
        told, mine = replica.decide(rays).plain(), own.decide(rays)
        stayed = {"action": [0.0, 0.1], "index": -1, "step": 0.0}
        agent.learn(agent.adopt({**told, **stayed}), reward=0.0, cost=0.9)
        own._ledger.open[mine.round] = Played(np.array([0.0, 0.1]), -1, 0.0, mine._safe)
        own.learn(mine.round, reward=0.0, cost=0.9)
    assert np.array_equal(agent.state.memory, own.state.memory)
    assert "declared" in str(agent.decide(rays).fallback)


def test_a_user_is_still_decided_for_after_all_this() -> None:
    assert Agent(problem()).decide(USER).name == "nothing"
    assert put("seed", 1)({}) is None
