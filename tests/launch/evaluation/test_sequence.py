"""The confidence sequence: its lemma, its mixture against the integral, and what it needs of every term."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from tests.launch.evaluation.worlds import drawn, problem

from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.estimators import SignalRows
from stagewise.launch.evaluation.propensities import compute_weights, resolve_candidate, resolve_propensities
from stagewise.launch.statistics import (
    MIXTURE_SHAPE,
    boundary,
    compute_running_means,
    compute_sequence,
    log_mixture,
)


@given(st.floats(-1.0, 50.0), st.floats(0.0, 0.999))
def test_the_lemma_of_the_bound(x, rate):
    """exp(λx − ψ(λ) x²) ≤ 1 + λx for x ≥ −1 and 0 ≤ λ < 1 (Fan, Grama and Liu 2015)."""
    psi = -np.log1p(-rate) - rate
    assert np.exp(rate * x - psi * x * x) <= (1.0 + rate * x) * (1.0 + 1e-12) + 1e-15


@pytest.mark.parametrize(("excess", "squares"), [(0.0, 0.0), (3.0, 0.5), (20.0, 30.0), (100.0, 900.0)])
def test_the_mixture_is_its_integral(excess, squares):
    """∫ exp(λs − v ψ(λ)) f(λ) dλ, with 1 − λ from a gamma law of shape and rate ρ that is cut at 1."""

    def weight(u):
        return u ** (MIXTURE_SHAPE - 1.0) * np.exp(-MIXTURE_SHAPE * u)

    def term(u):
        return weight(u) * np.exp((1.0 - u) * excess + squares * (np.log(u) + 1.0 - u))

    points = [1.0 - min(0.9, excess / (squares + excess + 1e-9))]
    mass, whole = quad(term, 0.0, 1.0, points=points)[0], quad(weight, 0.0, 1.0)[0]
    found = log_mixture(np.array([excess]), np.array([squares]))[0]
    assert found == pytest.approx(np.log(mass / whole), abs=1e-7)


def test_the_boundary_is_where_the_mixture_reaches_its_level():
    squares = np.array([0.0, 0.3, 10.0, 1e4, 1e6])
    for alpha in (0.2, 0.025, 1e-6):
        found = boundary(squares, alpha)
        np.testing.assert_allclose(log_mixture(found, squares), np.log(1.0 / alpha), rtol=1e-6)
        assert (np.diff(found) > 0.0).all()
    assert (boundary(squares, 0.01) > boundary(squares, 0.1)).all()


def test_one_shape_is_nearly_best_for_all():
    """As docs/theory/evaluation.md says of ρ = 2."""
    squares = np.array([1.0, 10.0, 100.0, 1e4])
    for alpha in (0.0125, 0.025):
        best = np.min([boundary(squares, alpha, rho) for rho in np.geomspace(0.02, 1e4, 40)], axis=0)
        ratio = boundary(squares, alpha) / best
        assert ratio[:3].max() < 1.1
        assert ratio[3] < 1.3


def test_an_interval_is_the_same_however_much_came_after():
    """The interval after 50 terms does not know the other 50: it could be looked at then, and acted on."""
    terms = np.random.default_rng(1).random(100)
    early = compute_sequence(terms[:50], terms[:50], (1.0, 1.0), 0.05, np.array([50]))
    late = compute_sequence(terms, terms, (1.0, 1.0), 0.05, np.array([50, 100]))
    assert (early.low[0], early.high[0]) == (late.low[0], late.high[0])


@pytest.mark.parametrize("bound", [None, 1.5, 4.0])
@pytest.mark.parametrize(
    "candidate", ["offer", {"digest": 0.5, "nothing": 0.5}, lambda c: "offer" if c["age"] > 0 else "nothing"]
)
@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.05, 0.9, 0.05), (0.5, 0.5, 0.0)])
def test_no_term_leaves_the_room_it_was_given(bound, candidate, shares):
    """Whatever the outcomes and whatever the regression says, a term is no farther from a guess than `rooms` allows."""
    rng = np.random.default_rng(7)
    log = Log.of(drawn(rng, 400, np.array(shares)), problem())
    probabilities = resolve_candidate(candidate, log, np.ones(log.rows, dtype=bool))[1]
    weights = compute_weights(log, resolve_propensities(log), probabilities, 0.05, bound)
    worst = [0.0, 0.0]
    for outcomes in (np.zeros(400), np.ones(400), rng.integers(2, size=400) * 1.0):
        for regression in (np.zeros((400, 3)), np.ones((400, 3)), rng.integers(2, size=(400, 3)) * 1.0):
            terms = SignalRows(log.actions, outcomes, weights, regression).dr_terms()
            low, high = weights.get_ranges(regression=bool(regression.any()))
            upper = 1.0 - (terms + weights.lost_mass)
            assert (terms - compute_running_means(terms)).min() >= -low - 1e-9
            assert (upper - compute_running_means(upper)).min() >= -high - 1e-9
            worst = [max(worst[0], -terms.min()), max(worst[1], -upper.min())]
    assert max(worst) > 0.0 or not weights.values.any()  # the terms do leave [0, 1]: the room is needed
