"""The ridge recursion is the textbook's solve, after one round and a million, in full space and beside x₀."""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stagewise.kernels.linear import learn_from, memory_size, named_mind, start_memory, work_size
from stagewise.kernels.look import View, look
from stagewise.kernels.radius import MIXTURE, Belief
from stagewise.kernels.ridge import ELSEWHERE, Anchor, Followed, Regression, Ridge, learn, multiply, tally_size
from stagewise.kernels.shape import named_shape
from tests.kernels.alone import absorb
from tests.kernels.textbook import fitted, model_at, radius_of, solved, unit_rows

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.draw import ACTIONS, OUTCOME, normal, uniform
from stagewise.models.linear import LinearModel

MILLION = 1_000_000
NOTHING = np.empty(0)
BASELINES = ["origin", "anchored", "free"]
COUNTS = [1, 127, 128, 129, 300]


def fresh(dimension: int, signals: int, ridge: float = 1.0) -> Ridge:
    return Ridge(np.eye(dimension) / np.sqrt(ridge), np.zeros((signals, dimension)), np.zeros(tally_size(signals)))


class Seen(NamedTuple):
    view: View
    start_width: float


def alone(ridge: Ridge, anchor: Anchor, belief: Belief) -> Regression:
    """Return a regression that follows nothing."""
    size, signals = len(ridge.root), len(ridge.fits)
    return Regression(ridge, Followed(np.empty((size, 0)), np.empty((signals, 0)), np.empty(0)), anchor, belief)


def looked(features: Floats, model: Regression) -> Seen:
    """Return what `look` says, from arrays full of rubbish."""
    signals, count, size = len(model.ridge.fits), len(features), len(model.ridge.root)
    rubbish = [np.full(shape, np.nan) for shape in [(signals, count), count, count, signals, signals]]
    view = View(*rubbish)
    return Seen(view, look(features, model, view, np.full(work_size(size, signals, 0), np.nan)))


# A million rounds


@numba.njit
def play(
    ridge: Ridge, actions: Floats, chances: Floats, truth: Floats, count: int, plays: Floats, sums: Floats
) -> None:
    """Play actions at their chances (cumulated), and keep how often each was played and its summed values exactly."""
    size = truth.size
    value, carry, work = np.empty(1), np.zeros(plays.size), np.empty(3 * size + 1)
    for round_ in range(count):
        action, dice = 0, uniform(7, 0, round_, ACTIONS, 0)
        while chances[action] < dice:
            action += 1
        value[0] = normal(7, 0, round_, OUTCOME, 0)
        for i in range(size):
            value[0] += actions[action, i] * truth[i]
        absorb(ridge, actions[action], value, work)
        plays[action] += 1.0
        # Kahan's sum: a plain one is off by 1e-11 of its size after a million terms, more than the recursion is.
        term = value[0] - carry[action]
        total = sums[action] + term
        carry[action] = (total - sums[action]) - term
        sums[action] = total


class Habit(NamedTuple):
    """How a million rounds are spent."""

    actions: Floats
    chances: Floats
    ridge: float


def even(random: np.random.Generator) -> Habit:
    return Habit(unit_rows(random, 50, 10), np.full(50, 1.0), 1.0)


def few_rays(random: np.random.Generator) -> Habit:
    """What a policy that has settled plays: seven of ten directions are never seen again."""
    return Habit(unit_rows(random, 3, 10) * np.array([[0.7], [1.0], [0.3]]), np.array([1.0, 1e-2, 1e-3]), 1.0)


def very_uneven(random: np.random.Generator) -> Habit:
    return Habit(unit_rows(random, 12, 10), np.logspace(0.0, -6.0, 12), 1e-3)


def almost_one_ray(random: np.random.Generator) -> Habit:
    return Habit(unit_rows(random, 1, 10) + 1e-3 * unit_rows(random, 5, 10), np.full(5, 1.0), 1.0)


class Million(NamedTuple):
    """What a million updates ended with, and what one solve in extended precision says."""

    view: View
    tally: Floats
    widths: Floats
    estimates: Floats
    log_det: float


