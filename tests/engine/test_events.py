"""The sets of rare costs, against the textbook (docs/theory/rare.md)."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.layout import get_model_block
from stagewise.models.rare_events import (
    CONSTANT,
    HIGHEST_FORECAST,
    HITS,
    LOSS,
    LOWEST_FORECAST,
    NEWTON,
    REFIT_ITERATIONS,
    ROWS,
    SHRINKAGE,
    SQUARE,
    compute_highest_mean,
    compute_rate,
    event_curvature,
    fold_events,
    get_event_table,
    get_feature_block,
    get_rare_events_assumptions,
    invert_root,
    learn_rare_events,
    refit,
    solve_root,
)

BLOCK_OF, TABLE_OF, DECLARED, PART_OF = (
    as_python(get_feature_block),
    as_python(get_event_table),
    as_python(get_rare_events_assumptions),
    as_python(get_model_block),
)
MU = np.array([0.05, 0.03, -0.02])


def begun(blocks: int = 1, **changed: Any) -> tuple[Any, Any, Any]:
    """Return a cost's part, settings and memory of a policy that has seen nothing."""
    safe = sw.SafeAction(features=np.zeros(3 * blocks), reward=0.0, cost=0.0)
    options: dict[str, Any] = {"norm_bound": [1.0, 0.3], "noise": 0.5, "delta": 0.1}
    policy = sw.SafePosteriorSampling(
        safe_action=safe, threshold=0.1, mixtures=True, rare_costs=True, blocks=blocks, **options | changed
    )
    memory = policy.start().memory
    return PART_OF(policy.layout, memory, 1), policy.settings, memory


def seen_with(part: Any, settings: Any, memory: Any, count: int, seed: int = 0) -> None:
    """Learn rows of users (1, u, v), events of rate <x, μ>."""
    chance = np.random.default_rng(seed)
    for _ in range(count):
        action = np.array([1.0, *chance.uniform(size=2)])
        learn_rare_events(part, action, np.array([float(chance.uniform() < action @ MU)]), settings, memory)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_root_of_the_inverse_is_the_textbooks(n: int) -> None:
    chance = np.random.default_rng(n)
    rows = chance.normal(size=(2 * n, n))
    gram, vector = rows.T @ rows + np.eye(n), chance.normal(size=n)
    root, image, solution = gram.copy(), np.empty(n), np.empty(n)
    invert_root(root)
    root = np.tril(root)
    assert root.T @ root == pytest.approx(np.linalg.inv(gram), rel=1e-9, abs=1e-12)
    assert solve_root(root, vector, image, solution) == pytest.approx(vector @ np.linalg.solve(gram, vector))
    assert solution == pytest.approx(np.linalg.solve(gram, vector))


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_the_loss_of_an_event_lies_above_its_parabola(mean: float, point: float, more: float) -> None:
    kappa = event_curvature((mean + more) / point)
    away = mean / point - 1.0
    assert 0.0 < kappa <= 1.0
    assert -math.log(mean / point) >= -away + 0.5 * kappa * away**2 - 1e-9 * (1.0 + away**2)


def test_a_curvature_beyond_the_bound_would_not_lie_below() -> None:
    kappa = event_curvature(4.0)
    assert -math.log(8.0) < -7.0 + 0.5 * kappa * 49.0  # at twice the bound M = 4 q


