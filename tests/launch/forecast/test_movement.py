"""A forecast of a limit with a drift plays worlds that move as the log did."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.launch.forecast.forecast_log import ForecastLog, LogMovement
from stagewise.problem.timing import DAY

ROWS, MONTHS = 4_000, 4
NAMES = ["today", "offer"]


def draw_log(rise: float) -> dict[str, Any]:
    """Return four months of a log in which the opt-outs of "offer" rise from 5 % by so much."""
    rng, at = np.random.default_rng(3), 1.7e9 + np.arange(ROWS) * MONTHS * 30 * DAY / ROWS
    sent = rng.integers(0, 2, ROWS)
    rate = np.where(sent == 1, 0.05 + rise * np.arange(ROWS) / ROWS, 0.05)
    log = {"at": at, "action": np.array(NAMES, dtype=object)[sent], "opt_out": (rng.random(ROWS) < rate) * 1.0}
    return log | {"click": (rng.random(ROWS) < np.array([0.02, 0.1])[sent]) * 1.0}


def build(drift: Any, window: str | None = None) -> sw.Problem:
    limit = sw.Limit(0.8, safe_bound=0.2, drift=drift, window=window)
    return sw.Problem(action_names=NAMES, safe_name="today", reward=sw.Reward("click"), limits={"opt_out": limit})


def test_the_means_go_back_the_way_they_came_from_where_the_log_ended() -> None:
    log_rows = ForecastLog.of(draw_log(0.4), build("jumps"))
    movement = LogMovement.of(log_rows, 100)
    found = np.round(movement.centres[1, 1], 3)
    truth = 0.4 * (np.array([3.5, 2.5, 1.5, 0.5]) / 4 - 0.5)  # the last month first
    assert movement.centres.shape == (2, 2, MONTHS)
    assert found == pytest.approx(truth, abs=0.05)
    still = LogMovement.of(ForecastLog.of(draw_log(0.0), build("jumps")), 100)
    assert np.abs(still.centres[1]).max() < 0.03


@pytest.mark.parametrize("window", [pytest.param(None, marks=pytest.mark.slow), "1d"])
def test_a_forecast_begins_at_the_rates_of_the_last_month(window: str | None) -> None:
    how: dict[str, Any] = {"days": 2, "users_per_day": 20, "runs": 38, "progress": False}
    constant = sw.forecast_from_log(draw_log(0.4), build(None, window), **how).declared
    moving = sw.forecast_from_log(draw_log(0.4), build("0.1/30d", window), **how)
    assert moving.declared.action_shares.sum(axis=1) == pytest.approx(1.0)  # outcomes of every day are learned
    offered = moving.declared.action_shares[:, 1]
    assert offered.min() > 0.8
    expected = moving.declared.expected_costs["opt_out"].middle
    assert expected[0] == pytest.approx(0.05 + 0.35 * offered[0], abs=0.05)
    assert constant.expected_costs["opt_out"].middle[0] == pytest.approx(0.25, abs=0.04)
    one = moving.least_bounds["opt_out"]
    assert (one.action, one.limit) == ("offer", 0.8)
    assert 0.25 < one.bound < 0.8
    assert moving.to_dict()["least_bounds"]["opt_out"]["bound"] == one.bound
    assert "movement" in moving.to_dict()["worlds"]
