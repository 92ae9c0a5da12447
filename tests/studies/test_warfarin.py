"""Warfarin on a table that is made up: who is kept, what was missing, what each dose does, what comes out."""

import json
from typing import Any

import numpy as np
import pytest

from stagewise_studies.cases import warfarin
from stagewise_studies.cases.warfarin.patients import INDUCERS, build_patients, clinical, pharmacogenetic
from stagewise_studies.columns import Columns
from stagewise_studies.study import Size

NAN = float("nan")


def table(**changes: Any) -> Columns:
    """Return four patients: one whose dose was never stable, one of whom little is known."""
    columns: dict[str, list[Any]] = {
        "Therapeutic Dose of Warfarin": [35.0, 14.0, 28.0, 21.0],
        "Subject Reached Stable Dose of Warfarin": [1.0, 1.0, 0.0, 1.0],
        "Age": ["60 - 69", "90+", "50 - 59", NAN],
        "Gender": ["male", "female", "male", "male"],
        "Height (cm)": [180.0, 160.0, 170.0, NAN],
        "Weight (kg)": [80.0, 60.0, 70.0, NAN],
        "Race (OMB)": ["White", "Asian", "White", "Unknown"],
        "VKORC1     -1639 consensus": ["G/G", "A/A", "A/G", NAN],
        "CYP2C9 consensus": ["*1/*1", "*1/*3", "*1/*1", "*1/*11"],
        "Amiodarone (Cordarone)": [0.0, 1.0, NAN, NAN],
        **{name: [NAN, NAN, NAN, NAN] for name in INDUCERS},
    }
    columns["Rifampin or Rifampicin"][0] = 1.0
    columns |= changes
    return {name: np.array(column, dtype=object) for name, column in columns.items()}


def many(count: int = 600) -> Columns:
    """Return patients whose right dose is about what the formula says."""
    chance = np.random.default_rng(0)
    dose = np.round(np.exp(chance.normal(3.4, 0.4, count)), 1).tolist()
    genes = np.where(np.array(dose) > 30, "G/G", "A/A").tolist()
    weights = chance.uniform(30.0, 150.0, count).tolist()
    rest = table()
    columns = {name: np.array([column[0]] * count, dtype=object) for name, column in rest.items()}
    columns["Therapeutic Dose of Warfarin"] = np.array(dose, dtype=object)
    columns["VKORC1     -1639 consensus"] = np.array(genes, dtype=object)
    columns["Weight (kg)"] = np.array(weights, dtype=object)
    columns["Rifampin or Rifampicin"] = np.array([NAN] * count, dtype=object)
    return columns


def test_only_stable_doses_count_and_gaps_are_filled_as_said() -> None:
    who = build_patients(table())
    assert who.right.tolist() == [35.0, 14.0, 21.0]
    assert who.decade.tolist() == [6.0, 9.0, 6.0]
    assert who.height.tolist() == [180.0, 160.0, 180.0]  # the median of men whose dose was stable
    assert who.vkorc1.tolist() == ["G/G", "A/A", "unknown"]
    assert who.inducer.tolist() == [1.0, 0.0, 0.0]
    assert who.missing == {"age": 1, "height": 1, "weight": 1, "VKORC1": 1, "CYP2C9": 0, "amiodarone": 1}


def test_the_formulas_are_the_published_ones() -> None:
    who = build_patients(table())
    by_hand = (5.6044 - 0.2614 * 6 + 0.0087 * 180 + 0.0128 * 80 + 1.1816) ** 2
    assert pharmacogenetic(who)[0] == pytest.approx(by_hand)
    by_hand = (5.6044 - 0.2614 * 9 + 0.0087 * 160 + 0.0128 * 60 - 1.6974 - 0.9357 - 0.1092 - 0.5503) ** 2
    assert pharmacogenetic(who)[1] == pytest.approx(by_hand)
    by_hand = (5.6044 - 0.2614 * 6 + 0.0087 * 180 + 0.0128 * 80 - 0.4854 - 0.1032) ** 2  # *11 counts as *1
    assert pharmacogenetic(who)[2] == pytest.approx(by_hand)
    assert clinical(who)[1] == pytest.approx((4.0376 - 0.2546 * 9 + 0.0118 * 160 + 0.0134 * 60 - 0.6752 - 0.5695) ** 2)


def test_a_dose_is_right_within_a_fifth_and_too_high_above() -> None:
    who = build_patients(table())
    everybody = warfarin.build_ward(who).everybody
    assert everybody.reward[0].tolist() == [0, 0, 1, 1, 1, 0]  # 35: 28 to 42
    assert everybody.cost[0].tolist() == [0, 0, 0, 0, 0, 1]
    assert everybody.reward[1].tolist() == [1, 0, 0, 0, 0, 0]  # 14: 11.2 to 16.8
    assert everybody.cost[1].tolist() == [0, 1, 1, 1, 1, 1]
    assert not (everybody.reward * everybody.cost).any()


def test_who_is_predicted_less_than_the_safe_dose_is_no_candidate() -> None:
    ward = warfarin.build_ward(build_patients(table()))
    assert pharmacogenetic(build_patients(table()))[1] < 14.0
    assert (len(ward.everybody.contexts), len(ward.people.contexts)) == (3, 2)
    assert "below 14" not in {one["band"] for one in ward.people.contexts}
    assert {one["band"] for one in ward.everybody.contexts} >= {"below 14"}


def test_all_of_it_plays_and_says_what_came_out() -> None:
    ward = warfarin.build_ward(build_patients(many()))
    assert set(np.unique(ward.people.groups["band"])) == {0, 1, 2, 3, 4}
    size = Size(seeds=1, rounds=60)
    result = {"size": size._asdict(), **warfarin.play(ward, warfarin.policies(ward), size)}
    names = [row["policy"] for row in result["rows"]]
    assert names[:2] == ["guarded", "unguarded"]
    assert {"safe", "today", "the pharmacogenetic formula"} <= set(names)
    assert len(warfarin.claims(json.loads(json.dumps(result)))) == 8
    assert len(warfarin.picture(result).axes) == 4
