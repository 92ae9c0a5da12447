"""Flights from New York in 2013: how late in the day may a parcel fly, under a cap on late parcels?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.reports.style import (
    INK,
    STYLES,
    add_legend_below,
    draw_limit_line,
    format_axes,
    make_figure,
)
from stagewise_studies import drawing, tally
from stagewise_studies.cases.flights.courier import Courier, declare
from stagewise_studies.cases.flights.season import (
    ACTIONS,
    DAY,
    FEES,
    MONTH,
    Season,
    build_parcels,
    build_season,
    measure_slope,
    unzip_table,
)
from stagewise_studies.replay import People, StudyPolicy, Track, always, find_best_under, is_over_limit
from stagewise_studies.source import Source
from stagewise_studies.study import GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Claim, Size, at_least, at_most

TITLE = "Flights from New York: how late in the day may a parcel fly, while the season changes?"
FILE = "pointblank/data/nycflights.zip"
SOURCE = Source(
    package="pointblank",
    version="1.1.1",
    wheel="pointblank-1.1.1-py3-none-any.whl",
    digest="a81d2898bcf2b0610f501cb83c301102752dd2b2a158526e1c77baff650a6114",
    files={FILE: "c958db51a294cf62f2752745f5c001ba2af4551787041815eec86235649dd265"},
    licence=(
        "MIT; the data are those of nycflights13: all 336,776 flights from New York in 2013, of the Bureau of "
        "Transportation Statistics of the United States, in the public domain."
    ),
)
SIZE = Size(seeds=5, rounds=365 * 300)
LIMIT, NEVER, SLOPE = 0.15, 0.9999, 0.22  # SLOPE: per 30 days
HALF, DOUBLE = "guarded, half the slope", "guarded, twice the slope"
JUMPS = "guarded, jumps are found"
CONSTANT, ACKNOWLEDGED = "guarded, constant rates", "the same, alerts acknowledged"
ALERTS, WIDE = "guarded, alerts acknowledged", "guarded, a budget of 0.5"
SUMMER = (5, 6)  # June and July, of 0 to 11

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LINES = {name: STYLES[index] for index, name in enumerate((GUARDED, JUMPS, ACKNOWLEDGED, CONSTANT, TODAY))}

OTHERS = {ALERTS: STYLES[5], WIDE: STYLES[6]}


def data(files: Mapping[str, bytes]) -> Season:
    """Return the flights by day and time of departure."""
    return build_season(unzip_table(files[FILE]))


def policies(data: Season) -> Mapping[str, StudyPolicy]:
    """Return the declarations that are compared, and the fixed policies."""
    people = build_parcels(data)
    return {
        GUARDED: Courier(declare(LIMIT, f"{SLOPE}/30d")),
        HALF: Courier(declare(LIMIT, f"{SLOPE / 2}/30d")),
        DOUBLE: Courier(declare(LIMIT, f"{SLOPE * 2}/30d")),
        JUMPS: Courier(declare(LIMIT, "jumps")),
        CONSTANT: Courier(declare(LIMIT, None)),
        ACKNOWLEDGED: Courier(declare(LIMIT, None), acknowledges=True),
        UNGUARDED: Courier(declare(NEVER, None), acknowledges=True),
        SAFE: always(people, ACTIONS[0]),
        TODAY: always(people, ACTIONS[3]),
        POSSIBLE: find_best_under(people, DAY, LIMIT, ACTIONS[0]),
    }


CAPTION = (
    "Flights from New York in 2013 that arrived over an hour late, or not at all. A parcel travels on a flight of the "
    "30 days before and after, near days more often. Above left: late flights by time of departure. Above right: late "
    "parcels that were expected of each day's decisions, a mean over the seeds. Below left: the fee of a parcel; "
    "possible is the best under the limit for who knows every day's rates. Below right: the same agents on the "
    "flights of each day alone, storms included, by month."
)
REMARKS = (
    "Over the limit: the expected share of late parcels under the mixture of a decision was above 15 %. The worst day "
    "is that of the worst seed; on the flights of each day alone, days and months are means over the seeds.",
    "The price list is ours: it is not in the data. A parcel that is late is not paid for.",
    "On the flights of each day alone, a storm makes most of a day's parcels late at once, whatever was known the day "
    "before. No slope covers that: the test of the limit stops the agent in January, until somebody acknowledges it.",
)


def alone_policies(people: People) -> dict[str, StudyPolicy]:
    """Return what is played on the flights of each day alone."""
    return {
        GUARDED: Courier(declare(LIMIT, f"{SLOPE}/30d")),
        ALERTS: Courier(declare(LIMIT, f"{SLOPE}/30d"), acknowledges=True),
        WIDE: Courier(declare(LIMIT, ("0.5", "30d"))),
        ACKNOWLEDGED: Courier(declare(LIMIT, None), acknowledges=True),
        TODAY: always(people, ACTIONS[3]),
    }


def play(data: Season, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
    """Play all policies through the year; some of them also on the flights of each day alone, storms included."""
    people, alone = build_parcels(data), build_parcels(data, reach=0)
    tracks = tally.simulate_policies(people, policies, *size)
    of_the_day = tally.simulate_policies(alone, alone_policies(alone), *size)
    return {
        "limit": LIMIT,
        "slope": round(measure_slope(people.cost), 4),
        "rows": [build_row(name, runs, people) for name, runs in tracks.items()],
        "alone": [build_row_alone(name, runs, alone) for name, runs in of_the_day.items()],
        "late by day": {name: compute_means(runs, people, DAY).tolist() for name, runs in tracks.items()},
        "late by month, alone": {name: compute_means(runs, alone, MONTH).tolist() for name, runs in of_the_day.items()},
        "fee by month": {name: compute_means(runs, people, MONTH, "reward").tolist() for name, runs in tracks.items()},
        "rates": {name: np.round(people.cost[:, index], 4).tolist() for index, name in enumerate(ACTIONS)},
        "stopped on day": [
            round(at * len(people.contexts) / size.rounds) for at in tally.list_stopped_rounds(tracks[CONSTANT])
        ],
        "caption": CAPTION,
        "remarks": list(REMARKS),
    }


def build_row(name: str, runs: Sequence[Track], people: People) -> dict[str, Any]:
    """Return a policy's row of the table."""
    over = [is_over_limit(track, DAY, LIMIT) for track in runs]
    summer = np.isin(people.groups[MONTH], SUMMER)
    return {
        "policy": name,
        "fee": tally.mean([track.reward.mean() for track in runs]),
        "late": tally.mean([track.cost.mean() for track in runs]),
        "late, June and July": round(float(compute_means(runs, people, DAY)[summer].mean()), 5),
        "worst day": round(max(float(compute_means([track], people, DAY).max()) for track in runs), 5),
        "parcels over the limit": tally.mean([flags.mean() for flags in over]),
        "runs over the limit": int(sum(flags.any() for flags in over)),
        "runs stopped": len(tally.list_stopped_rounds(runs)),
    }


