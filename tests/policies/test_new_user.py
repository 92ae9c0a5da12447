"""What somebody new may get wrong at the front door: each is answered with the name, the rule and a way out."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_problem import USER, problem
from tests.policies.test_problem_frames import COUNT, FRAME
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.problem.words import shown

SHARE = {"context": {"share": (0, 1)}}
CLICK = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.001)}}


class Series(dict[str, Any]):
    """A row of a data frame, as pandas has it: no mapping by type."""

    ndim = 1

    def to_dict(self) -> dict[str, Any]:
        return dict(self)


class LazyFrame:
    """As polars has it."""


@pytest.mark.parametrize(
    ("user", "words"),
    [
        (USER | {"age": float("nan")}, ["'age' is NaN", "fill in"]),
        (USER | {"age": np.float32("nan")}, ["'age' is nan", "finite"]),
        (USER | {"tenure": np.float32(1.5)}, ["'tenure' is 1.5, outside [-1, 1]"]),
        (USER | {"age": None}, ["'age' is None"]),
        (USER | {"country": None}, ["'country' is missing", "'unknown'"]),
        (USER | {"country": float("nan")}, ["'country' is missing"]),
        (USER | {"country": np.float32(1.5)}, ["'country' is 1.5;"]),
    ],
)
def test_a_user_that_is_not_whole(user: Any, words: list[str]) -> None:
    refuses(lambda: sw.Agent(problem(), seed=1).decide(user), sw.InvalidActions, *words)


def test_percentages_are_asked_for() -> None:
    agent = sw.Agent(problem(**SHARE, **CLICK), seed=1)
    refuses(lambda: agent.decide({"share": 45}), sw.InvalidActions, "'share' is 45", "was it a percentage?")
    decision = agent.decide({"share": 0.45})
    refuses(lambda: agent.learn(decision.id, opt_out=2), sw.InvalidOutcome, "'opt_out' is 2", "was it a percentage?")
    refuses(lambda: problem(limits={"opt_out": sw.Limit(2)}), sw.InvalidProblem, "2 % is 0.02")
    refuses(lambda: problem(limits={"opt_out": sw.Limit("2%")}), sw.InvalidProblem, "'2%'", "two percent are 0.02")  # type: ignore[arg-type]


def test_outcomes_in_words_are_refused_with_what_is_meant() -> None:
    agent = sw.Agent(problem(), seed=1)
    decision = agent.decide(USER)
    refuses(lambda: agent.learn(decision.id, opt_out="yes"), sw.InvalidOutcome, "'yes'", "a number, or True or False")
    told = {"spend": 1.0, "opt_out": 0}
    refuses(lambda: agent.learn(decision.id, told), sw.InvalidOutcome, "by name", "learn(id, spend=...)", "**outcome")
    refuses(lambda: agent.learn("offer", spend=1.0), sw.InvalidOutcome, "'offer'", "its id or round")


def test_rows_sets_and_truths_of_numpy_are_taken() -> None:
    agent = sw.Agent(problem(), seed=1)
    row = agent.decide(Series(USER))
    assert row.plain()["probabilities"] == agent.decide(USER, only={"offer", "digest"}).plain()["probabilities"]
    agent.decide(USER | {"country": np.True_})
    one, other = (agent.policy.offered(USER | {"country": c}, None) for c in (np.True_, True))  # type: ignore[attr-defined]
    assert np.array_equal(one.segments, other.segments)
    assert problem(limits={"o": sw.Limit(0.02, window="7d", missing=True)}).windows["o"].missing == 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sw.Limit(at_most=0.02), ["Limit has no 'at_most'", "write Limit(0.02, ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Limit(at_least=0.9), ["write Limit(AtLeast(0.9), ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Reward(nam="click"), ["Reward has no 'nam'", "did you mean 'name'?"]),  # type: ignore[call-arg]
        (lambda: problem(contxt=["age"]), ["Problem has no 'contxt'", "did you mean 'context'?"]),
        (lambda: problem(limits={"x": sw.Limit(0.02, by="age")}), ["'age' is a number of the context", "'age_group'"]),
        (
            lambda: problem(limits={"x": sw.Limit(200, high=1000, safe=500)}),
            ["'x' is 500, which leaves no slack against its limit, at most 200"],
        ),
        (
            lambda: problem(limits={"x": sw.Limit(sw.AtLeast(20), high=60, safe=10)}),
            ["'x' is 10, which leaves no slack against its limit, at least 20", "strictly above"],
        ),
        (lambda: sw.Limit(0.02, window=-7), ["-7", "a time greater than 0"]),
        (lambda: sw.Agent("problem.toml"), ["'problem.toml'", "Problem.load"]),  # type: ignore[arg-type]
    ],
)
def test_declarations(make: Any, words: list[str]) -> None:
    refuses(make, sw.InvalidProblem, *words)


def limit_in_toml(tmp_path: Path, limit: str) -> sw.Problem:
    place = tmp_path / "problem.toml"
    place.write_text(f'actions = ["a", "b"]\nsafe = "a"\nreward = {{ name = "r" }}\nlimits = {{ x = {limit} }}\n')
    return sw.Problem.load(place)


def test_limits_in_toml(tmp_path: Path) -> None:
    for told, words in (
        ("{ at_mots = 0.1 }", ["says nothing of how much", "did you mean 'at_most'?"]),
        ("{ at_most = 0.1, at_least = 0.2 }", ["has 'at_most', 'at_least'"]),
        ("{ at_most = 0.1, windw = '7d' }", ["did you mean 'window'?"]),
    ):
        refuses(lambda told=told: limit_in_toml(tmp_path, told), sw.InvalidProblem, *words)
    assert "at most 1.2 times the safe action's 0.01 " in str(
        limit_in_toml(tmp_path, "{ times_safe = 1.2, safe = 0.01 }")
    )


@pytest.mark.parametrize(
    ("window", "told"), [(7, "7s"), (604800.0, "7d"), ("7d", "7d"), (timedelta(hours=36), "36h"), (90, "90s")]
)
def test_a_window_is_told_with_its_unit(window: Any, told: str) -> None:
    said = problem(limits={"opt_out": sw.Limit(0.02, safe=0.001, window=window)})
    assert f"missing after {told} counts as 0" in str(said)
    agent = sw.Agent(said, seed=1)
    decision = agent.decide({"age": 30.0, "tenure": 0.1}, now=0.0)
    late = "came after its window of " + told
    refuses(lambda: agent.learn(decision.id, opt_out=True, now=1e9), sw.InvalidOutcome, late, "counts as 0 since")


@pytest.mark.parametrize(
    ("change", "asked", "words"),
    [
        ({"action": None}, {}, ["names 'action'", "give action='...' where"]),
        ({"spend": None}, {}, ["reward names 'spend'", "give reward='...' where"]),
        ({"opt_out": None}, {}, ["costs names 'opt_out'", "give costs={'opt_out': ...}"]),
        ({"age": None}, {}, ["context names 'age'", "give context={'age': ...}"]),
        ({"country": [*FRAME["country"][1:], None]}, {}, [f"row {COUNT - 1} of the frame", "'country' is missing"]),
        ({"action": [*FRAME["action"][1:], "offr"]}, {}, [f"row {COUNT - 1} of the frame", "did you mean 'offer'?"]),
        ({"opt_out": [2.0] * COUNT}, {}, ["row 0 of the frame", "was it a percentage?"]),
        ({"opt_out": ["yes"] * COUNT}, {}, ["'opt_out' holds 'yes' in row 0"]),
        ({}, {"names": ["a"]}, ["names is ['a']", "leave it out"]),
    ],
)
def test_frames(change: dict[str, Any], asked: dict[str, Any], words: list[str]) -> None:
    frame = {name: column for name, column in (FRAME | change).items() if column is not None}
    kind = sw.InvalidOutcome if {"spend", "opt_out"} & set(change) else sw.InvalidActions
    refuses(lambda: sw.Agent(problem(), seed=1).learn_frame(frame, **asked), kind, *words)


def test_frames_that_hold_no_rows_yet_and_logs_without_names() -> None:
    agent = sw.Agent(problem(), seed=1)
    refuses(lambda: agent.learn_frame(LazyFrame()), sw.InvalidOutcome, "frame.collect()")
    refuses(
        lambda: agent.learn_log(np.ones((3, 2)), [0.0] * 3, [0.0] * 3), sw.InvalidActions, "1 segment;", "learn_frame"
    )


def test_numbers_of_numpy_are_shown_as_numbers() -> None:
    assert shown(np.float32(0.5)) == "0.5"
    assert shown({"a": np.int64(3)}) == "{'a': 3}"
    assert shown([np.True_, np.str_("x")]) == "[True, 'x']"
    refuses(lambda: sw.Agent(problem(), seed=np.float32(0.5)), sw.InvalidProblem, "seed is 0.5;")  # type: ignore[arg-type]
