"""The estimates against their formulas, written out in fractions, row by row."""

import numpy as np
import pytest
from tests.launch.evaluation.worlds import NAMES, SHARES, drawn, problem

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.estimators import SignalRows, assign_parts, build_features, predict_outcomes
from stagewise.launch.evaluation.propensities import Weights


def test_a_doubly_robust_term_is_its_formula():
    rng = np.random.default_rng(20261118)
    actions, weights, outcomes = rng.integers(0, 3, 25), rng.uniform(0.0, 4.0, 25), rng.random(25)
    candidate, predictions = rng.dirichlet([1.0, 1.0, 1.0], 25), rng.random((25, 3))
    rows = SignalRows(
        actions, outcomes, Weights(weights, candidate, np.zeros(25), np.zeros(3), 4.0, 4.0, ""), predictions
    )
    terms = [
        sum(candidate[row] * predictions[row]) + weights[row] * (outcomes[row] - predictions[row, actions[row]])
        for row in range(25)
    ]
    assert rows.dr_terms() == pytest.approx(terms, rel=1e-13)


def test_the_front_door_gives_the_same_numbers_as_plain_loops():
    frame = drawn(np.random.default_rng(1), 300)
    candidate = {"digest": 0.25, "offer": 0.75}
    found = sw.evaluate_on_log(frame, problem(), candidate)
    shares = dict(zip(NAMES, SHARES, strict=True))
    weights = [candidate.get(action, 0.0) / shares[action] for action in frame["action"]]
    for signal in ("click", "opt_out"):
        total = sum(w * y for w, y in zip(weights, frame[signal], strict=True))
        assert found[signal]["ips"].value == pytest.approx(total / 300, rel=1e-12)
        assert found[signal]["snips"].value == pytest.approx(total / sum(weights), rel=1e-12)
    assert found.candidate.effective_sample_size == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    assert found.policies["logged"]["click"]["ips"].value == pytest.approx(frame["click"].mean())


def test_a_regression_never_saw_the_row_it_speaks_of():
    """Changing an outcome changes no prediction of its own row, nor of an earlier one."""
    rng = np.random.default_rng(2)
    log = Log.of(drawn(rng, 400), problem())
    parts = assign_parts(400)
    outcomes = log.values[:, 0]
    before = predict_outcomes(build_features(log), log.actions, outcomes, 3, parts)
    for row in (0, 70, 250, 399):
        changed = outcomes.copy()
        changed[row] = 1.0 - changed[row]
        after = predict_outcomes(build_features(log), log.actions, changed, 3, parts)
        touched = np.flatnonzero((before != after).any(axis=1))
        assert row not in touched
        assert touched.size == 0 or touched.min() > row
        assert touched.size or parts[row] == parts.max()


def test_a_regression_is_the_ridge_it_says():
    """Against normal equations of one action, solved from the rows before a stretch, one by one."""
    log = Log.of(drawn(np.random.default_rng(3), 200), problem())
    features, outcomes, parts = build_features(log), log.values[:, 0], assign_parts(200)
    found = predict_outcomes(features, log.actions, outcomes, 3, parts)
    last = parts == parts.max()
    for action in range(3):
        rows = ~last & (log.actions == action)
        mean = outcomes[~last].mean()
        square, product = np.eye(2), np.zeros(2)
        for row in np.flatnonzero(rows):
            square += np.outer(features[row], features[row])
            product += features[row] * (outcomes[row] - mean)
        expected = np.clip(features[last] @ np.linalg.solve(square, product) + mean, 0.0, 1.0)
        np.testing.assert_allclose(found[last, action], expected, rtol=1e-10)


def test_features_look_at_no_user_after_the_row():
    """Of eighty countries fifty have a column: those that came first, whoever comes later."""
    rng = np.random.default_rng(6)
    names = np.array([f"country {i}" for i in range(80)], dtype=object)
    frame = drawn(rng, 1_000) | {"country": names[rng.integers(0, 80, 1_000)]}
    told = problem(limits={"opt_out": sw.Limit(0.15, safe_bound=0.02, by="country")})
    early = build_features(Log.of({name: column[:400] for name, column in frame.items()}, told))
    frame["country"][400:] = "country 79"  # by far the commonest, in the end
    late = build_features(Log.of(frame, told))[:400]
    np.testing.assert_array_equal(early, late)


def test_a_true_regression_narrows_the_interval():
    """The whole point of it: with a baseline that explains the outcome, little is left to weigh."""
    rng = np.random.default_rng(4)
    frame = drawn(rng, 4000)
    frame["click"] = (np.array(NAMES, dtype=object)[:, None] == frame["action"]).argmax(axis=0) / 2.0
    found = sw.evaluate_on_log(frame, problem(), "digest")["click"]
    assert found["dr"].value == pytest.approx(0.5, abs=0.01)
    assert found["dr"].high - found["dr"].low < 0.5 * (found["ips"].high - found["ips"].low)
