"""ACTG 175: which of four treatments for HIV to give to whom, under a cap on treatments that are broken off."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import stagewise as sw
from stagewise_studies import drawing
from stagewise_studies.columns import Columns, parse_text
from stagewise_studies.source import Source
from stagewise_studies.study import GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Claim, Size, at_least, at_most
from stagewise_studies.trial import Design, Trial

TITLE = "ACTG 175: can a better treatment be found while at most half of the patients break theirs off?"
FILE = "lifelines/datasets/ACTG175.csv"
SOURCE = Source(
    package="lifelines",
    version="0.30.3",
    wheel="lifelines-0.30.3-py3-none-any.whl",
    digest="44802480a28d6cb836c7fea4a54ec0ba220eb31c6d7444589637a8bd66066e8c",
    files={FILE: "56fba31fa0d7bfbff9667b7149fd96a97c352e72aa582871a62a935e812f0e07"},
    licence=(
        "MIT; the data are from Hammer et al., A Trial Comparing Nucleoside Monotherapy with Combination Therapy in "
        "HIV-Infected Adults, New England Journal of Medicine 335 (1996): 2,139 patients, four treatments by lot."
    ),
)
SIZE = Size(seeds=20, rounds=10_000)
ACTIONS = ("zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")
STRATA = ("never treated", "up to a year", "longer")  # before the trial
LIMIT, OTHER_LIMITS = 0.5, (0.45, 0.6)
CONTEXT = {"age": (0.0, 100.0), "cd4": (0.0, 1200.0), "weight": (0.0, 200.0), "karnofsky": (0.0, 100.0)}


def data(files: Mapping[str, bytes]) -> Trial:
    """Return the patients."""
    return build_trial(parse_text(files[FILE].replace(b'"', b"")))


def build_trial(table: Columns) -> Trial:
    """Return the trial: wanted is a CD4 count that has not fallen after 20 weeks; the cost, a treatment broken off."""
    numbers = {name: table[name].astype(np.float64) for name in ("age", "cd40", "cd420", "wtkg", "karnof", "offtrt")}
    rows = zip(*(numbers[name].tolist() for name in ("age", "cd40", "wtkg", "karnof")), strict=True)
    return Trial(
        actions=ACTIONS,
        taken=table["arms"].astype(np.int64),
        contexts=[dict(zip(CONTEXT, row, strict=True)) for row in rows],
        reward=(numbers["cd420"] >= numbers["cd40"]).astype(np.float64),
        cost=numbers["offtrt"],
        groups=table["strat"].astype(np.int64) - 1,  # never treated before, up to a year, longer
    )


def problem(limit: float) -> sw.Problem:
    """Return what is declared; what is broken off under zidovudine is not known beforehand: it is learned first."""
    return sw.Problem(
        action_names=ACTIONS, safe_name=ACTIONS[0], context=CONTEXT, reward=sw.Reward("cd4_held"),
        limits={"broken_off": sw.Limit(limit, model="rates")},
    )  # fmt: skip


CAPTION = (
    "Patients of the trial, drawn with replacement; what comes of a treatment is what came of it for somebody who"
    " had been treated as long before. Bands hold the middle four fifths of the seeds. Above left: CD4 counts "
    "that had not fallen after 20 weeks, beside zidovudine. Above right and below left: treatments broken off. "
    "Below right: 1,070 real patients of the half that nothing was learned from, doubly robust, 95 % at all "
    "times; dashed: the limit."
)
REMARKS = (
    "What is broken off under zidovudine is not declared but learned, and until it is shown to be below the limit "
    "nothing else is tried: under a limit of 45 in a hundred, beside 41 of zidovudine, for thousands of patients; and "
    "half of the trial is too little to try anything under a limit of 50.",
    "The treatment that works best is also broken off least, so that the learner without a limit keeps it too. "
    "Nobody knew that beforehand: what the guard costs here is the price of not having to know.",
    "Rounds over the limit: the expected share broken off under the mixture of the round, one rate for each "
    "treatment, as it was declared; by how long patients had been treated before the rates differ (by_group, finer "
    "in result.json).",
)
DESIGN = Design(
    problem, LIMIT, 0.9999, OTHER_LIMITS, 1.0 / len(ACTIONS), texts={"caption": CAPTION, "remarks": list(REMARKS)}
)
policies, play = DESIGN.policies, DESIGN.play


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    words = {
        SAFE: "safe: zidovudine", TODAY: "today: the trial's own lots",
        "reward": "CD4 count held", "cost": "broken off", "limit": "broken off",
        "groups": "treatment before", "round": "patient",
        "reward_name": "cd4_held", "cost_name": "broken_off",
    }  # fmt: skip
    figure, fourth = drawing.draw_study(result, words, STRATA)
    drawing.draw_intervals(fourth, result, words)
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    ours, best, end = rows[GUARDED], rows[POSSIBLE], "reward, last fifth"
    near = rows[f"guarded at {min(OTHER_LIMITS):.2f}"]
    return [
        at_most("guarded: share of runs with a round over the limit", ours["runs over the limit"] / seeds, 0.05),
        at_least("guarded: held in the last fifth, beside nine tenths of what is possible", ours[end], 0.9 * best[end]),
        at_least("guarded: held in the last fifth, beside the trial's own lots", ours[end], rows[TODAY]["reward"]),
        at_most(
            "unguarded: broken off in the last fifth: here the limit was no danger",
            rows[UNGUARDED]["cost, last fifth"],
            LIMIT,
        ),
        at_most(
            "guarded close above the safe rate: held, beside the trial's own lots",
            near["reward"],
            rows[TODAY]["reward"],
        ),
    ]
