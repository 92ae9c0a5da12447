"""Ranges hold all users, and what a range means for the length of parameters is reckoned and not assumed."""

import numpy as np
import pytest

import stagewise as sw


def side_by_side(seed, apart, rows=4_000):
    """Return a log with two numbers that are nearly one, and clicks that are linear in what they are apart.

    Clicks stay in [.1, .9] for all users there are; in the corners of the ranges, where no user is, the line leaves
    [0, 1]. Scaled to [−1, 1], its parameter is (.5, a, −a) with a = .2/apart.
    """
    chance = np.random.default_rng(seed)
    first = chance.uniform(apart, 1.0 - apart, rows)
    second = first + apart * chance.uniform(-1.0, 1.0, rows)
    sent = chance.integers(0, 2, rows)
    return {
        "action": np.array(["today", "offer"], dtype=object)[sent],
        "first": first,
        "second": second,
        "click": (chance.random(rows) < 0.5 + 0.4 * (first - second) / apart) * 1,
        "opt_out": (chance.random(rows) < 0.05) * 1,
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("apart", [0.4, 0.2, 0.1])
def test_a_long_parameter_gets_a_bound_that_holds_it(seed, apart):
    found = sw.check_log(side_by_side(seed, apart), limits={"opt_out": 0.3})
    assert found.problem.ranges == (("first", (0.0, 1.0)), ("second", (0.0, 1.0)))
    length = float(np.linalg.norm([0.5, 0.2 / apart, 0.2 / apart]))
    assert found["norm_bound"].verdict == "ok"
    bound = found.problem.settings.get("norm_bound", 1.0)
    assert length <= bound <= 4.0 * length
    assert (bound > 1.0) == ("norm_bound" in found.proposal.reasons)


def test_a_norm_bound_is_in_the_file_that_is_loaded(tmp_path):
    found = sw.check_log(side_by_side(0, 0.1), limits={"opt_out": 0.3})
    (tmp_path / "problem.toml").write_text(found.to_toml(), encoding="utf-8")
    loaded = sw.Problem.load(tmp_path / "problem.toml")
    assert loaded.to_dict() == found.problem.to_dict()
    assert loaded.settings["norm_bound"] > 2.5
    assert "norm_bound" not in sw.check_log(side_by_side(0, 0.4), limits={"opt_out": 0.3}).problem.settings


@pytest.mark.parametrize("seed", range(3))
def test_ranges_hold_the_users_of_all_rows(seed):
    """Half of the rows rarely have the largest of a skewed number."""
    chance, rows = np.random.default_rng(seed), 1_000
    log = {
        "at": 1.7e9 + np.arange(rows),
        "action": np.array(["today", "offer"], dtype=object)[chance.integers(0, 2, rows)],
        "tenure": chance.lognormal(0.0, 2.0, rows),
        "click": (chance.random(rows) < 0.1) * 1,
        "opt_out": (chance.random(rows) < 0.05) * 1,
    }
    found = sw.check_log(log, limits={"opt_out": 0.2})
    low, high = dict(found.problem.ranges)["tenure"]
    assert low <= log["tenure"].min()
    assert high >= log["tenure"].max()
    sw.Agent(found.problem, seed=1).learn_log_frame(found.holdout.frame())


def test_the_range_of_an_amount_is_asked_for():
    chance = np.random.default_rng(1)
    log = side_by_side(1, 0.4)
    log["refund"] = chance.lognormal(0.0, 1.0, 4_000)
    found = sw.check_log(log, limits={"refund": 3.0}, safe="today")
    assert found.proposal.observed == ["refund"]
    assert found["ranges"].verdict in ("note", "contradicts")  # an outcome of the other rows may lie outside


def test_a_limit_far_below_the_safe_action_contradicts_also_by_segment():
    chance, rows = np.random.default_rng(1), 4_000
    log = {
        "action": np.array(["today", "offer"], dtype=object)[chance.integers(0, 2, rows)],
        "country": np.array(["NZ", "AU", "UK", "IE"], dtype=object)[chance.integers(0, 4, rows)],
        "click": (chance.random(rows) < 0.1) * 1,
        "opt_out": (chance.random(rows) < 0.01) * 1,
    }
    found = sw.check_log(log, limits={"opt_out": 0.00001})
    assert found.problem.limits["opt_out"].by == "country"
    assert found["safe_action"].verdict == "contradicts"
    assert found["safe_action"].details["all_segments"]