def million(habit: Habit) -> Million:
    random = np.random.default_rng(3)
    actions, chances, ridge_size = habit
    truth, probes = unit_rows(random, 1, 10)[0], np.vstack([actions, unit_rows(random, 30, 10)])
    ridge, plays, sums = fresh(10, 1, ridge_size), np.zeros(len(actions)), np.zeros(len(actions))
    play(ridge, actions, np.cumsum(chances) / np.sum(chances) + 1e-12, truth, MILLION, plays, sums)
    seen = looked(probes, alone(ridge, Anchor(NOTHING, 0.0, np.zeros(1), NOTHING), belief_of_one()))

    exact = actions.astype(np.longdouble)
    gram = ridge_size * np.eye(10, dtype=np.longdouble) + (exact.T * plays) @ exact
    widths = np.sqrt(np.sum(probes * solved(gram, probes.T).T, axis=1)).astype(float)
    estimates = (probes @ solved(gram, exact.T @ sums)).astype(float)
    log_det = np.linalg.slogdet(gram.astype(float) / ridge_size)[1]
    return Million(seen.view, ridge.tally, widths, estimates, float(log_det))


def check_million(end: Million, digits: float) -> None:
    np.testing.assert_allclose(end.view.widths, end.widths, rtol=digits, atol=0.0)
    np.testing.assert_allclose(
        end.view.estimates[0], end.estimates, rtol=0.0, atol=digits * np.abs(end.estimates).max()
    )
    assert end.tally[0] == pytest.approx(end.log_det, rel=digits)
    assert end.tally[1] == MILLION


@pytest.mark.compiled
def test_a_million_updates_end_where_one_solve_does() -> None:
    check_million(million(even(np.random.default_rng(1))), 1e-10)


