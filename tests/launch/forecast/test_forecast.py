"""Forecasts from a log: what they say, what they refuse, and that their bands hold what then happens."""

import json
import re
from typing import Any

import numpy as np
import pytest
from tests.launch.forecast.campaigns import covered
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.launch.forecast.case_forecast import CaseForecast, DailyRuns, GainVerdict, build_cases, summarize_case
from stagewise.launch.forecast.fitted_worlds import FittedWorlds, find_constant_features
from stagewise.launch.forecast.forecast_log import ForecastLog
from stagewise.launch.notes import NoteCode
from stagewise.launch.statistics import compute_band
from stagewise.problem.errors import ErrorCode

RNG = np.random.default_rng(2)
PROBLEM = sw.Problem(
    action_names=["nothing", "digest", "offer"],
    safe_name="nothing",
    context={"age": (18, 98)},
    reward=sw.Reward("click"),
    limits={
        "opt_out": sw.Limit(0.2, safe_bound=0.1, model="rates"),
        "complaint": sw.Limit(0.3, safe_bound=0.2, by="country"),
    },
)
SIZE: dict[str, Any] = {"days": 3, "users_per_day": 4, "runs": 38, "progress": False}


def log(rows: int = 240, **changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    done = rng.choice(3, rows, p=[0.6, 0.2, 0.2])
    told: dict[str, Any] = {
        "action": np.array(PROBLEM.action_names, dtype=object)[done],
        "age": rng.uniform(18, 98, rows),
        "country": rng.choice(["NZ", "AU"], rows).tolist(),
        "click": (rng.random(rows) < np.array([0.1, 0.3, 0.5])[done]).astype(float),
        "opt_out": (rng.random(rows) < np.array([0.02, 0.05, 0.1])[done]).astype(float),
        "complaint": (rng.random(rows) < 0.05).astype(float),
    }
    return told | changed


@pytest.mark.long
def test_a_forecast_says_what_comes_and_what_each_limit_costs(tmp_path: Any) -> None:
    found = sw.forecast_from_log(log(), PROBLEM, limits={"opt_out": [0.15, 0.3]}, **SIZE)
    values = [case.case.values["opt_out"] for case in found.case_forecasts]
    assert values == [0.15, 0.2, 0.3]
    assert [case.case.declared for case in found.case_forecasts] == [False, True, False]
    assert [case.price is None for case in found.case_forecasts] == [False, False, True]
    assert found.declared.gain.low.shape == (3,)
    assert found.declared.action_shares.sum(axis=1) == pytest.approx(1.0)
    assert (found.horizon.days, found.horizon.users) == (3, 4)
    found.save(tmp_path)
    told = json.loads((tmp_path / "forecast.json").read_text())
    assert told == found.to_dict()
    assert (tmp_path / "forecast.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "forecast.html").read_text()
    assert page.index("<img") < page.index("<table")
    assert not re.search(r"(src|href)='?(?!data:)[a-z]+:|@import|<script", page)


def outlook_of(gains: Any, safe: float = 0.04) -> CaseForecast:
    """Return what is made of runs (runs, days) with these gains of a user above a safe action that brings `safe`."""
    runs, days = np.shape(gains)
    zeros = np.zeros((runs, 2))
    before = np.full((runs, days, 3), safe)
    case = next(iter(build_cases(PROBLEM, None)))
    given = np.full((runs, days, 3), 1.0 / 3.0)
    return summarize_case(
        case, DailyRuns(safe + np.asarray(gains), before[..., 1:], before, before, given, *[zeros] * 3), 20, None
    )


@pytest.mark.parametrize(
    ("gains", "day", "verdict"),
    [
        (np.where(np.arange(38)[:, None] < 2, 0.0, [[1e-7, 2e-4, 2e-4]]), None, GainVerdict.UNCLEAR),
        (np.full((38, 3), 1e-5), None, GainVerdict.SMALL_GAIN),  # certainly above, and less than a hundredth
        (np.tile([-1e-3, 1e-3, 2e-3], (38, 1)), 2, GainVerdict.BETTER),
        (np.tile([1e-3, 1e-3, -1e-5], (38, 1)), None, GainVerdict.SMALL_GAIN),
        (np.full((38, 3), -1e-3), None, GainVerdict.WORSE),
    ],
)
def test_the_verdict_is_what_the_bands_allow(gains: Any, day: int | None, verdict: GainVerdict) -> None:
    found = outlook_of(gains)
    assert (found.better_from, found.verdict) == (day, verdict)
    if day is not None:
        assert (found.gain.low[day - 1 :] > 0.01 * 0.04).all()


@pytest.mark.long
def test_a_forecast_is_a_function_of_log_problem_and_seed() -> None:
    one, same, other = (sw.forecast_from_log(log(), PROBLEM, seed=seed, **SIZE).to_dict() for seed in (1, 1, 2))
    assert one == same
    assert one["cases"] != other["cases"]


def test_limits_that_the_safe_action_breaks_are_told_and_the_rest_is_played() -> None:
    found = sw.forecast_from_log(log(), PROBLEM, limits={"opt_out": [0.05]}, **SIZE)
    assert [case.values["opt_out"] for case in found.rejected] == [0.05]
    error = found.rejected[0].error
    assert error is not None
    assert found.to_dict()["rejected"][0]["code"] == error.code


def test_a_log_whose_safe_action_is_over_the_limit_says_so() -> None:
    found = sw.forecast_from_log(log(opt_out=np.tile([1.0, 0.0, 1.0], 80)), PROBLEM, **SIZE)
    assert found.declared.safe_action_over_limit["opt_out"] == 1.0
    assert found.declared.runs_over_limit["opt_out"] == 1.0


@pytest.mark.long
def test_of_actions_without_rows_anything_is_thought_possible() -> None:
    one = log(action=["nothing"] * 240)
    found = sw.forecast_from_log(one, PROBLEM, **SIZE)
    note = next(note for note in found.notes if note.code is NoteCode.ACTIONS_WITHOUT_ROWS)
    assert sorted(note.details["actions"]) == ["digest", "offer"]
    worlds = [FittedWorlds.of(ForecastLog.of(one, PROBLEM), 0)(run).table for run in range(40)]
    rates = np.array([table[1].mean(axis=0) for table in worlds])
    assert rates[:, 0].std() < 0.05
    assert rates[:, 1].min() < 0.1
    assert rates[:, 1].max() > 0.9


@pytest.mark.long
def test_a_number_that_is_the_same_in_all_rows_of_an_action_has_no_slope_there() -> None:
    rng, rows = np.random.default_rng(3), 2000
    problem = sw.Problem(
        action_names=["nothing", "offer", "digest"],
        safe_name="nothing",
        context={"discount": (0, 0.5), "age": (18, 98)},
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.2, safe_bound=0.1, model="rates")},
    )
    done = rng.integers(0, 3, rows)
    discount = np.where(done == 0, 0.0, rng.choice([0.1, 0.2, 0.4], rows))
    told = {
        "action": np.array(problem.action_names, dtype=object)[done],
        "discount": discount,
        "age": rng.uniform(18, 98, rows),
        "click": (rng.random(rows) < np.where(done == 0, 0.0, 0.1 + 0.5 * discount)).astype(float),
        "opt_out": (rng.random(rows) < 0.05).astype(float),
    }
    reading = ForecastLog.of(told, problem)
    tables = np.array([FittedWorlds.of(reading, 0)(run).table[0].mean(axis=0) for run in range(40)])
    assert tables[:, 0].max() < 0.01  # 0 clicks of some 670; with a slope of any size it would be 0.3 in some
    slopes = FittedWorlds.of(reading, 0).signals[0]
    assert slopes.fixed.tolist() == [[False, True, False], [False] * 3, [False] * 3]  # type: ignore[union-attr]
    assert slopes.centres[1:, 1] == pytest.approx(0.125, abs=0.1)  # type: ignore[union-attr]
    notes = sw.forecast_from_log(told, problem, **SIZE).notes
    note = next(note for note in notes if note.code is NoteCode.FEATURE_CONSTANT_FOR_ACTION)
    assert note.details == {"action": "nothing", "names": ["discount"]}


