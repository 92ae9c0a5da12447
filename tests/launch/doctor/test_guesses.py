"""What a proposal may guess of a log, and what it has to ask for."""

import numpy as np
import pytest

import stagewise as sw
from stagewise.launch.doctor.findings import FindingCode
from stagewise.problem.errors import ErrorCode


def log_of(rows=600, actions=("today", "offer")):
    chance = np.random.default_rng(3)
    return {
        "arm": np.array(actions, dtype=object)[chance.integers(0, len(actions), rows)],
        "age": chance.integers(18, 90, rows),
        "click": (chance.random(rows) < 0.1) * 1,
        "opt_out": (chance.random(rows) < 0.05) * 1,
        "drawn_with": np.full(rows, 1.0 / len(actions)),
        "sent": 1.7e9 + np.arange(rows),
    }


def refused(log, code, **arguments):
    """Return the details of the error that a proposal from a log is refused with."""
    with pytest.raises(sw.StagewiseError) as caught:
        sw.check_log(log, **{"limits": {"opt_out": 0.2}, **arguments})
    assert caught.value.code is code
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return caught.value.details


def test_the_safe_action_is_asked_for_where_no_name_says_it():
    log = log_of(actions=("offer", "digest"))
    assert "'digest'" in refused(log, ErrorCode.SAFE_ACTION_MISSING)["actions"]
    assert sw.check_log(log, limits={"opt_out": 0.2}, safe="digest").problem.safe_name == "digest"
    assert sw.check_log(log_of(), limits={"opt_out": 0.2}).problem.safe_name == "today"


def test_nothing_is_proposed_from_a_handful_of_rows():
    details = refused(log_of(99), ErrorCode.LOG_TOO_SHORT, safe="today")
    assert (details["rows"], details["min_rows"]) == (99, 100)
    sw.check_log(log_of(100), limits={"opt_out": 0.5}, safe="today")


@pytest.mark.parametrize(("column", "entry"), [("opt_out", "yes"), ("click", "n/a")])
def test_the_one_text_among_numbers_is_named(column, entry):
    log = log_of()
    log[column] = [str(value) for value in log[column]]
    log[column][417] = entry
    details = refused(log, ErrorCode.COLUMN_WRONG_TYPE)
    assert details["name"] == repr(column)
    assert f"{entry!r} in row 417 of 600" in details["entries"]


def test_a_number_with_a_slip_is_left_out_and_not_taken_for_groups():
    log = log_of()
    log["age"] = [str(value) for value in log["age"]]
    log["age"][7] = "old"
    found = sw.check_log(log, limits={"opt_out": 0.2})
    assert "age" in found.proposal.roles.ignored
    assert "age" not in found.problem.context
    assert found.problem.divisions == ()


def test_the_header_repeats_every_name_that_was_given():
    columns = {"at": "sent", "propensity": "drawn_with", "action": "arm"}
    found = sw.check_log(log_of(), limits={"opt_out": 0.2}, columns=columns)
    assert "--columns at=sent --columns propensity=drawn_with --columns action=arm" in found.to_toml()
    assert found.log.propensities is not None


def test_delta_says_what_it_pays_for_also_where_safe_is_left_out():
    kept, left = (sw.check_log(log_of(), limits={"opt_out": limit}) for limit in (0.3, 0.051))
    assert kept.problem.limits["opt_out"].safe_bound is not None
    assert left.problem.limits["opt_out"].safe_bound is None
    assert kept.problem.delta == left.problem.delta  # what is set aside is paid for in any case
    assert left.proposal.reasons["delta"].startswith(kept.proposal.reasons["delta"])


def test_propensities_in_percent_are_taken_for_that():
    log = log_of()
    problem = sw.Problem(
        action_names=["today", "offer"], safe_name="today", reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.2)}
    )
    log["drawn_with"] = np.full(600, 50.0)
    found = sw.check_log(log, problem, columns={"action": "arm", "propensity": "drawn_with"})
    assert found["propensities"].code is FindingCode.PROPENSITY_OUT_OF_RANGE
    assert found["propensities"].details["example"] == 50.0