def test_a_refit_is_the_textbooks() -> None:
    part, settings, memory = begun()
    seen_with(part, settings, memory, 400)
    block, table, declared = BLOCK_OF(part, memory, 0), TABLE_OF(part, memory), DECLARED(part, settings)
    rows, rate = table.rows[: int(table.used[0]), :3].copy(), compute_rate(block.sums, declared.guess)
    forecast, fit, root, square = block.forecast.copy(), block.fit.copy(), np.tril(block.root), block.sums[SQUARE]
    refit(part, settings, memory, 0)
    start = np.eye(3) / declared.bound**2
    drawn = SHRINKAGE / len(rows)
    for _ in range(NEWTON):
        points = np.clip(rows @ forecast, LOWEST_FORECAST * rate, HIGHEST_FORECAST * rate)
        matrix = start + (rows * (points**-2.0 + drawn / rate**2)[:, None]).T @ rows
        forecast = np.linalg.solve(matrix, rows.T @ (2.0 / points + drawn / rate) - block.total)
    assert block.forecast == pytest.approx(forecast, rel=1e-7)
    points = np.clip(rows @ forecast, LOWEST_FORECAST * rate, HIGHEST_FORECAST * rate)
    for _ in range(REFIT_ITERATIONS):
        ends = rows @ fit + math.sqrt(square) * np.linalg.norm(rows @ root.T, axis=1)
        most = np.minimum(np.minimum(ends, declared.bound * np.linalg.norm(rows, axis=1)), declared.ceiling)
        kappa = np.array([event_curvature(ratio) for ratio in most / points])
        gram, pull = start + (rows * (kappa / points**2)[:, None]).T @ rows, rows.T @ ((1.0 + kappa) / points)
        pull -= block.total
        fit = np.linalg.solve(gram, pull)
        square = pull @ fit + 2.0 * (
            block.sums[LOSS] + declared.confidence + 0.5 - np.sum(1.0 + 0.5 * kappa - np.log(points))
        )
        root = np.linalg.inv(np.linalg.cholesky(gram))
    assert block.fit == pytest.approx(fit, rel=1e-6)
    assert block.sums[SQUARE] == pytest.approx(square, rel=1e-6)
    assert np.tril(block.root) == pytest.approx(root, rel=1e-6, abs=1e-12)


def test_what_is_folded_is_not_lost() -> None:
    part, settings, memory = begun()
    seen_with(part, settings, memory, 600)
    block, user = BLOCK_OF(part, memory, 0), np.array([1.0, 0.5, 0.5])
    refit(part, settings, memory, 0)
    before, hits = compute_highest_mean(part, settings, block, user), block.sums[HITS]
    fold_events(part, settings, memory)
    assert TABLE_OF(part, memory).used[0] == 0.0
    assert block.sums[CONSTANT] > 0.0
    refit(part, settings, memory, 0)
    assert compute_highest_mean(part, settings, block, user) == pytest.approx(before, rel=0.02)
    seen_with(part, settings, memory, 600, seed=1)
    refit(part, settings, memory, 0)
    assert block.sums[HITS] > hits
    assert user @ MU < compute_highest_mean(part, settings, block, user) < before


def test_a_full_table_folds_itself() -> None:
    part, settings, memory = begun()
    small = part._replace(radius=8)
    for _ in range(20):
        learn_rare_events(small, np.array([1.0, 0.5, 0.5]), np.ones(1), settings, memory)
    assert TABLE_OF(small, memory).used[0] == 20 - 2 * 8
    assert BLOCK_OF(small, memory, 0).sums[HITS] == 20.0


def test_a_block_learns_nothing_from_another() -> None:
    part, settings, memory = begun(blocks=2)
    other = BLOCK_OF(part, memory, 1)
    before = [values.copy() for values in other]
    for _ in range(50):
        learn_rare_events(part, np.array([1.0, 0.2, 0.3, 0.0, 0.0, 0.0]), np.zeros(1), settings, memory)
    assert all(np.array_equal(one, two) for one, two in zip(before, other, strict=True))
    assert BLOCK_OF(part, memory, 0).sums[ROWS] == 50.0


def test_without_any_event_the_upper_end_falls_with_the_rows() -> None:
    part, settings, memory = begun()
    ends, user = [], np.array([1.0, 0.5, 0.5])
    for count in (100, 1000):
        for _ in range(count):
            learn_rare_events(part, user, np.zeros(1), settings, memory)
        ends.append(compute_highest_mean(part, settings, BLOCK_OF(part, memory, 0), user))
    assert ends[0] < 0.15
    assert ends[1] < 0.2 * ends[0]