@pytest.mark.compiled
@pytest.mark.parametrize("habit", [few_rays, very_uneven, almost_one_ray])
def test_a_million_uneven_updates_keep_six_digits(habit: Callable[[np.random.Generator], Habit]) -> None:
    check_million(million(habit(np.random.default_rng(1))), 1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("habit", [few_rays, very_uneven])
def test_a_million_uneven_updates_keep_nine_digits_of_the_widths(
    habit: Callable[[np.random.Generator], Habit],
) -> None:
    end = million(habit(np.random.default_rng(1)))
    np.testing.assert_allclose(end.view.widths, end.widths, rtol=1e-9, atol=0.0)


def belief_of_one() -> Belief:
    return Belief(MIXTURE, 1.0, 1.0, np.ones(1), np.ones(1), np.ones(1))


# One look


class Study(NamedTuple):
    """Three signals at a safe action, and what was seen of them."""

    safe: Floats
    known: list[float | None]
    model: LinearModel
    actions: Floats
    values: Floats  # (t, 3)


def study(random: np.random.Generator, baseline: str, d: int, rounds: int, ridge: float = 0.7) -> Study:
    safe = np.zeros(d) if baseline == "origin" else unit_rows(random, 1, d)[0] * random.uniform(0.3, 2.0)
    truths = unit_rows(random, 3, d) * 0.9
    at_safe = truths @ safe
    free = baseline == "free"
    model = model_at(safe, None if free else float(at_safe[0]), None if free else at_safe[1:], 3, ridge)
    actions = unit_rows(random, rounds, d) * random.uniform(0.1, 1.5, size=(rounds, 1))
    values = actions @ truths.T + 0.3 * random.normal(size=(rounds, 3))
    return Study(safe, [None if free else float(value) for value in at_safe], model, actions, values)


def learned(data: Study) -> Regression:
    """Return the regression of all signals after the study, in a memory of the policy's form."""
    flags = data.model.flags(directional=False, inflated=True, offers_safe=True)
    numbers = np.concatenate([data.model.numbers(), np.zeros(2 + 3 * (len(data.model.names) - 1))])
    memory = np.full(memory_size(named_shape(flags), 0), np.nan)
    start_memory(flags, numbers, memory)
    work = np.empty(work_size(data.safe.size, 3, 0))
    for action, values in zip(data.actions, data.values, strict=True):
        learn_from(action, ELSEWHERE, 1.0, values, flags, numbers, memory, work)
    return named(named_mind)(flags, numbers, memory).reward


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_a_look_is_the_textbook(baseline: str, d: int) -> None:
    random = np.random.default_rng([d, BASELINES.index(baseline)])
    data = study(random, baseline, d, rounds=4 * d)
    model = learned(data)
    fits = [fitted(data.safe, data.known[k], 0.7, data.actions, data.values[:, k]) for k in range(3)]
    for count in COUNTS:
        features = random.normal(size=(count, d))
        view, start_width = looked(features, model)
        np.testing.assert_allclose(view.widths, fits[0].widths(features), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(view.estimates, [fit.estimates(features) for fit in fits], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(view.start, [fit.estimates(data.safe) for fit in fits], rtol=1e-9, atol=1e-12)
        assert start_width == pytest.approx(float(fits[0].widths(data.safe)) if baseline == "free" else 0.0, rel=1e-9)
        if baseline == "free":
            np.testing.assert_allclose(view.crosses, fits[0].crosses(features, data.safe), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("kind", ["mixture", "logdet", "paper"])
def test_the_radii_of_a_look_are_the_textbook(baseline: str, kind: str) -> None:
    data = study(np.random.default_rng(5), baseline, 4, rounds=20)
    safe, known = data.safe, data.known
    model = model_at(safe, known[0], None if known[0] is None else np.array(known[1:]), 3, 0.7, kind)
    view, _ = looked(np.eye(4), learned(data._replace(model=model)))
    for k in range(3):
        fit = fitted(safe, known[k], 0.7, data.actions, data.values[:, k])
        along = 0.0 if known[k] is None or kind == "paper" or not safe.any() else known[k] / np.linalg.norm(safe)
        bound = np.sqrt(2.0**2 - along**2)
        assert view.radii[k] == pytest.approx(radius_of(kind, fit, 0.3, bound, 0.7, 0.05, reach=20.0), rel=1e-9)


@pytest.mark.parametrize("baseline", ["origin", "anchored"])
def test_what_is_known_at_the_safe_action_is_exact(baseline: str) -> None:
    data = study(np.random.default_rng(11), baseline, 5, rounds=200)
    view, start_width = looked(data.safe[np.newaxis], learned(data))
    assert start_width == 0.0
    assert view.start.tolist() == data.known
    np.testing.assert_allclose(view.estimates[:, 0], data.known, rtol=1e-13, atol=1e-15)
    assert view.widths[0] < 1e-14


def test_playing_the_safe_action_teaches_nothing_new_of_what_is_known_there() -> None:
    data = study(np.random.default_rng(12), "anchored", 5, rounds=30)
    model = learned(data)
    ridge = model.ridge
    root, fits, log_det = ridge.root.copy(), ridge.fits.copy(), ridge.tally[0]
    for _ in range(1000):
        learn(model, data.safe, ELSEWHERE, 1.0, False, np.array([9.0, -9.0, 9.0]), np.empty(3 * 5 + 3))
    np.testing.assert_allclose(ridge.root, root, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(ridge.fits, fits, rtol=0.0, atol=1e-11)
    assert ridge.tally[0] == pytest.approx(log_det, abs=1e-12)


def test_only_the_lower_triangle_is_read() -> None:
    data = study(np.random.default_rng(13), "free", 7, rounds=30)
    model = learned(data)
    ridge, torn = model.ridge, model.ridge.root.copy()
    torn[np.triu_indices(7, 1)] = np.nan
    whole = looked(data.actions, model)
    half = looked(data.actions, model._replace(ridge=ridge._replace(root=torn)))
    np.testing.assert_array_equal(half.view.widths, whole.view.widths)
    np.testing.assert_array_equal(half.view.crosses, whole.view.crosses)
    image, product = np.empty(7), np.empty(7)
    assert multiply(torn, data.safe, image, product) == multiply(ridge.root, data.safe, image, product)
    assert np.isfinite(product).all()


# Knowing the safe action's value


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(0, 60), st.sampled_from([1e-3, 1.0, 30.0]))
def test_knowing_the_value_at_the_safe_action_only_narrows(seed: int, d: int, rounds: int, ridge: float) -> None:
    random = np.random.default_rng(seed)
    data = study(random, "anchored", d, rounds, ridge)
    ignorant = model_at(data.safe, None, None, 3, ridge)
    probes = random.normal(size=(20, d))
    across = looked(probes, learned(data)).view.widths
    full = looked(probes, learned(data._replace(model=ignorant)))
    assert (across <= full.view.widths * (1.0 + 1e-9)).all()
    # ‖x⊥‖ in (Σ⊥)⁺ is the least of ‖x − s e₀‖ in Σ⁻¹ over s: by the kernel's own products, and by least squares.
    least = np.sqrt(np.maximum(full.view.widths**2 - (full.view.crosses / full.start_width) ** 2, 0.0))
    np.testing.assert_allclose(across, least, rtol=1e-5, atol=1e-7 * full.view.widths.max())
    factor = np.linalg.cholesky(ridge * np.eye(d) + data.actions.T @ data.actions)
    white, direction = np.linalg.solve(factor, probes.T), np.linalg.solve(factor, data.safe[:, np.newaxis])
    residual = white - direction @ np.linalg.lstsq(direction, white)[0]
    np.testing.assert_allclose(across, np.linalg.norm(residual, axis=0), rtol=1e-8, atol=1e-10)
