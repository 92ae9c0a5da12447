"""What is refused at the doors of policies, problems and agents: each in a sentence, and nothing is changed by it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_agent_files import rewritten, written
from tests.policies.test_problem import problem
from tests.problem.refusal import refused, refuses

import stagewise as sw
from stagewise import Agent, InvalidActions, InvalidFile, InvalidOutcome, InvalidProblem, SafeAction
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode

FIRST = sw.RandomKey()
ROVING = SafeAction(cost=0.05)
CONTEXT: dict[str, Any] = {"actions": 3, "context": 1, "safe_action": SafeAction(arm=0, cost=0.1), "threshold": 0.3}
LINEAR: dict[str, Any] = {"safe_action": SafeAction(features=[0.0, 0.0]), "threshold": 0.3, "noise": 0.1}


class Verbs:
    """A policy of three verbs."""

    def start(self) -> int:
        return 0

    def decide(self, state: int, actions: Any, draw: sw.RandomKey = FIRST) -> sw.Decision:
        nothing = np.empty(0)
        return sw.Decision(0, 0, 1.0, None, 0.0, nothing, nothing, None, draw.round)

    def learn(self, state: int, decision: sw.Decision, outcome: sw.Outcome) -> int:
        return state + 1


SETTINGS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a probability below all": (lambda: sw.LCLUCB(**LINEAR, delta=1e-320), [ErrorCode.OUT_OF_RANGE]),
    "own sets of what is never followed": (
        lambda: sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2, per_action_bounds=True),
        [ErrorCode.CONFLICTING_SETTINGS],
    ),
    "limits that are no tables": (
        lambda: sw.Problem.from_dict(
            {"action_names": ["a", "b"], "safe_name": "a", "reward": {"name": "click"}, "limits": 3}
        ),
        [ErrorCode.WRONG_TYPE],
    ),
}


@pytest.mark.parametrize(("call", "parts"), SETTINGS.values(), ids=SETTINGS)
def test_settings(call: Callable[[], Any], parts: list[str]) -> None:
    refuses(call, InvalidProblem, *parts)


def context_rows(policy: sw.SafeContextPosteriorSampling) -> np.ndarray[Any, Any]:
    return np.array(policy.rows_for(sw.ContextVector([0.5])))


def spoiled(rows: np.ndarray[Any, Any], row: int, column: int, value: float) -> np.ndarray[Any, Any]:
    rows = rows.copy()
    rows[row, column] = value
    return rows


ROWS: dict[str, tuple[Callable[[np.ndarray[Any, Any]], Any], str]] = {
    "too few": (lambda rows: sw.FiniteSet(rows[:2]), ErrorCode.WRONG_SHAPE),
    "in another order": (lambda rows: sw.FiniteSet(rows[[1, 0, 2]]), ErrorCode.WRONG_SHAPE),
    "of two users": (lambda rows: sw.FiniteSet(spoiled(rows, 1, 2, 0.25)), ErrorCode.WRONG_SHAPE),
    "with another safe action": (lambda rows: sw.FiniteSet(rows, safe=1), ErrorCode.SAFE_ACTION_INVALID),
    "beyond the context's range": (lambda rows: sw.FiniteSet(spoiled(rows, 1, 2, 1.5)), ErrorCode.INVALID_ROW),
    "of an action that there is not": (lambda rows: sw.FiniteSet(spoiled(rows, 2, 0, 3.0)), ErrorCode.INVALID_ROW),
    "of half an action": (lambda rows: sw.FiniteSet(spoiled(rows, 2, 0, 1.5)), ErrorCode.INVALID_ROW),
    "without a constant": (lambda rows: sw.FiniteSet(spoiled(rows, 0, 1, 0.5)), ErrorCode.INVALID_ROW),
}


@pytest.mark.parametrize(("offer", "part"), ROWS.values(), ids=ROWS)
def test_rows_for_a_user(offer: Callable[[np.ndarray[Any, Any]], Any], part: str) -> None:
    """Kernels do not check bounds: a row of another action would be read as if it were this one's."""
    policy = sw.SafeContextPosteriorSampling(**CONTEXT)
    rows = context_rows(policy)
    assert policy.decide(policy.start(), sw.FiniteSet(rows)).action_index == 0
    refuses(lambda: policy.decide(policy.start(), offer(rows)), InvalidActions, part)


def test_the_cost_of_a_problem_must_be_there() -> None:
    policy = problem().policy()
    refuses(lambda: policy.values(1.0, None), InvalidOutcome, ErrorCode.OUTCOME_MISSING)


def test_what_only_ours_can_do_is_refused_of_others() -> None:
    agent = Agent(Verbs())
    refuses(lambda: agent.acknowledge_alert("noise"), InvalidProblem, ErrorCode.UNSUPPORTED)
    refuses(lambda: Agent(sw.LCLUCB(**LINEAR)).add_action("sale"), InvalidProblem, ErrorCode.UNSUPPORTED)
    refuses(lambda: Agent(sw.LCLUCB(**LINEAR)).decide(np.eye(2), only=[0]), InvalidActions, ErrorCode.WRONG_TYPE)


@pytest.mark.parametrize("count", [-1, 0.5, True, "3"])
def test_a_count_of_a_file_that_is_none(count: Any, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["statistics"]["safe_only_rounds"] = count

    with refused(InvalidFile, ErrorCode.FILE_INVALID):
        Agent.load(rewritten(written(tmp_path), change))


def test_a_decision_told_with_a_safe_action_that_no_round_had() -> None:
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2)
    agent = Agent(policy, name="here")
    rays = sw.RaySet(np.eye(2), safe=[0.0, 0.1])
    told = sw.Replica(agent.replica_snapshot(), name="there").decide(rays).to_dict()
    for safe in ("nothing", [0, [0.0, 0.1]], [0, [0.0, 0.1], ["x"], 0.0]):
        refuses(lambda safe=safe: agent.register_decision({**told, "safe": safe}), InvalidOutcome, ErrorCode.WRONG_TYPE)  # type: ignore[misc]
    long = [-1, [0.0, 0.1, 0.2], [0.05], 0.0]
    refuses(lambda: agent.register_decision({**told, "safe": long}), InvalidOutcome, ErrorCode.UNKNOWN_DECISION)
    assert agent.pending_count == 0


def test_what_a_replica_played_is_learned_with_the_safe_action_of_its_round() -> None:
    """Else nobody would notice that the safe action of a round costs more than was declared of it."""
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=ROVING, dimension=2)
    agent, own, rays = Agent(policy), Agent(policy), sw.RaySet(np.eye(2), safe=[0.0, 0.1])
    replica = sw.Replica(agent.replica_snapshot(), name="there")
    for _ in range(3):
        told, mine = replica.decide(rays).to_dict(), own.decide(rays)
        stayed = {"action": [0.0, 0.1], "action_index": None, "step_size": 0.0}
        agent.learn(agent.register_decision({**told, **stayed}), reward=0.0, cost=0.9)
        own._queue.played[mine.round] = PlayedAction(np.array([0.0, 0.1]), -1, 0.0, mine._safe)
        own.learn(mine.round, reward=0.0, cost=0.9)
    assert np.array_equal(agent.state.memory, own.state.memory)
    assert agent.decide(rays).reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
