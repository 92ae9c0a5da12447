"""Logs that nobody would wish for: a sentence or findings, and never anything else."""

import json

import numpy as np
import pytest
from tests.launch.doctor.jobs import PROBLEM, clean

import stagewise as sw
from stagewise.launch.doctor.findings import CheckName
from stagewise.problem.errors import ErrorCode

SMALL = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, by="country"), "kept": sw.Limit(sw.AtLeast(0.5), model="rates")},
)


def rows(count, seed=0):
    chance = np.random.default_rng(seed)
    return {
        "action": np.array(["nothing", "offer"], dtype=object)[chance.integers(0, 2, count)],
        "age": chance.uniform(18.0, 99.0, count),
        "country": np.array(["NZ", "AU"], dtype=object)[chance.integers(0, 2, count)],
        "click": (chance.random(count) < 0.1) * 1.0,
        "opt_out": (chance.random(count) < 0.01) * 1.0,
        "kept": (chance.random(count) < 0.9) * 1.0,
    }


def changed(count=400, **columns):
    return {**rows(count), **{name: np.array(column(count), dtype=object) for name, column in columns.items()}}


LOGS = {
    "three rows": rows(3),
    "one row": rows(1),
    "one action": changed(action=lambda n: ["offer"] * n),
    "no action known": changed(action=lambda n: [None] * n),
    "constant numbers": changed(age=lambda n: [30.0] * n),
    "outcomes all missing": changed(opt_out=lambda n: [None] * n),
    "everything missing": changed(
        **dict.fromkeys(("age", "country", "click", "opt_out", "kept"), lambda n: [None] * n)
    ),
    "never an event": changed(click=lambda n: [0] * n, opt_out=lambda n: [0] * n),
    "always an event": changed(click=lambda n: [1] * n, opt_out=lambda n: [1] * n),
    "infinite numbers": changed(age=lambda n: [float("inf")] * n, click=lambda n: [float("-inf")] * n),
    "a segment a row": changed(country=lambda n: [f"c{i}" for i in range(n)]),
    "a user with one number missing": changed(age=lambda n: [None, *range(20, 19 + n)]),
    "columns named like checks": changed(drift=range, leaks=lambda n: ["x"] * n, missing=range),
    "times all missing": changed(at=lambda n: [None] * n),
    "times of one moment": changed(at=lambda n: ["2026-03-01T12:00:00"] * n),
    "propensities of nothing": changed(propensity=lambda n: [0.0] * n),
    "propensities missing": changed(propensity=lambda n: [None] * n),
    "lists in a column": changed(note=lambda n: [str([i]) for i in range(n)]),
}
REFUSED = (
    "one row",
    "three rows",
    "one action",
    "no action known",
    "outcomes all missing",
    "everything missing",
    "infinite numbers",
)


DRAWN = ("one row", "everything missing", "infinite numbers", "a segment a row", "columns named like checks")


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
def test_a_strange_log_gets_findings(name):
    found = sw.check_log(LOGS[name], SMALL)
    assert tuple(finding.check for finding in found.findings) == tuple(CheckName)
    assert len(str(found).splitlines()) == len(tuple(CheckName)) + 2
    json.loads(found.to_json())
    if name in DRAWN:
        found.plot().draw_without_rendering()


@pytest.mark.parametrize("name", LOGS)
def test_a_strange_log_gets_a_proposal_or_a_sentence(name):
    if name in REFUSED:
        with pytest.raises(sw.StagewiseError, match=r".{20,400}"):
            sw.check_log(LOGS[name], limits={"opt_out": 0.02}, safe="nothing")
    else:
        found = sw.check_log(LOGS[name], limits={"opt_out": 0.02}, safe="nothing")
        assert found.holdout.rows >= 1
        assert sw.Problem.from_dict(found.problem.to_dict()).to_dict() == found.problem.to_dict()


def test_very_many_groups_and_a_name_for_every_row():
    frame = rows(20_000)
    frame["city"] = np.array([f"c{i % 10_000}" for i in range(20_000)], dtype=object)
    frame["email"] = np.array([f"m{i}" for i in range(20_000)], dtype=object)
    found = sw.check_log(frame, SMALL)
    assert found["segments"].verdict == "ok"
    assert sw.check_log(frame, limits={"opt_out": 0.05}).problem.limits["opt_out"].by is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"problem": 3}, ErrorCode.WRONG_TYPE),
        ({"problem": SMALL, "reward": "click"}, ErrorCode.CONFLICTING_SETTINGS),
        ({"reward": "clck"}, ErrorCode.COLUMN_MISSING),
        ({"limits": {"opt_out": 2.0}}, ErrorCode.LIMIT_NEVER_BINDS),
        ({"limits": {}}, ErrorCode.MISSING_VALUE),
        ({"limits": ["click"], "reward": "click"}, ErrorCode.DUPLICATE_NAME),
        ({"limits": ["opt_out"], "safe": "today"}, ErrorCode.UNKNOWN_ACTION),
        ({"limits": ["opt_out"], "action": "age"}, ErrorCode.COLUMN_AMBIGUOUS),
        ({"limits": ["country"]}, ErrorCode.COLUMN_WRONG_TYPE),
        ({"columns": {"propensity": "typo"}}, ErrorCode.COLUMN_MISSING),
        ({"columns": {"clik": "click"}}, ErrorCode.UNKNOWN_NAME),
        ({"columns": {"clik": "click"}, "problem": SMALL}, ErrorCode.UNKNOWN_NAME),
        ({"proposal_fraction": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"alpha": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"delta": 0.9}, ErrorCode.OUT_OF_RANGE),
        ({"delta": 0.5, "proposal_fraction": None}, ErrorCode.OUT_OF_RANGE),
        ({"ignore_checks": "drift"}, ErrorCode.WRONG_TYPE),
        ({"ignore_checks": ["drfit"]}, ErrorCode.UNKNOWN_NAME),
    ],
)
def test_invalid_arguments_are_rejected(arguments, code):
    with pytest.raises(sw.StagewiseError) as caught:
        sw.check_log(rows(400), **{"problem": None, **arguments})
    assert caught.value.code is code


def test_what_is_accepted_is_noted():
    frame = clean(1, 4_000)
    frame["age"][3] = 200.0
    assert sw.check_log(frame, PROBLEM).contradicted
    found = sw.check_log(frame, PROBLEM, ignore_checks=["ranges"])
    assert not found.contradicted
    assert found["ranges"].verdict == "note"
