"""Flights that are made up: how late they are around a day, and who keeps the limit while that moves."""

import io
import json
import zipfile
from datetime import date, timedelta

import numpy as np
import pytest

from stagewise_studies.cases import flights
from stagewise_studies.cases.flights.season import (
    ACTIONS,
    DAY,
    FEES,
    MONTH,
    build_parcels,
    build_season,
    measure_slope,
    smooth,
    unzip_table,
)
from stagewise_studies.columns import Columns
from stagewise_studies.replay import draw_visitors
from stagewise_studies.study import GUARDED, SAFE, TODAY, Size

DAYS = 60


def made_up(days: int = DAYS, apart: int = 1) -> Columns:
    """Return ten flights for each time of each day; late are more of them later in the day, and later in the year."""
    rows = []
    for day in range(days):
        at = date(2013, 1, 1) + timedelta(days=day * apart)
        for time, hour in enumerate((600, 1159, 1300, 2000)):
            late = round((time + 1) * day / days)
            delays = ["61"] * late + ["60"] * (9 - late) + ["NA" if time == 3 and day == 0 else "-5"]
            rows += [(at.year, at.month, at.day, hour, delay) for delay in delays]
    names = ("year", "month", "day", "sched_dep_time", "arr_delay")
    return {name: np.array(column).astype(str) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def test_a_flight_is_late_after_an_hour_or_if_it_never_arrives() -> None:
    season = build_season(made_up())
    assert season.flights.shape == (DAYS, 4)
    assert (season.flights == 10.0).all()
    assert season.late[0].tolist() == [0.0, 0.0, 0.0, 1.0]  # "NA": it did not arrive
    assert season.late[-1].tolist() == [1.0, 2.0, 3.0, 4.0]  # an hour is not over an hour
    assert np.unique(season.months).tolist() == [0, 1, 2]


def test_near_days_count_more_and_no_day_beyond_the_reach() -> None:
    season = build_season(made_up())
    day = 30
    weights = np.array([1.0, 2.0, 1.0])
    expected = weights @ season.late[day - 1 : day + 2] / (weights.sum() * 10.0)
    np.testing.assert_allclose(smooth(season, 1)[day], expected)
    np.testing.assert_allclose(smooth(season, 0), season.late / 10.0)
    assert measure_slope(smooth(season, 30)) < measure_slope(smooth(season, 0))


def test_parcels_come_in_the_order_of_dates_and_pay_if_they_are_in_time() -> None:
    people = build_parcels(build_season(made_up()))
    days = draw_visitors(people, DAYS * 7, 0)
    assert np.bincount(days).tolist() == [7] * DAYS
    assert (np.diff(days) >= 0).all()
    assert (people.cost[:, 0] == 0.0).all()
    np.testing.assert_allclose(people.reward, (1.0 - people.cost) * FEES)
    assert set(people.groups) == {DAY, MONTH}


def test_the_table_is_read_from_the_archive_in_the_wheel() -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("nycflights.csv", "year,month\n2013,1\n")
    assert unzip_table(inner.getvalue())["year"].tolist() == ["2013"]


@pytest.mark.long
def test_the_study_plays_every_declaration() -> None:
    season = build_season(made_up(24, apart=15))
    played, size = flights.policies(season), Size(1, 24 * 40)
    result = {"size": size._asdict(), **flights.play(season, played, size)}
    json.dumps(result, allow_nan=False)
    rows = {row["policy"]: row for row in result["rows"]}
    assert set(rows) == set(played)
    assert rows[GUARDED]["parcels over the limit"] == 0.0
    assert rows[GUARDED]["fee"] > rows[SAFE]["fee"]
    assert rows[TODAY]["fee"] == pytest.approx(FEES[3] * (1.0 - rows[TODAY]["late"]), abs=1e-4)
    assert {len(by_day) for by_day in result["late by day"].values()} == {24}
    assert set(result["rates"]) == set(ACTIONS)
    assert len(flights.claims(result)) == 7
    flights.picture(result)