def test_few_rows_that_are_alike_by_chance_keep_their_slopes() -> None:
    users = np.column_stack([np.ones(40), np.repeat([0.0, 1.0], [36, 4])])
    assert not find_constant_features(np.repeat([0, 1, 0], [3, 20, 17]), users, 2).any()


def test_what_is_missing_is_left_out_or_filled_in_as_declared() -> None:
    gaps = log(click=np.where(np.arange(240) < 10, np.nan, 0.0), action=["ofer", *log()["action"][1:]])
    found = ForecastLog.of(gaps, PROBLEM)
    assert found.log.rows == 230
    assert [(note.code, note.details) for note in found.notes] == [
        (NoteCode.ROWS_WITH_UNKNOWN_ACTION, {"count": 1}),
        (NoteCode.ROWS_INCOMPLETE, {"count": 9}),
    ]
    late = sw.Problem.from_dict(PROBLEM.to_dict() | {"reward": {"name": "click", "window": "1d"}})
    filled = ForecastLog.of(gaps, late)
    assert filled.log.rows == 239
    assert filled.notes[0].code is NoteCode.OUTCOMES_FILLED
    assert (filled.notes[0].details["default"], filled.notes[0].details["has_times"]) == (0.0, False)


def waited(rows: int = 2000, days: float = 10.0) -> tuple[sw.Problem, dict[str, Any]]:
    """Return a log cut off while the last week's opt-outs are still to come: a half of them, of all."""
    limits = {"opt_out": sw.Limit(0.3, safe_bound=0.2, window="7d", model="rates")}
    problem = sw.Problem(action_names=["today", "offer"], safe_name="today", reward=sw.Reward("click"), limits=limits)
    rng = np.random.default_rng(4)
    at, out = np.sort(rng.uniform(0.0, days, rows)), rng.random(rows) < 0.2
    seen = out & (at + rng.uniform(0.0, 7.0, rows) <= days)
    told = {"at": 1.7e9 + 86400.0 * at, "action": rng.choice(["today", "offer"], rows), "click": np.zeros(rows)}
    return problem, told | {"opt_out": np.where(seen, 1.0, np.nan)}


