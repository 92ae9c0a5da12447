"""What somebody new may get wrong at the front door: each is answered with the name, the rule and a way out."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_problem import USER, problem
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


def test_percentages_are_asked_for() -> None:
    agent = sw.Agent(problem(**SHARE, **CLICK), seed=1)
    refuses(lambda: agent.decide({"share": 45}), sw.InvalidActions, ErrorCode.CONTEXT_OUT_OF_RANGE)
    decision = agent.decide({"share": 0.45})
    refuses(lambda: agent.learn(decision.id, opt_out=2), sw.InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE)
    refuses(
        lambda: problem(limits={"opt_out": sw.Limit(2, model="rates")}), sw.InvalidProblem, ErrorCode.LIMIT_NEVER_BINDS
    )
    refuses(lambda: problem(limits={"opt_out": sw.Limit("2%", model="rates")}), sw.InvalidProblem, ErrorCode.WRONG_TYPE)  # type: ignore[arg-type]


def test_rows_sets_and_truths_of_numpy_are_taken() -> None:
    agent = sw.Agent(problem(), seed=1)
    row = agent.decide(Series(USER))
    assert row.to_dict()["probabilities"] == agent.decide(USER, only={"offer", "digest"}).to_dict()["probabilities"]
    agent.decide(USER | {"country": np.True_})
    one, other = (agent.policy.encode_context(USER | {"country": c}, None) for c in (np.True_, True))  # type: ignore[attr-defined]
    assert np.array_equal(one.segments, other.segments)
    assert problem(limits={"o": sw.Limit(0.02, window="7d", missing=True, model="rates")}).windows["o"].missing == 1.0


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


def test_frames_that_hold_no_rows_yet_and_logs_without_names() -> None:
    agent = sw.Agent(problem(), seed=1)
    refuses(lambda: agent.learn("offer", spend=1.0), sw.InvalidOutcome, ErrorCode.UNKNOWN_DECISION)
    refuses(lambda: agent.learn_log_frame(LazyFrame()), sw.InvalidOutcome, ErrorCode.WRONG_TYPE)
    refuses(lambda: agent.learn_log(np.ones((3, 2)), [0.0] * 3, [0.0] * 3), sw.InvalidActions, ErrorCode.WRONG_SHAPE)
