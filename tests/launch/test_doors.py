"""What the doctor, the forecast and the evaluation refuse of a log, with the column in question."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.launch.log import Log

PROBLEM = sw.Problem(
    actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.2, safe=0.0)}
)
LOG: dict[str, Any] = {"action": ["nothing", "offer"] * 50, "click": [0, 1] * 50, "opt_out": [0, 0] * 50}


def without(name: str) -> dict[str, Any]:
    return {key: column for key, column in LOG.items() if key != name}


PROPOSED: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "no rows": ({name: [] for name in LOG}, {}, ["no rows"]),
    "columns of two lengths": ({**LOG, "click": [0]}, {}, ["several lengths"]),
    "an action that is no column": (LOG, {"action": "act"}, ["action is 'act'", "'click'"]),
    "no column called as actions are": ({"a": LOG["action"], **without("action")}, {}, ["which column is the action"]),
    "no column called as costs are": ({"c": [0] * 100, **without("opt_out")}, {}, ["which columns have limits"]),
    "limits in one word": (LOG, {"limits": "opt_out"}, ["limits is 'opt_out'", "a list of columns"]),
    "no outcome at all": ({**LOG, "click": [float("nan")] * 100}, {"reward": "click"}, ["click"]),
}


@pytest.mark.parametrize(("log", "told", "parts"), PROPOSED.values(), ids=PROPOSED)
def test_what_nothing_can_be_proposed_from(log: dict[str, Any], told: dict[str, Any], parts: list[str]) -> None:
    refuses(lambda: sw.doctor(log, **told), InvalidOutcome, *parts)


@pytest.mark.parametrize("users", [0.1, 1e8])
def test_users_that_no_day_has(users: float) -> None:
    refuses(lambda: sw.forecast(LOG, PROBLEM, days=1, users=users, runs=38), InvalidProblem, "users is", "from 1 to")


def test_a_candidate_that_fails_is_told_with_its_user() -> None:
    def fails(user: dict[str, Any]) -> str:
        raise RuntimeError("no model loaded")

    refuses(lambda: sw.evaluate(LOG, PROBLEM, fails, propensity=0.5), InvalidActions, "failed at", "no model loaded")


@pytest.mark.parametrize("name", ["at", "propensity", "unnamed"])
def test_a_column_of_another_length_also_where_no_outcome_stands_in_it(name: str) -> None:
    refuses(lambda: sw.doctor({**LOG, name: [0.5] * 99}, PROBLEM), InvalidOutcome, "several lengths", name, "99 values")


@pytest.mark.parametrize(
    ("column", "part"),
    [(["yes", "no"] * 50, "yes"), ([0.5], "several lengths")],
    ids=["words", "another length"],
)
def test_a_column_that_is_none_of_outcomes(column: list[Any], part: str) -> None:
    refuses(lambda: Log.of({**LOG, "opt_out": column}, PROBLEM), InvalidOutcome, part)


WIDE = sw.Problem(
    actions=["nothing", "offer"],
    safe="nothing",
    context={"age": (0, 1)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe=0.0, by="country")},
)
ROWS: dict[str, Any] = {**LOG, "age": [0.2, 0.5] * 50, "country": ["NZ", "AU"] * 50, "propensity": [0.5] * 100}
DOORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "doctor": lambda log: sw.doctor(log, WIDE),
    "evaluate": lambda log: sw.evaluate(log, WIDE, "offer"),
    "forecast": lambda log: sw.forecast(log, WIDE, days=1, users=2, runs=38, progress=False),
    "learn_frame": lambda log: sw.Agent(WIDE).learn_frame(log),
}
LONG = 10**400
ODD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one number short": ({"age": [0.5] * 99}, ["'age' has 99 values", "100", "several lengths"]),
    "no probabilities": ({"propensity": []}, ["'propensity' has 0 values", "several lengths"]),
    "one time short": ({"at": [1.7e9] * 99}, ["'at' has 99 values", "several lengths"]),
    "half of the times": ({"at": [1.7e9] * 50}, ["'at' has 50 values", "several lengths"]),
    "a column of nobody's": ({"note": ["x"]}, ["'note' has 1 values", "several lengths"]),
    "actions that are mappings": ({"action": [{}] * 100}, ["'action' holds {} in row 0", "no name"]),
    "an action that is a set": ({"action": ["offer"] * 99 + [{"offer"}]}, ["'action' holds {'offer'} in row 99"]),
    "segments that are mappings": ({"country": [{}] * 100}, ["'country' holds {} in row 0", "no name"]),
    "numbers of many digits": ({"age": [LONG] * 100}, ["'age'", "no double"]),
}
TIMES: dict[str, Any] = {"many digits": LONG, "no end": float("inf"), "a mapping": {}, "a set": {1}, "a word": "soon"}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("columns", "parts"), ODD.values(), ids=ODD)
def test_odd_columns_are_refused_by_every_door(door: str, columns: dict[str, Any], parts: list[str]) -> None:
    by_agent = door == "learn_frame" and "several lengths" not in parts  # who says what an action or a user must be
    refuses(lambda: DOORS[door]({**ROWS, **columns}), InvalidActions if by_agent else InvalidOutcome, *parts)


@pytest.mark.parametrize("door", ["doctor", "evaluate", "forecast"])  # an agent's log is one batch, and has no times
@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_what_is_no_time_is_refused(door: str, time: Any) -> None:
    refuses(lambda: DOORS[door]({**ROWS, "at": [time] * 100}), InvalidOutcome, "'at' holds", "no time")


def test_a_proposal_refuses_columns_of_several_lengths() -> None:
    refuses(lambda: sw.doctor({**ROWS, "at": [1.7e9] * 50}), InvalidOutcome, "'at' has 50 values", "several lengths")


def test_a_time_that_is_missing_is_none() -> None:
    times = np.array(["NaT", "2026-03-01"] * 50, dtype="datetime64[s]")
    assert np.isnan(np.asarray(Log.of({**ROWS, "at": times}, WIDE).at)).tolist() == [True, False] * 50


def test_versions_that_are_mappings_are_refused() -> None:
    refuses(lambda: DOORS["evaluate"]({**ROWS, "version": [{}] * 100}), InvalidOutcome, "'version' holds {} in row 0")
