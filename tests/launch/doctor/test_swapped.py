"""Two columns that were swapped: what their ranges can tell is said, and no more."""

import numpy as np
from tests.launch.doctor.honest import drawn, problem

import stagewise as sw
from stagewise.launch.doctor.findings import FindingCode

RANGES = {"tenure_days": (0, 4200), "sends_30d": (0, 60)}


def log(swapped: bool, cut: bool = True):
    chance, rows = np.random.default_rng(3), 4_000
    days, sends = np.minimum(chance.exponential(500.0, rows).round(), 4000.0), chance.poisson(8.0, rows) * 1.0
    if swapped:
        days, sends = sends, np.minimum(days, 60.0) if cut else days
    return drawn(chance, rows, tenure_days=days, sends_30d=sends)


def test_numbers_that_fit_both_ranges_are_noted_where_one_was_cut_off():
    found = sw.check_log(log(swapped=True), problem(RANGES))
    assert not found.contradicted
    assert found["units"].verdict == "note"
    assert found["units"].code is FindingCode.COLUMNS_MAY_BE_SWAPPED
    assert (found["units"].details["name"], found["units"].details["other"]) == ("tenure_days", "sends_30d")
    assert sw.check_log(log(swapped=False), problem(RANGES))["units"].verdict == "ok"


def test_a_range_that_is_wide_is_not_taken_for_a_swap():
    found = sw.check_log(log(swapped=False), problem({"tenure_days": (0, 4200), "sends_30d": (0, 4000)}))["units"]
    assert found.code is FindingCode.RANGE_HARDLY_USED


def test_numbers_out_of_range_that_lie_in_each_others_are_told_so():
    chance, rows = np.random.default_rng(4), 2_000
    frame = drawn(chance, rows, age=chance.uniform(0.0, 10.0, rows), score=chance.uniform(18.0, 90.0, rows))
    found = sw.check_log(frame, problem({"age": (18, 99), "score": (0, 15)}))["ranges"]
    assert found.verdict == "contradicts"
    assert (found.details["name"], found.details["swapped_with"]) == ("age", "score")
    found = sw.check_log({**frame, "age": frame["score"]}, problem({"age": (18, 99), "score": (0, 15)}))["ranges"]
    assert found.verdict == "contradicts"
    assert found.details["swapped_with"] is None
