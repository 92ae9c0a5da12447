"""The ridge recursion is the textbook's solve, after one round and a million, in full space and beside x₀."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.alone import BoundsTable, ModelState, compute_bounds, start_model, teach
from tests.engine.textbook import build_model, fitted, radius_of, solve, unit_rows

from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.layout import ELSEWHERE, ModelBlock
from stagewise.engine.random import ACTIONS, OUTCOME, normal, uniform
from stagewise.models.regression import LOG_DET, OBSERVATIONS, fill_image, get_ridge_assumptions, learn_ridge
from stagewise.models.ridge import LinearModel

MILLION = 1_000_000
BASELINES = ["origin", "anchored", "free"]
STATED = as_python(get_ridge_assumptions)
COUNTS = [1, 127, 128, 129, 300]


# A million rounds


@kernel
def play(
    part: ModelBlock, config: Floats, memory: Floats, actions: Floats, chances: Floats, truth: Floats, count: int,
    plays: Floats, sums: Floats, carry: Floats, value: Floats, work: Floats,
) -> None:  # fmt: skip
    """Play actions at their chances (cumulated), and keep how often each was played and its summed values exactly."""
    for round_ in range(count):
        action, dice = 0, uniform(7, 0, round_, ACTIONS, 0)
        while chances[action] < dice:
            action += 1
        value[0] = normal(7, 0, round_, OUTCOME, 0)
        for i in range(truth.size):
            value[0] += actions[action, i] * truth[i]
        learn_ridge(part, actions[action], ELSEWHERE, 1.0, False, value, config, memory, work)
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

    seen: BoundsTable
    tally: Floats
    halves: Floats
    estimates: Floats
    log_det: float


def million(habit: Habit) -> Million:
    random = np.random.default_rng(3)
    actions, chances, ridge = habit
    truth, probes = unit_rows(random, 1, 10)[0], np.vstack([actions, unit_rows(random, 30, 10)])
    model, count = start_model(build_model(np.zeros(10), None, None, 1, ridge)), len(actions)
    plays, sums, carry, value, work = np.zeros(count), np.zeros(count), np.zeros(count), np.empty(1), np.empty(31)
    probabilities = np.cumsum(chances) / np.sum(chances) + 1e-12
    play(
        model.block,
        model.settings,
        model.memory,
        actions,
        probabilities,
        truth,
        MILLION,
        plays,
        sums,
        carry,
        value,
        work,
    )

    exact = actions.astype(np.longdouble)
    gram = ridge * np.eye(10, dtype=np.longdouble) + (exact.T * plays) @ exact
    widths = np.sqrt(np.sum(probes * solve(gram, probes.T).T, axis=1)).astype(float)
    estimates = (probes @ solve(gram, exact.T @ sums)).astype(float)
    log_det = float(np.linalg.slogdet(gram.astype(float) / ridge)[1])
    beta = np.sqrt(0.3**2 * (log_det + 2.0 * np.log(1.0 / 0.05)) + ridge * 2.0**2)  # what `build_model` assumes
    return Million(compute_bounds(model, probes), model.block.tally, beta * widths, estimates, log_det)


def check_million(end: Million, digits: float) -> None:
    np.testing.assert_allclose(end.seen.halves[0], end.halves, rtol=digits, atol=0.0)
    np.testing.assert_allclose(end.seen.centres[0], end.estimates, rtol=0.0, atol=digits * np.abs(end.estimates).max())
    assert end.tally[LOG_DET] == pytest.approx(end.log_det, rel=digits)
    assert end.tally[OBSERVATIONS] == MILLION


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
    np.testing.assert_allclose(end.seen.halves[0], end.halves, rtol=1e-9, atol=0.0)


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
    model = build_model(safe, None if free else float(at_safe[0]), None if free else at_safe[1:], 3, ridge)
    actions = unit_rows(random, rounds, d) * random.uniform(0.1, 1.5, size=(rounds, 1))
    values = actions @ truths.T + 0.3 * random.normal(size=(rounds, 3))
    return Study(safe, [None if free else float(value) for value in at_safe], model, actions, values)


def learned(data: Study) -> ModelState:
    """Return the regression of all signals after the study."""
    model = start_model(data.model)
    teach(model, data.actions, data.values)
    return model


def expected(data: Study, features: Floats, kind: str = "joint") -> BoundsTable:
    """Return what the textbook says of actions, and of the safe one."""
    found: list[list[Floats]] = [[], [], [], [], []]
    for k, value in enumerate(data.known):
        fit = fitted(data.safe, value, data.model.ridge, data.actions, data.values[:, k])
        along = 0.0 if value is None or kind == "paper" or not data.safe.any() else value / np.linalg.norm(data.safe)
        bound = np.sqrt(2.0**2 - along**2)
        beta = radius_of(kind, fit, 0.3, bound, data.model.ridge, 0.05, energy=float(len(data.actions)))
        found[0].append(fit.estimates(features))
        found[1].append(beta * fit.widths(features))
        found[2].append(beta**2 * fit.crosses(features, data.safe))
        found[3].append(fit.estimates(data.safe))
        found[4].append(np.array(beta * float(fit.widths(data.safe)) if value is None else 0.0))
    return BoundsTable(*(np.array(rows) for rows in found))


def check_look(data: Study, features: Floats, kind: str = "joint") -> None:
    seen, options = compute_bounds(learned(data), features), expected(data, features, kind)
    np.testing.assert_allclose(seen.halves, options.halves, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(seen.centres, options.centres, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(seen.safe_centres, options.safe_centres, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.safe_halves, options.safe_halves, rtol=1e-9, atol=0.0)
    if data.known[0] is None:
        np.testing.assert_allclose(seen.crosses, options.crosses, rtol=1e-9, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 20])
def test_a_look_is_the_textbook(baseline: str, d: int) -> None:
    random = np.random.default_rng([d, BASELINES.index(baseline)])
    data = study(random, baseline, d, rounds=4 * d)
    for count in COUNTS:
        check_look(data, random.normal(size=(count, d)))


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("kind", ["joint", "logdet", "paper"])
def test_a_look_by_every_radius_is_the_textbook(baseline: str, kind: str) -> None:
    data = study(np.random.default_rng(5), baseline, 4, rounds=20)
    known = data.known
    model = build_model(data.safe, known[0], None if known[0] is None else np.array(known[1:]), 3, 0.7, kind)
    check_look(data._replace(model=model), np.eye(4), kind)


@pytest.mark.parametrize("baseline", ["origin", "anchored"])
def test_what_is_known_at_the_safe_action_is_exact(baseline: str) -> None:
    data = study(np.random.default_rng(11), baseline, 5, rounds=200)
    seen = compute_bounds(learned(data), data.safe[np.newaxis])
    assert seen.safe_halves.tolist() == [0.0] * 3
    assert seen.safe_centres.tolist() == data.known
    np.testing.assert_allclose(seen.centres[:, 0], data.known, rtol=1e-13, atol=1e-15)
    assert seen.halves.max() < 1e-13


def test_playing_the_safe_action_teaches_nothing_new_of_what_is_known_there() -> None:
    data = study(np.random.default_rng(12), "anchored", 5, rounds=30)
    model = learned(data)
    before = model.block.learned.copy(), float(model.block.tally[LOG_DET])
    teach(model, np.tile(data.safe, (1000, 1)), np.tile([9.0, -9.0, 9.0], (1000, 1)))
    np.testing.assert_allclose(model.block.learned, before[0], rtol=0.0, atol=1e-11)
    assert model.block.tally[LOG_DET] == pytest.approx(before[1], abs=1e-12)


def test_only_the_lower_triangle_is_read() -> None:
    data = study(np.random.default_rng(13), "free", 7, rounds=30)
    model = learned(data)
    torn = model._replace(memory=model.memory.copy())
    torn.block.learned[np.triu_indices(7, 1)] = np.nan
    for combined, half in zip(compute_bounds(model, data.actions), compute_bounds(torn, data.actions), strict=True):
        np.testing.assert_array_equal(half, combined)
    image = np.empty((2, 7))
    fill_image(model.block.learned, data.safe, image[0])
    fill_image(torn.block.learned, data.safe, image[1])
    np.testing.assert_array_equal(image[1], image[0])


# Knowing the safe action's value


@pytest.mark.long
@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(0, 60), st.sampled_from([1e-3, 1.0, 30.0]))
def test_knowing_the_value_at_the_safe_action_only_narrows(seed: int, d: int, rounds: int, ridge: float) -> None:
    random = np.random.default_rng(seed)
    data = study(random, "anchored", d, rounds, ridge)
    free = data._replace(model=build_model(data.safe, None, None, 3, ridge))
    probes = random.normal(size=(20, d))
    known, full = learned(data), learned(free)
    across, wide = compute_bounds(known, probes), compute_bounds(full, probes)
    assert (across.halves <= wide.halves * (1.0 + 1e-9)).all()
    # ‖x⊥‖ in (Σ⊥)⁺ is the least of ‖x − s e₀‖ in Σ⁻¹ over s: by the kernel's own products, and by least squares.
    widths = [halves.halves[0] / beta_of(model) for halves, model in ((across, known), (wide, full))]
    crosses, start = wide.crosses[0] / beta_of(full) ** 2, wide.safe_halves[0] / beta_of(full)
    least = np.sqrt(np.maximum(widths[1] ** 2 - (crosses / start) ** 2, 0.0))
    np.testing.assert_allclose(widths[0], least, rtol=1e-5, atol=1e-7 * widths[1].max())
    factor = np.linalg.cholesky(ridge * np.eye(d) + data.actions.T @ data.actions)
    white, direction = np.linalg.solve(factor, probes.T), np.linalg.solve(factor, data.safe[:, np.newaxis])
    residual = white - direction @ np.linalg.lstsq(direction, white)[0]
    np.testing.assert_allclose(widths[0], np.linalg.norm(residual, axis=0), rtol=1e-8, atol=1e-10)


def beta_of(model: ModelState) -> float:
    """Return β of the reward, by the formula from what was declared and the log-determinant."""
    declared, ridge = STATED(model.block, model.settings), model.settings[model.block.settings]
    deviation = model.block.tally[LOG_DET] + 2.0 * declared.confidence[0]
    return float(np.sqrt(declared.noise[0] ** 2 * deviation + ridge * declared.bound[0] ** 2))
