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
from stagewise.problem.errors import ErrorCode

SHARE = {"context": {"share": (0, 1)}}
CLICK = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.001, model="rates")}}


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
        (USER | {"age": float("nan")}, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"age": np.float32("nan")}, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"tenure": np.float32(1.5)}, [ErrorCode.CONTEXT_OUT_OF_RANGE]),
        (USER | {"age": None}, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": None}, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": float("nan")}, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": np.float32(1.5)}, [ErrorCode.WRONG_TYPE]),
    ],
)
def test_a_user_that_is_not_whole(user: Any, words: list[str]) -> None:
    refuses(lambda: sw.Agent(problem(), seed=1).decide(user), sw.InvalidActions, *words)


def test_percentages_are_asked_for() -> None:
    agent = sw.Agent(problem(**SHARE, **CLICK), seed=1)
    refuses(lambda: agent.decide({"share": 45}), sw.InvalidActions, ErrorCode.CONTEXT_OUT_OF_RANGE)
    decision = agent.decide({"share": 0.45})
    refuses(lambda: agent.learn(decision.id, opt_out=2), sw.InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE)
    refuses(
        lambda: problem(limits={"opt_out": sw.Limit(2, model="rates")}), sw.InvalidProblem, ErrorCode.LIMIT_NEVER_BINDS
    )
    refuses(lambda: problem(limits={"opt_out": sw.Limit("2%", model="rates")}), sw.InvalidProblem, ErrorCode.WRONG_TYPE)  # type: ignore[arg-type]


def test_outcomes_in_words_are_refused_with_what_is_meant() -> None:
    agent = sw.Agent(problem(), seed=1)
    decision = agent.decide(USER)
    refuses(lambda: agent.learn(decision.id, opt_out="yes"), sw.InvalidOutcome, ErrorCode.WRONG_TYPE)
    told = {"spend": 1.0, "opt_out": 0}
    refuses(lambda: agent.learn(decision.id, told), sw.InvalidOutcome, ErrorCode.WRONG_TYPE)
    refuses(lambda: agent.learn("offer", spend=1.0), sw.InvalidOutcome, ErrorCode.UNKNOWN_DECISION)


def test_rows_sets_and_truths_of_numpy_are_taken() -> None:
    agent = sw.Agent(problem(), seed=1)
    row = agent.decide(Series(USER))
    assert row.to_dict()["probabilities"] == agent.decide(USER, only={"offer", "digest"}).to_dict()["probabilities"]
    agent.decide(USER | {"country": np.True_})
    one, other = (agent.policy.encode_context(USER | {"country": c}, None) for c in (np.True_, True))  # type: ignore[attr-defined]
    assert np.array_equal(one.segments, other.segments)
    assert problem(limits={"o": sw.Limit(0.02, window="7d", missing=True, model="rates")}).windows["o"].missing == 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sw.Limit(at_most=0.02, model="rates"), [ErrorCode.UNKNOWN_SETTING, "write Limit(0.02, ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Limit(at_least=0.9, model="rates"), [ErrorCode.UNKNOWN_SETTING, "write Limit(AtLeast(0.9), ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Reward(nam="click"), [ErrorCode.UNKNOWN_SETTING, "did you mean 'name'?"]),  # type: ignore[call-arg]
        (lambda: problem(contxt=["age"]), [ErrorCode.UNKNOWN_SETTING, "did you mean 'context'?"]),
        (lambda: problem(limits={"x": sw.Limit(0.02, by="age")}), [ErrorCode.DUPLICATE_NAME]),
        (
            lambda: problem(limits={"x": sw.Limit(200, high=1000, safe_bound=500, model="rates")}),
            [ErrorCode.SAFE_ACTION_OVER_LIMIT],
        ),
        (
            lambda: problem(limits={"x": sw.Limit(sw.AtLeast(20), high=60, safe_bound=10, model="rates")}),
            [ErrorCode.SAFE_ACTION_OVER_LIMIT],
        ),
        (lambda: sw.Limit(0.02, window=-7, model="rates"), [ErrorCode.OUT_OF_RANGE, "-7"]),
        (lambda: sw.Agent("problem.toml"), [ErrorCode.WRONG_TYPE, "'problem.toml'"]),  # type: ignore[arg-type]
    ],
)
def test_declarations(make: Any, words: list[str]) -> None:
    refuses(make, sw.InvalidProblem, *words)


