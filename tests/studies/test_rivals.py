"""Methods of others on patients who are made up: their regression knows every dose in every band."""

import json

import numpy as np
from tests.studies.test_warfarin import many

import stagewise as sw
from stagewise_reproduction.rivals.estimation_to_decision import ConservativeSquareCB
from stagewise_studies.cases import rivals
from stagewise_studies.cases.warfarin.patients import build_patients
from stagewise_studies.cases.warfarin.ward import NAMES, build_ward
from stagewise_studies.study import Size


def test_every_dose_in_every_band_has_a_feature_of_its_own() -> None:
    people = build_ward(build_patients(many())).people
    features = rivals.build_features(people)
    flat = features.reshape(-1, features.shape[2])
    np.testing.assert_array_equal(flat, np.eye(len(flat)))
    assert features.shape[1] == len(NAMES)


def test_the_study_plays_the_rivals_and_times_them() -> None:
    data = build_ward(build_patients(many()))
    played, size = rivals.policies(data), Size(1, 200)
    result = {"size": size._asdict(), **rivals.play(data, played, size)}
    json.dumps(result, allow_nan=False)
    rows = {row["policy"]: row for row in result["rows"]}
    assert set(rows) == set(played)
    assert all(
        (rows[name]["microseconds a round"] is not None) == (name in (rivals.OURS, rivals.LINEAR, *rivals.RIVALS))
        for name in rows
    )
    assert rows[rivals.OURS]["rounds over the limit"] == 0.0
    assert rows["LOE2D"]["rounds over the limit"] > 0.0
    assert len(rivals.claims(result)) == 9
    rivals.picture(result)


def test_conservative_exploration_pays_for_the_safe_action() -> None:
    """With a safe cost at the limit the budget never grows, so nothing is tried."""
    settings = {"safe_action": sw.SafeAction(features=np.zeros(4)), "safe_index": 0, "threshold": 0.2, "noise": 0.5}
    drawn = {}
    for safe_cost in (0.0, 0.2):
        policy = ConservativeSquareCB(**settings, safe_cost=safe_cost)
        state, actions = policy.start(), type("Set", (), {"features": np.eye(4)})
        chosen = []
        for t in range(60):
            decision = policy.decide(state, actions, sw.RandomKey(1, 0, t))
            chosen.append(decision.action_index)
            state = policy.learn(state, decision, sw.Outcome(0.0, 0.0))
        drawn[safe_cost] = len(set(chosen))
    assert drawn[0.2] == 1
    assert drawn[0.0] > 1
