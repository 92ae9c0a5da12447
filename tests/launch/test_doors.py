"""What the doctor, the forecast and the evaluation refuse of a log, with the column in question."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise import InvalidActions, InvalidOutcome
from stagewise.launch.decision_log import Log
from stagewise.problem.errors import ErrorCode

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, model="rates")},
)
LOG: dict[str, Any] = {"action": ["nothing", "offer"] * 50, "click": [0, 1] * 50, "opt_out": [0, 0] * 50}


def without(name: str) -> dict[str, Any]:
    return {key: column for key, column in LOG.items() if key != name}


PROPOSED: dict[str, tuple[dict[str, Any], dict[str, Any], ErrorCode]] = {
    "no rows": ({name: [] for name in LOG}, {}, ErrorCode.WRONG_SHAPE),
    "columns of two lengths": ({**LOG, "click": [0]}, {}, ErrorCode.WRONG_SHAPE),
    "an action that is no column": (LOG, {"action": "act"}, ErrorCode.COLUMN_MISSING),
    "no column called as actions are": ({"a": LOG["action"], **without("action")}, {}, ErrorCode.COLUMN_AMBIGUOUS),
    "no column called as costs are": ({"c": [0] * 100, **without("opt_out")}, {}, ErrorCode.COLUMN_AMBIGUOUS),
    "limits in one word": (LOG, {"limits": "opt_out"}, ErrorCode.WRONG_TYPE),
    "no outcome at all": ({**LOG, "click": [float("nan")] * 100}, {"reward": "click"}, ErrorCode.COLUMN_WRONG_TYPE),
}


@pytest.mark.parametrize(("log", "arguments", "code"), PROPOSED.values(), ids=PROPOSED)
def test_what_nothing_can_be_proposed_from(log: dict[str, Any], arguments: dict[str, Any], code: ErrorCode) -> None:
    refuses(lambda: sw.check_log(log, **arguments), InvalidOutcome, code)


def test_a_candidate_that_fails_is_told_with_its_user() -> None:
    def fails(user: dict[str, Any]) -> str:
        raise RuntimeError("no model loaded")

    refuses(lambda: sw.evaluate_on_log(LOG, PROBLEM, fails, propensity=0.5), InvalidActions, ErrorCode.CALLBACK_FAILED)


@pytest.mark.parametrize("name", ["at", "propensity", "unnamed"])
def test_a_column_of_another_length_also_where_no_outcome_stands_in_it(name: str) -> None:
    refuses(lambda: sw.check_log({**LOG, name: [0.5] * 99}, PROBLEM), InvalidOutcome, ErrorCode.WRONG_SHAPE, name)


@pytest.mark.parametrize(
    ("column", "code"),
    [(["yes", "no"] * 50, ErrorCode.COLUMN_WRONG_TYPE), ([0.5], ErrorCode.WRONG_SHAPE)],
    ids=["words", "another length"],
)
def test_a_column_that_is_none_of_outcomes(column: list[Any], code: ErrorCode) -> None:
    refuses(lambda: Log.of({**LOG, "opt_out": column}, PROBLEM), InvalidOutcome, code)


WIDE = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (0, 1)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, by="country")},
)
ROWS: dict[str, Any] = {**LOG, "age": [0.2, 0.5] * 50, "country": ["NZ", "AU"] * 50, "propensity": [0.5] * 100}
DOORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "doctor": lambda log: sw.check_log(log, WIDE),
    "evaluate": lambda log: sw.evaluate_on_log(log, WIDE, "offer"),
    "forecast": lambda log: sw.forecast_from_log(log, WIDE, days=1, users_per_day=2, runs=38, progress=False),
    "learn_log_frame": lambda log: sw.Agent(WIDE).learn_log_frame(log),
}
LONG = 10**400
ODD: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "one number short": ({"age": [0.5] * 99}, ErrorCode.WRONG_SHAPE),
    "no probabilities": ({"propensity": []}, ErrorCode.WRONG_SHAPE),
    "one time short": ({"at": [1.7e9] * 99}, ErrorCode.WRONG_SHAPE),
    "half of the times": ({"at": [1.7e9] * 50}, ErrorCode.WRONG_SHAPE),
    "a column of nobody's": ({"note": ["x"]}, ErrorCode.WRONG_SHAPE),
    "actions that are mappings": ({"action": [{}] * 100}, ErrorCode.INVALID_NAME),
    "an action that is a set": ({"action": ["offer"] * 99 + [{"offer"}]}, ErrorCode.INVALID_NAME),
    "segments that are mappings": ({"country": [{}] * 100}, ErrorCode.INVALID_NAME),
    "numbers of many digits": ({"age": [LONG] * 100}, ErrorCode.OUT_OF_RANGE),
}
TIMES: dict[str, Any] = {"many digits": LONG, "no end": float("inf"), "a mapping": {}, "a set": {1}, "a word": "soon"}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("columns", "code"), ODD.values(), ids=ODD)
def test_odd_columns_are_refused_by_every_door(door: str, columns: dict[str, Any], code: ErrorCode) -> None:
    by_agent = door == "learn_log_frame" and code is not ErrorCode.WRONG_SHAPE  # it checks actions and users
    code = ErrorCode.INVALID_ROW if by_agent and "action" not in columns else code
    refuses(lambda: DOORS[door]({**ROWS, **columns}), InvalidActions if by_agent else InvalidOutcome, code)


@pytest.mark.parametrize("door", ["doctor", "evaluate", "forecast"])  # an agent's log is one batch, and has no times
@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_what_is_no_time_is_refused(door: str, time: Any) -> None:
    refuses(lambda: DOORS[door]({**ROWS, "at": [time] * 100}), InvalidOutcome, ErrorCode.INVALID_TIME)


def test_a_time_that_is_missing_is_none() -> None:
    times = np.array(["NaT", "2026-03-01"] * 50, dtype="datetime64[s]")
    assert np.isnan(np.asarray(Log.of({**ROWS, "at": times}, WIDE).at)).tolist() == [True, False] * 50


def test_versions_that_are_mappings_are_refused() -> None:
    refuses(lambda: DOORS["evaluate"]({**ROWS, "version": [{}] * 100}), InvalidOutcome, ErrorCode.INVALID_NAME)