def test_rows_whose_window_is_still_open_are_left_out_as_evaluate_does() -> None:
    problem, told = waited()
    found = ForecastLog.of(told, problem)
    closed = told["at"] + 7 * 86400.0 <= told["at"].max()
    assert found.log.rows == closed.sum()
    assert found.values[:, 1].mean() == pytest.approx(0.2, abs=0.05)  # of all rows it would be 0.13
    for notes in (
        found.notes,
        sw.forecast_from_log(told, problem, **SIZE).notes,
        sw.evaluate_on_log(told, problem).notes,
    ):
        note = next(note for note in notes if note.code is NoteCode.ROWS_WITH_OPEN_WINDOWS)
        assert note.details == {"name": "opt_out", "count": 2000 - closed.sum(), "window": "7d"}
    assert found.users_per_day == pytest.approx(200.0, rel=0.01)  # users came also while windows were open
    assert ForecastLog.of(told, problem, as_of=told["at"].max() + 7 * 86400.0).log.rows == 2000


def test_a_log_whose_windows_are_all_open_is_refused() -> None:
    problem, told = waited(days=6.0)
    with refused(sw.InvalidOutcome, ErrorCode.LOG_TOO_SHORT):
        ForecastLog.of(told, problem)


def test_users_a_day_come_from_the_times_and_half_is_the_later() -> None:
    at = np.arange(240)[::-1] * 3600.0
    found = ForecastLog.of(log(at=at), PROBLEM)
    assert found.users_per_day == pytest.approx(24.0, rel=0.01)
    half, start = found.warm_start("half")
    assert half is not None
    assert half.log.at.min() > at.mean()  # type: ignore[union-attr]
    assert start == "half"
    assert found.warm_start("nothing") == (None, "nothing")


