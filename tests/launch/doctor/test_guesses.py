"""What a proposal may guess of a log, and what it has to ask for."""

import csv
import io

import numpy as np
import pytest

import stagewise as sw


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


def refused(log, words, **told):
    with pytest.raises(sw.StagewiseError, match=words) as caught:
        sw.doctor(log, **{"limits": {"opt_out": 0.2}, **told})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_safe_action_is_asked_for_where_no_name_says_it():
    log = log_of(actions=("offer", "digest"))
    refused(log, "which action is safe.*'digest'.*--safe")
    assert sw.doctor(log, limits={"opt_out": 0.2}, safe="digest").problem.safe == "digest"
    assert sw.doctor(log_of(), limits={"opt_out": 0.2}).problem.safe == "today"


def test_nothing_is_proposed_from_a_handful_of_rows():
    refused(log_of(99), "the log has 99 rows; a proposal needs 100", safe="today")
    sw.doctor(log_of(100), limits={"opt_out": 0.5}, safe="today")


def test_one_action_is_none_to_choose_from():
    refused(log_of(actions=("today",)), "names the one action 'today', where there must be another to choose")
    refused(log_of(), "names 600 actions in 600 rows, where 300 are the most", action="sent")


@pytest.mark.parametrize(("column", "entry"), [("opt_out", "yes"), ("click", "n/a")])
def test_the_one_text_among_numbers_is_named(column, entry):
    log = log_of()
    log[column] = [str(value) for value in log[column]]
    log[column][417] = entry
    refused(log, f"{entry!r} in row 417 of 600, counted from 0, which is no number")


def test_a_number_with_a_slip_is_left_out_and_not_taken_for_groups():
    log = log_of()
    log["age"] = [str(value) for value in log["age"]]
    log["age"][7] = "old"
    found = sw.doctor(log, limits={"opt_out": 0.2})
    assert "'age' is left out: 599 of its 600 values are numbers, and it holds 'old' in row 7" in found.toml()
    assert found.problem.divisions == ()


def test_the_header_repeats_every_name_that_was_given():
    names = {"at": "sent", "propensity": "drawn_with", "action": "arm"}
    found = sw.doctor(log_of(), limits={"opt_out": 0.2}, names=names)
    assert "--names at=sent,propensity=drawn_with,action=arm" in found.toml()
    assert found.log.propensities is not None


def test_delta_says_what_it_pays_for_also_where_safe_is_left_out():
    kept, left = (sw.doctor(log_of(), limits={"opt_out": limit}) for limit in (0.3, 0.051))
    assert kept.problem.limits["opt_out"].safe is not None
    assert "`safe` is left out" not in kept.toml()
    assert left.problem.limits["opt_out"].safe is None
    assert "0.01 pays for reading the safe action's rates; `safe` is left out" in left.toml()


def test_what_is_left_is_written_as_it_was():
    found = sw.doctor(log_of(), limits={"opt_out": 0.2})
    rows = list(csv.DictReader(io.StringIO(found.rest_as_csv())))
    assert all(row["age"].isdigit() and row["opt_out"] in ("0", "1") for row in rows)


def test_propensities_in_percent_are_taken_for_that():
    log = log_of()
    problem = sw.Problem(
        actions=["today", "offer"], safe="today", reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.2)}
    )
    log["drawn_with"] = np.full(600, 50.0)
    found = sw.doctor(log, problem, names={"action": "arm", "propensity": "drawn_with"})
    assert "25 percent are 0.25" in found["propensities"].remedy
