"""A guard around gradient boosting on a table that is made up: who is dosed, what is proposed, what comes out."""

import json

import numpy as np
from tests.studies.test_warfarin import many

from stagewise_studies.cases import boosting
from stagewise_studies.cases.warfarin.patients import build_patients
from stagewise_studies.cases.warfarin.ward import DOSES
from stagewise_studies.study import GUARDED, Size


def test_half_of_the_patients_train_the_model_and_the_others_are_dosed() -> None:
    patients = build_patients(many())
    data = boosting.boost(patients)
    assert data.trained == 300
    assert 150 < len(data.people.contexts) <= 300
    assert data.scores.shape == (len(data.doses), DOSES.size)
    assert ((data.scores > 0.0) & (data.scores < 1.0)).all()
    cells = data.people.groups[boosting.CELL]
    for cell in np.unique(cells):
        assert np.unique(data.doses[cells == cell]).size == 1  # one dose is proposed in every cell
    right = data.people.reward[np.arange(data.doses.size), data.doses].mean()
    assert right > data.people.reward.mean(axis=0).max()  # the model knows more than that people have a dose


def test_the_study_plays_the_model_with_and_without_the_guard() -> None:
    data = boosting.boost(build_patients(many()))
    played = boosting.policies(data)
    size = Size(1, 120)
    result = {"size": size._asdict(), **boosting.play(data, played, size)}
    json.dumps(result, allow_nan=False)
    assert {row["policy"] for row in result["rows"]} == set(played)
    assert {row["policy"]: row for row in result["rows"]}[GUARDED]["reward"] >= 0.0
    assert len(boosting.claims(result)) == 5
    boosting.picture(result)
