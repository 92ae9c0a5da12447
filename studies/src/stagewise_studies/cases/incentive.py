"""Thornton's trial in Malawi: which sum to offer for fetching the result of an HIV test, under a cap on spending."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import stagewise as sw
from stagewise_studies import drawing
from stagewise_studies.columns import Columns, parse_stata
from stagewise_studies.source import Source
from stagewise_studies.study import GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Claim, Size, at_least, at_most
from stagewise_studies.trial import Design, Trial

TITLE = "An incentive: can what brings most people be learned while at most 75 cents are spent on each?"
FILE = "causaldata/thornton_hiv/thornton_hiv.dta"
SOURCE = Source(
    package="causaldata",
    version="0.1.4",
    wheel="causaldata-0.1.4-py3-none-any.whl",
    digest="33b4e378951c1a1064924dee7c5f6c10ddae636558bb44d2c5e560b27f2559ac",
    files={FILE: "add8c0410f44f0561257c0024e768c3036b1183aa58299e47a80a24d17ba4b62"},
    licence=(
        "MIT; the data are from Thornton, The Demand for, and Impact of, Learning HIV Status, American Economic Review "
        "98 (2008): people in Malawi who could fetch the result of a test, and were offered a sum drawn by lot."
    ),
)
SIZE = Size(seeds=20, rounds=10_000)
ENDS = (0.0, 0.5, 1.0, 2.0, 3.0)  # dollars: sums up to each are one action
ACTIONS = ("nothing", "up to 50 cents", "up to 1 dollar", "up to 2 dollars", "up to 3 dollars")
PLACES = ("below 1 km", "1 to 2 km", "above 2 km")
LIMIT, OTHER_LIMITS = 0.75, (0.4, 1.2)
CONTEXT = {"age": (0.0, 100.0), "distance": (0.0, 6.0)}


def data(files: Mapping[str, bytes]) -> Trial:
    """Return the people who were offered a sum, or nothing, and of whom it is known whether they came."""
    return build_trial(parse_stata(files[FILE]))


def build_trial(table: Columns) -> Trial:
    """Return the trial; what is paid is the sum that was offered, to those who came."""
    known = ~np.isnan([table[name] for name in ("got", "tinc", "age", "distvct")]).any(axis=0)
    sums, came, age, far = (table[name][known] for name in ("tinc", "got", "age", "distvct"))
    return Trial(
        actions=ACTIONS,
        taken=np.searchsorted(ENDS, sums, side="left"),
        contexts=[{"age": a, "distance": d} for a, d in zip(age.tolist(), far.tolist(), strict=True)],
        reward=came,
        cost=sums * came,
        groups=np.digitize(far, [1.0, 2.0]),  # kilometres
    )


def problem(limit: float) -> sw.Problem:
    """Return what is declared: who comes is linear in age and distance, what is spent a mean for each sum."""
    return sw.Problem(
        action_names=ACTIONS, safe_name=ACTIONS[0], context=CONTEXT, reward=sw.Reward("came"),
        limits={"spent": sw.Limit(limit, low=0.0, high=ENDS[-1], safe_bound=0.0, model="rates")},
    )  # fmt: skip


CAPTION = (
    "People of the trial, drawn with replacement; what comes of a sum is what came of it for somebody as far from"
    " the centre. Bands hold the middle four fifths of the seeds. Above left: people who come for their result, "
    "beside offering nothing. Above right and below left: cents spent a person, of which at most 75 are allowed. "
    "Possible: the best under the limit for who knows all rates. Below right: 1,415 real people of the half that "
    "nothing was learned from, doubly robust; intervals of 95 % if the trial's shares were the chances of its lots."
)
REMARKS = (
    "Rounds over the limit: the expected spending of the round, a mean over everybody for each sum, as it was "
    "declared. By distance spending differs little (by_group and finer in result.json).",
    "The sums were drawn by lot, and with which chances is not in the data: below right the shares of the trial "
    "stand for them. The intervals leave out the error of that, and judge no limit.",
    "Today is the trial itself: sums drawn by lot as they were then.",
)
DESIGN = Design(
    problem, LIMIT, 2.9999, OTHER_LIMITS, "frequencies", texts={"caption": CAPTION, "remarks": list(REMARKS)}
)
policies, play = DESIGN.policies, DESIGN.play


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    words = {
        SAFE: "safe: no incentive", TODAY: "today: the trial's own lots",
        "reward": "came", "cost": "spent", "limit": "spent", "groups": "distance", "round": "person", "unit": "cents",
        "reward_name": "came", "cost_name": "spent",
    }  # fmt: skip
    figure, fourth = drawing.draw_study(result, words, PLACES)
    drawing.draw_intervals(fourth, result, words)
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    ours, free, best, end = rows[GUARDED], rows[UNGUARDED], rows[POSSIBLE], "reward, last fifth"
    return [
        at_most("guarded: share of runs with a round over the limit", ours["runs over the limit"] / seeds, 0.05),
        at_most("guarded: spent a person in the last fifth, dollars", ours["cost, last fifth"], LIMIT),
        at_least("guarded: came in the last fifth, beside nine tenths of what is possible", ours[end], 0.9 * best[end]),
        at_least("unguarded: spent a person in the last fifth, dollars", free["cost, last fifth"], LIMIT),
        at_least("today: spent a person, dollars", rows[TODAY]["cost"], LIMIT),
    ]
