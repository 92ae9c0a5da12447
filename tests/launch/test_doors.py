"""What the doctor, the forecast and the evaluation refuse of a log, with the column in question."""

from typing import Any

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
    refuses(lambda: sw.doctor({**LOG, name: [0.5] * 99}, PROBLEM), InvalidOutcome, "several lengths", name, "99 rows")


@pytest.mark.parametrize(
    ("column", "part"),
    [(["yes", "no"] * 50, "yes"), ([0.5], "several lengths")],
    ids=["words", "another length"],
)
def test_a_column_that_is_none_of_outcomes(column: list[Any], part: str) -> None:
    refuses(lambda: Log.of({**LOG, "opt_out": column}, PROBLEM), InvalidOutcome, part)
