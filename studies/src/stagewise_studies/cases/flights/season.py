"""Flights from New York by date and hour of departure, and the share that is late on every day of the year."""

import io
import zipfile
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise_studies.columns import Columns, parse_text
from stagewise_studies.replay import People

HOURS = (9, 13, 17)  # flights before, between and after
ACTIONS = ("the van at night", "before 9", "9 to 13", "13 to 17", "after 17")
FEES = np.array([4.0, 8.0, 12.0, 16.0, 20.0])  # dollars, for a parcel that is not late; the same order
LATE = 60.0  # minutes after the scheduled arrival; a flight that does not arrive is late too
REACH = 30  # days before and after
DAY, MONTH = "day", "month"


class Season(NamedTuple):
    """Scheduled flights, and how many of them were late, by day and time of departure (days, times)."""

    flights: Floats
    late: Floats
    months: Ints  # (days,) 0 to 11


def unzip_table(content: bytes) -> Columns:
    """Return the only table of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = archive.namelist()
        return parse_text(archive.read(name))


def build_season(table: Columns) -> Season:
    """Count the flights and the late ones."""
    dates = (
        table["year"].astype(np.int64) * 10_000 + table["month"].astype(np.int64) * 100 + table["day"].astype(np.int64)
    )
    known, day = np.unique(dates, return_inverse=True)
    time = np.digitize(table["sched_dep_time"].astype(np.int64) // 100, HOURS)
    delay = np.where(np.isin(table["arr_delay"], ("", "NA")), "inf", table["arr_delay"]).astype(np.float64)
    flights, late = np.zeros((2, known.size, len(HOURS) + 1))
    np.add.at(flights, (day, time), 1.0)
    np.add.at(late, (day, time), delay > LATE)
    return Season(flights, late, known // 100 % 100 - 1)


def smooth(season: Season, reach: int = REACH) -> Floats:
    """Return the shares that are late around every day (days, times).

    A flight of a day s that is less than reach + 1 days from d counts reach + 1 − |s − d|.
    """
    days = np.arange(len(season.flights))
    weights = np.maximum(reach + 1.0 - np.abs(days[:, None] - days), 0.0)
    return np.asarray(weights @ season.late / np.maximum(weights @ season.flights, 1.0))


def build_parcels(season: Season, reach: int = REACH) -> People:
    """Return the parcels of every day: a flight of the days around it is theirs; the van is never late."""
    shares = smooth(season, reach)
    cost = np.column_stack([np.zeros(len(shares)), shares])
    days = np.arange(len(shares))
    groups = {DAY: days, MONTH: season.months}
    return People(ACTIONS, [{} for _ in days], (1.0 - cost) * FEES, cost, groups, in_turn=True)


def measure_slope(shares: Floats) -> float:
    """Return the fastest movement of a share, per 30 days."""
    return 30.0 * float(np.abs(np.diff(shares, axis=0)).max(initial=0.0))