def build_row_alone(name: str, runs: Sequence[Track], people: People) -> dict[str, Any]:
    """Return a policy's row where parcels fly with the flights of their day alone."""
    days, months = (compute_means(runs, people, way) for way in (DAY, MONTH))
    return {
        "policy": name,
        "fee": tally.mean([track.reward.mean() for track in runs]),
        "late": tally.mean([track.cost.mean() for track in runs]),
        "months over the limit": int((months > LIMIT).sum()),
        "worst month": round(float(months.max()), 5),
        "days over the limit": round(float((days > LIMIT).mean()), 5),
        "worst day": round(float(days.max()), 5),
        "runs stopped": len(tally.list_stopped_rounds(runs)),
    }


def compute_means(runs: Sequence[Track], people: People, way: str, signal: str = "cost") -> Floats:
    """Return the mean cost, or reward, of each group over all runs."""
    groups = people.groups[way]
    sums, counts = np.zeros((2, int(groups.max()) + 1))
    for track in runs:
        np.add.at(sums, groups[track.people], getattr(track, signal))
        np.add.at(counts, groups[track.people], 1.0)
    return np.asarray(sums / np.maximum(counts, 1.0))


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    figure, axes = make_figure(2, 2, width=4.8, height=3.0)
    days, months = np.arange(len(result["rates"][ACTIONS[0]])), np.arange(len(MONTHS))
    starts = np.linspace(0.0, days.size, len(MONTHS), endpoint=False)
    for index, name in enumerate(ACTIONS[1:]):
        colour, dashes = STYLES[index]
        axes[0, 0].plot(days, 100 * np.array(result["rates"][name]), color=colour, linestyle=dashes, label=name)
    for name, (colour, dashes) in LINES.items():
        axes[0, 1].plot(days, 100 * np.array(result["late by day"][name]), color=colour, linestyle=dashes, label=name)
        axes[1, 0].plot(months, result["fee by month"][name], color=colour, linestyle=dashes)
    for name, by_month in result["late by month, alone"].items():
        colour, dashes = (LINES | OTHERS)[name]
        label = name if name in OTHERS else None
        axes[1, 1].plot(months, 100 * np.array(by_month), color=colour, linestyle=dashes, label=label)
    axes[1, 0].plot(months, result["fee by month"][POSSIBLE], color=INK, linestyle=(0, (1, 1)), label=POSSIBLE)
    format_axes(axes[0, 0], "flights that were late, around a day", y=drawing.HUNDRED)
    format_axes(axes[0, 1], "parcels late, expected of a day's decisions", y=drawing.HUNDRED)
    format_axes(axes[1, 0], "fee of a parcel", y="dollars")
    format_axes(axes[1, 1], "parcels late, on the flights of the day alone", y=drawing.HUNDRED)
    for one in (axes[0, 0], axes[0, 1], axes[1, 1]):
        draw_limit_line(one, 100 * LIMIT, "limit")
    for one, ticks in ((axes[0, 0], starts), (axes[0, 1], starts), (axes[1, 0], months), (axes[1, 1], months)):
        one.set_xticks(ticks, MONTHS, fontsize=8)
    for one in (axes[0, 0], axes[1, 0], axes[1, 1]):
        one.legend(frameon=False, fontsize=8)
    add_legend_below(figure, axes[0, 1], 3)
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, alone = ({row["policy"]: row for row in result[table]} for table in ("rows", "alone"))
    seeds, ours = result["size"]["seeds"], rows[GUARDED]
    return [
        at_most("the fastest rate, by 30 days, beside the slope that was declared", result["slope"], SLOPE),
        at_most("guarded: share of runs with a parcel over the limit", ours["runs over the limit"] / seeds, 0.05),
        at_least("guarded: fee, beside nine tenths of the earliest flight's", ours["fee"], 0.9 * FEES[1]),
        at_least("guarded: fee, beside constant rates that stop", ours["fee"], rows[CONSTANT]["fee"]),
        at_least(
            "constant rates, alerts acknowledged: share of parcels over the limit",
            rows[ACKNOWLEDGED]["parcels over the limit"],
            0.2,
        ),
        at_least("today: late in June and July", rows[TODAY]["late, June and July"], LIMIT),
        at_most("guarded, on the flights of each day alone: late over the year", alone[GUARDED]["late"], LIMIT),
    ]
