"""A saved agent under a problem that has changed since: what changed is said, and what to do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.policies.test_problem import USER, problem
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode

LIMITS = dict(problem().limits)
OPT_OUT, ANEW = LIMITS["opt_out"], "start a new agent and give it the log (learn_log_frame)"


def other(**changes: Any) -> dict[str, Any]:
    """Return the limits, opt_out's with changes."""
    return {"limits": LIMITS | {"opt_out": replace(OPT_OUT, **changes)}}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("changed") / "agent.json"
    agent = sw.Agent(problem(), seed=1)
    agent.learn(agent.decide(USER).id, spend=1.0, opt_out=False, minutes=30.0)
    agent.save(path)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            other(value=0.03),
            [ErrorCode.PROBLEM_MISMATCH, "the limit of 'opt_out' was at most 0.02 and is at most 0.03", ANEW],
        ),
        (other(value=sw.AtLeast(0.0005)), [ErrorCode.PROBLEM_MISMATCH, "at most 0.02 and is at least 0.0005"]),
        (
            other(safe_bound=0.002),
            [ErrorCode.PROBLEM_MISMATCH, "safe_bound of the limit of 'opt_out' was 0.001 and is 0.002"],
        ),
        (
            other(by=None, model="rates"),
            [ErrorCode.PROBLEM_MISMATCH, "model of the limit of 'opt_out' was None and is 'rates'"],
        ),
        (other(window="7d"), [ErrorCode.PROBLEM_MISMATCH, "window of the limit of 'opt_out' was None and is '7d'"]),
        (
            {"limits": {"opt_out": OPT_OUT}},
            [ErrorCode.PROBLEM_MISMATCH, "the limits were 'opt_out', 'minutes' and are 'opt_out'"],
        ),
        (
            {"limits": dict(reversed(LIMITS.items()))},
            [ErrorCode.PROBLEM_MISMATCH, "are 'minutes', 'opt_out', in this order"],
        ),
        (
            {"reward": sw.Reward("spend", -10.0, 40.0, safe_bound=0.0)},
            [ErrorCode.PROBLEM_MISMATCH, "high of the reward was 30.0 and is 40.0", ANEW],
        ),
        (
            {"reward": sw.Reward("money", -10.0, 30.0, safe_bound=0.0)},
            [ErrorCode.PROBLEM_MISMATCH, "name of the reward was 'spend' and is 'money'"],
        ),
        (
            {"action_names": ["nothing", "digest", "offer", "sale"]},
            [ErrorCode.PROBLEM_MISMATCH, "'sale' are new", "agent.add_action('sale')"],
        ),
        (
            {"action_names": ["nothing", "offer", "digest"]},
            [ErrorCode.PROBLEM_MISMATCH, "another order", "'nothing', 'digest', 'offer'"],
        ),
        (
            {"action_names": ["nothing", "offer"]},
            [ErrorCode.PROBLEM_MISMATCH, "'digest', which the problem given lacks", "`only`"],
        ),
        ({"action_names": ["sale", "nothing", "digest", "offer"]}, [ErrorCode.PROBLEM_MISMATCH, "at the end"]),
        ({"safe_name": "digest"}, [ErrorCode.PROBLEM_MISMATCH, "safe_name was 'nothing' and is 'digest'"]),
        ({"delta": 0.1}, [ErrorCode.PROBLEM_MISMATCH, "delta was 0.05 and is 0.1"]),
        (
            {"context": {"age": (18, 99), "tenure": (-1, 1)}},
            [ErrorCode.PROBLEM_MISMATCH, "column 'age' was [18.0, 98.0] and is [18.0, 99.0]"],
        ),
        ({"context": {"age": (18, 98)}}, [ErrorCode.PROBLEM_MISMATCH, "the context was 'age', 'tenure' and is 'age'"]),
        ({"settings": {"posterior_scale": 0.5}}, [ErrorCode.PROBLEM_MISMATCH]),
    ],
)
def test_what_changed_is_said_and_what_to_do(saved: Path, changes: dict[str, Any], words: list[str]) -> None:
    refuses(lambda: sw.Agent.load(saved, problem(**changes)), sw.InvalidFile, "agent.json", *words)


def test_the_same_problem_loads_also_after_an_action_was_added(saved: Path, tmp_path: Path) -> None:
    agent = sw.Agent.load(saved, problem())
    agent.add_action("sale")
    agent.save(tmp_path / "more.json")
    more = problem(action_names=["nothing", "digest", "offer", "sale"])
    again = sw.Agent.load(tmp_path / "more.json", more)
    assert again.decide(USER).to_dict() == agent.decide(USER).to_dict()
    refuses(
        lambda: sw.Agent.load(tmp_path / "more.json", problem()),
        sw.InvalidFile,
        ErrorCode.PROBLEM_MISMATCH,
        "'sale', which the problem given",
    )


def test_a_problem_and_a_policy_are_told_apart(saved: Path) -> None:
    policy = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
    refuses(lambda: sw.Agent.load(saved, policy), sw.InvalidFile, ErrorCode.PROBLEM_MISMATCH)
    place: Any = "problem.toml"
    refuses(lambda: sw.Agent.load(saved, place), sw.InvalidProblem, ErrorCode.WRONG_TYPE, "'problem.toml'")


def test_a_problem_in_toml_is_no_saved_agent_and_says_how_to_make_one(saved: Path, tmp_path: Path) -> None:
    place = tmp_path / "problem.toml"
    place.write_text('action_names = ["a", "b"]\nsafe_name = "a"\nreward = { name = "r" }\nlimits = { c = 0.5 }\n')
    refuses(lambda: sw.Agent.load(place), sw.InvalidFile, ErrorCode.FILE_WRONG_KIND)
    refuses(lambda: sw.Problem.load(saved), sw.InvalidFile, ErrorCode.FILE_INVALID, "sw.Agent.load")
    place.write_text("safe = .02")
    refuses(lambda: sw.Problem.load(place), sw.InvalidFile, ErrorCode.FILE_INVALID, "TOML writes .02 as 0.02")


def test_a_replica_goes_on_after_an_action_was_added() -> None:
    agent = sw.Agent(problem(), seed=1)
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    before = agent.replica_snapshot()
    agent.add_action("sale")
    first = replica.decide(USER)  # by what it knows: the new action is not among it
    assert list(first.probabilities) == ["nothing", "digest", "offer"]  # type: ignore[arg-type]
    assert agent.register_decision(first.to_dict()) == 0
    assert replica.update(agent.replica_snapshot())
    second = replica.decide(USER)
    assert list(second.probabilities)[-1] == "sale"  # type: ignore[arg-type]
    assert agent.register_decision(second.to_dict()) == 1
    for decision in (first, second):
        agent.learn(decision.id, spend=1.0, opt_out=False, minutes=30.0)
    assert agent.pending_count == 0
    assert not replica.update(before)  # it knows less
    stranger = sw.Agent(problem(delta=0.1), seed=1).replica_snapshot()
    refuses(lambda: replica.update(stranger), sw.InvalidProblem, ErrorCode.STATE_MISMATCH)