def limit_in_toml(tmp_path: Path, limit: str) -> sw.Problem:
    place = tmp_path / "problem.toml"
    place.write_text(
        f'action_names = ["a", "b"]\nsafe_name = "a"\nreward = {{ name = "r" }}\nlimits = {{ x = {limit} }}\n'
    )
    return sw.Problem.load(place)


def test_limits_in_toml(tmp_path: Path) -> None:
    for limit, code in (
        ("{ at_mots = 0.1 }", ErrorCode.CONFLICTING_SETTINGS),
        ("{ at_most = 0.1, at_least = 0.2 }", ErrorCode.CONFLICTING_SETTINGS),
        ("{ at_most = 0.1, windw = '7d' }", ErrorCode.UNKNOWN_SETTING),
    ):
        refuses(lambda limit=limit: limit_in_toml(tmp_path, limit), sw.InvalidProblem, code)
    assert "at most 1.2 times the safe action's 0.01 " in str(
        limit_in_toml(tmp_path, "{ times_safe = 1.2, safe_bound = 0.01 }")
    )


@pytest.mark.parametrize(
    ("window", "told"), [(7, "7s"), (604800.0, "7d"), ("7d", "7d"), (timedelta(hours=36), "36h"), (90, "90s")]
)
def test_a_window_is_told_with_its_unit(window: Any, told: str) -> None:
    said = problem(limits={"opt_out": sw.Limit(0.02, safe_bound=0.001, window=window, model="rates")})
    assert f"missing after {told} counts as 0" in str(said)
    agent = sw.Agent(said, seed=1)
    decision = agent.decide({"age": 30.0, "tenure": 0.1}, now=0.0)
    with pytest.raises(sw.InvalidOutcome) as caught:
        agent.learn(decision.id, opt_out=True, now=1e9)
    assert caught.value.code is ErrorCode.OUTCOME_TOO_LATE
    assert caught.value.details["length_text"] == told


@pytest.mark.parametrize(
    ("change", "asked", "words"),
    [
        ({"action": None}, {}, [ErrorCode.COLUMN_MISSING]),
        ({"spend": None}, {}, [ErrorCode.COLUMN_MISSING]),
        ({"opt_out": None}, {}, [ErrorCode.COLUMN_MISSING]),
        ({"age": None}, {}, [ErrorCode.COLUMN_MISSING]),
        (
            {"country": [None] * COUNT},
            {},
            [ErrorCode.INVALID_ROW, 0],
        ),
        (
            {"action": [*FRAME["action"][1:], "offr"]},
            {},
            [ErrorCode.INVALID_ROW, COUNT - 1],
        ),
        ({"opt_out": [2.0] * COUNT}, {}, [ErrorCode.INVALID_ROW]),
        ({"opt_out": ["yes"] * COUNT}, {}, [ErrorCode.COLUMN_WRONG_TYPE]),
        ({}, {"names": ["a"]}, [ErrorCode.UNUSED_SETTING]),
    ],
)
def test_frames(change: dict[str, Any], asked: dict[str, Any], words: list[str]) -> None:
    frame = {name: column for name, column in (FRAME | change).items() if column is not None}
    kind = sw.InvalidOutcome if {"spend", "opt_out"} & set(change) else sw.InvalidActions
    refuses(lambda: sw.Agent(problem(), seed=1).learn_log_frame(frame, **asked), kind, *words)


def test_frames_that_hold_no_rows_yet_and_logs_without_names() -> None:
    agent = sw.Agent(problem(), seed=1)
    refuses(lambda: agent.learn_log_frame(LazyFrame()), sw.InvalidOutcome, ErrorCode.WRONG_TYPE)
    refuses(lambda: agent.learn_log(np.ones((3, 2)), [0.0] * 3, [0.0] * 3), sw.InvalidActions, ErrorCode.WRONG_SHAPE)