@pytest.mark.parametrize(
    ("changed", "arguments", "code"),
    [
        ({"opt_out": [2.0] * 240}, {}, ErrorCode.INVALID_ROW),
        ({}, {"limits": {"opt_out": [2.0]}}, ErrorCode.OUT_OF_RANGE),
        ({}, {"limits": {"optout": [0.1]}}, ErrorCode.UNKNOWN_SIGNAL),
        ({}, {"limits": {"opt_out": list(np.linspace(0.1, 0.3, 40))}}, ErrorCode.TOO_LARGE),
        ({"age": [200.0] * 240}, {}, ErrorCode.LOG_EMPTY),
        ({"action": ["ofer"] * 240}, {}, ErrorCode.LOG_EMPTY),
        ({}, {"users_per_day": None}, ErrorCode.COLUMN_MISSING),
        ({"at": np.arange(240.0)}, {"users_per_day": None}, ErrorCode.LOG_TOO_SHORT),
        ({}, {"runs": 37}, ErrorCode.OUT_OF_RANGE),
        ({}, {"days": 0}, ErrorCode.OUT_OF_RANGE),
        ({}, {"users_per_day": -1}, ErrorCode.OUT_OF_RANGE),
        ({}, {"warm_start": "later"}, ErrorCode.INVALID_CHOICE),
        ({}, {"warm_start": "half"}, ErrorCode.COLUMN_MISSING),
        ({}, {"users_per_day": 1e7, "days": 3650, "runs": 100_000}, ErrorCode.TOO_LARGE),
    ],
)
def test_invalid_arguments_are_rejected(changed: Any, arguments: Any, code: ErrorCode) -> None:
    with pytest.raises(sw.StagewiseError) as caught:
        sw.forecast_from_log(log(**changed), PROBLEM, **SIZE | arguments)
    assert caught.value.code is code
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_that_is_missing_is_refused_and_can_be_given() -> None:
    told = log()
    told["clicked"] = told.pop("click")
    with refused(sw.InvalidOutcome, ErrorCode.COLUMN_MISSING):
        sw.forecast_from_log(told, PROBLEM, **SIZE)
    assert ForecastLog.of(told, PROBLEM, {"click": "clicked"}).log.rows == 240


def test_several_limits_are_combined() -> None:
    cases = build_cases(PROBLEM, {"opt_out": [0.2, 0.3], "complaint": [0.25, 0.3]})
    assert [tuple(case.values.values()) for case in cases] == [(0.2, 0.25), (0.2, 0.3), (0.3, 0.25), (0.3, 0.3)]


def test_a_band_holds_as_much_as_it_says_whichever_runs_were_drawn() -> None:
    rng = np.random.default_rng(0)
    ends = np.array([[one.low, one.high] for one in (compute_band(rng.random(100)) for _ in range(2000))])
    held = ends[:, 1] - ends[:, 0]
    assert 0.89 <= np.mean(held >= 0.9) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize("kind", ["rates", "linear", "amounts"])
def test_bands_of_few_small_campaigns_hold_what_happens(kind: str) -> None:
    """The small sibling of the next: 3 campaigns, of whose 27 bands all but a few hold."""
    counts = covered(1, kind, rows=300, days=2, users=10, runs=38)
    assert sum(counts.values()) >= 0.6 * len(counts)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["rates", "linear", "amounts"])
def test_bands_hold_what_happens_in_at_least_85_of_100_campaigns(kind: str) -> None:
    counts = covered(100, kind, rows=3000, days=10, users=100, runs=100, first=1000)
    assert min(counts.values()) >= 85, counts
