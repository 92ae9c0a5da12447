"""Not a single event where many are expected: the chance of it is exact, and bounded where rates differ."""

import itertools

import numpy as np
import pytest
from tests.chance import allowed
from tests.launch.doctor.honest import drawn, problem

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.row_checks import check_outcome_gaps
from stagewise.launch.statistics import log_empty_probability


def test_the_chance_of_an_empty_stretch_is_exact_where_others_are_alike_and_a_bound_where_they_are_not():
    """Against all ways to place three events in nine rows, each row with odds of its own."""
    for odds in ([1.0] * 6, [0.2, 0.2, 1.0, 1.0, 1.8, 1.8], [0.01, 0.01, 0.01, 1.0, 2.0, 2.97]):
        weights = [*odds, *[0.5] * 3]
        ways = {one: np.prod([weights[place] for place in one]) for one in itertools.combinations(range(9), 3)}
        exact = sum(way for one, way in ways.items() if max(one) < 6) / sum(ways.values())
        told = np.exp(log_empty_probability(np.array([3]), np.array([6]), np.array([3]), 0.5))
        assert told == pytest.approx(exact) if len(set(odds)) == 1 else told >= exact


def log(chance, rows, last, tail):
    """Return a log whose opt-outs are `tail` times as frequent in its last days."""
    at = np.sort(chance.uniform(0.0, 30.0, rows))
    told = drawn(chance, rows, at=1.7e9 + 86_400.0 * at)
    rate = np.where(at > 30.0 - last, tail, 1.0)
    told["opt_out"] = (chance.random(rows) < 0.02 * rate) * 1.0
    return told


@pytest.mark.parametrize("tail", [1.0, 0.5])
def test_a_log_that_is_half_as_frequent_at_its_end_is_found_no_more_often_than_said(tail):
    level, found = 0.3, 0
    for run in range(40):
        frame = log(np.random.default_rng([61, run]), 400, 3.0, tail)
        profile = LogProfile(Log.of(frame, problem({}, value=0.05)))
        found += any(finding.verdict == "contradicts" for finding in check_outcome_gaps(profile, level))
    assert found <= allowed(40, level)


def test_what_is_surely_lost_contradicts_and_what_may_be_rarer_is_noted():
    chance = np.random.default_rng(5)
    verdicts = [
        sw.check_log(log(chance, 10_000, days, 0.0), problem({}))["outcome_gaps"].verdict for days in (0.1, 2.5, 6.0)
    ]
    assert verdicts == ["ok", "note", "contradicts"]


def test_a_log_without_times_or_without_events_is_fine():
    frame = log(np.random.default_rng(6), 4_000, 6.0, 0.0)
    assert sw.check_log({**frame, "opt_out": np.zeros(4_000)}, problem({}))["outcome_gaps"].verdict == "ok"
    del frame["at"]
    assert sw.check_log(frame, problem({}))["outcome_gaps"].verdict == "ok"


def test_a_finding_says_where_and_how_many():
    frame = log(np.random.default_rng(7), 20_000, 0.0, 1.0)
    frame["opt_out"] = np.where(frame["at"] % 86_400.0 >= 15 * 3600.0, 0.0, frame["opt_out"])
    details = sw.check_log(frame, problem({}))["outcome_gaps"].details
    assert details["period"] == "from 15:00 to 00:00 UTC"
    assert details["rows"] == 7343
    assert round(details["expected"]) == 160
