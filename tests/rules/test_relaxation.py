"""The relaxation: no feasible point is above its bound, whatever the problem, and where nothing binds it is exact."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise import BallSet, BoxSet, EllipsoidSet, PolytopeSet
from stagewise.problem.polytope import compute_faces
from stagewise.rules import relaxation
from stagewise.rules.relaxation import Multipliers, OptimisticProblem, build_region, compute_best_value


def problem(rng: np.random.Generator, d: int, m: int, norms: int, sign: float) -> OptimisticProblem:
    """Return a random problem; the origin obeys its limits."""
    matrices = tuple(rng.normal(size=(d, d)) * rng.uniform(0.05, 1.0, size=(d, 1)) for _ in range(norms))
    return OptimisticProblem(
        rng.normal(size=d),
        rng.normal(size=(m, d)),
        matrices,
        rng.uniform(0.0, 5.0, size=norms),
        sign * rng.uniform(0.0, 2.0, size=m),
        rng.uniform(0.05, 1.0, size=m),
    )


def random_set(rng: np.random.Generator, kind: int, d: int) -> Any:
    offset = rng.normal(size=d) * 0.3
    if kind == 0:
        return BallSet(1.0 + float(np.linalg.norm(offset)), offset)
    if kind == 1:
        root = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
        return EllipsoidSet(root @ root.T, 0.1 * offset)
    if kind == 2:
        return BoxSet(-rng.uniform(0.1, 1.0, size=d), rng.uniform(0.1, 1.0, size=d))
    return PolytopeSet(np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(2, d))]))


def points_in(actions: Any, rng: np.random.Generator, d: int) -> np.ndarray:
    """Return points all over the set: on its boundary, at its corners, and between them and the origin."""
    ends = [actions.find_exits(actions.middle, rng.normal(size=(300, d))), actions.support(rng.normal(size=(100, d)))]
    shares = np.linspace(0.0, 1.0, 40)[:, np.newaxis, np.newaxis]
    return (shares * np.vstack(ends)).reshape(-1, d)


def value(optimistic_problem: OptimisticProblem, points: np.ndarray) -> np.ndarray:
    widths = [np.linalg.norm(points @ norm.T, axis=1) for norm in optimistic_problem.norms]
    return points @ optimistic_problem.reward + sum(
        w * width for w, width in zip(optimistic_problem.weights, widths, strict=True)
    )


def feasible(optimistic_problem: OptimisticProblem, points: np.ndarray) -> np.ndarray:
    width = np.linalg.norm(points @ optimistic_problem.norms[-1].T, axis=1)
    return np.all(
        points @ optimistic_problem.costs.T + np.outer(width, optimistic_problem.cost_norm_weights)
        <= optimistic_problem.limits,
        axis=1,
    )


@pytest.mark.long
@given(
    st.integers(0, 100_000),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(1, 2),
    st.sampled_from([1.0, -1.0]),
)
@settings(max_examples=150)
def test_no_feasible_point_is_above_the_bound(seed: int, kind: int, d: int, m: int, norms: int, sign: float) -> None:
    rng = np.random.default_rng(seed)
    optimistic_problem, actions = problem(rng, d, m, norms, sign), random_set(rng, kind, d)
    points = points_in(actions, rng, d)
    points = points[feasible(optimistic_problem, points)]
    relaxed = build_region(optimistic_problem, actions, np.zeros(d)).compute_upper_bound()
    assert len(points) > 0
    assert value(optimistic_problem, points).max() <= relaxed.bound
    assert actions.contains(relaxed.point)


@given(st.integers(0, 100_000), st.integers(1, 4), st.integers(0, 2), st.integers(1, 2))
@settings(max_examples=100)
def test_the_dual_value_bounds_whatever_the_multipliers(seed: int, d: int, m: int, norms: int) -> None:
    """A solver that stops anywhere leaves a valid bound behind."""
    rng = np.random.default_rng(seed)
    optimistic_problem, actions = problem(rng, d, m, norms, 1.0), random_set(rng, 0, d)
    turned = relaxation.to_ellipsoid_coordinates(optimistic_problem, actions.middle, actions.spread)
    points = points_in(actions, rng, d)
    best = value(optimistic_problem, points[feasible(optimistic_problem, points)]).max()
    for _ in range(10):
        prices = Multipliers(rng.exponential(size=m), rng.normal(size=d) * rng.uniform(0.0, 2.0))
        found = turned.bound(prices, rng.exponential(size=norms), float(rng.exponential()))
        assert best <= found.bound


@pytest.mark.parametrize("norms", [1, 2])
@pytest.mark.parametrize("kind", range(4))
def test_a_solver_that_fails_leaves_a_valid_bound(kind: int, norms: int, monkeypatch: Any) -> None:
    rng = np.random.default_rng([kind, norms])
    optimistic_problem, actions = problem(rng, 3, 2, norms, 1.0), random_set(rng, kind, 3)
    good = build_region(optimistic_problem, actions, np.zeros(3)).compute_upper_bound().bound
    monkeypatch.setattr(relaxation.ConicProgram, "solve", lambda self: None)
    assert good <= build_region(optimistic_problem, actions, np.zeros(3)).compute_upper_bound().bound < math.inf


@given(st.integers(0, 100_000), st.integers(1, 5))
@settings(max_examples=60)
def test_where_no_limit_binds_the_bound_over_vertices_is_the_maximum(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    optimistic_problem, actions = problem(rng, d, 0, 1, 1.0), random_set(rng, 3, d)
    exact = value(optimistic_problem, actions.vertices).max()
    assert build_region(optimistic_problem, actions, np.zeros(d)).compute_upper_bound().bound == pytest.approx(
        exact, rel=1e-8
    )


@given(st.integers(0, 100_000), st.integers(1, 6))
@settings(max_examples=60)
def test_without_widths_the_bound_is_the_maximum(seed: int, d: int) -> None:
    """Linear under linear limits: then the relaxation is the problem."""
    rng = np.random.default_rng(seed)
    optimistic_problem = problem(rng, d, 2, 1, 0.0)._replace(weights=np.zeros(1))
    actions = random_set(rng, 0, d)
    exact = compute_best_value(actions, optimistic_problem.reward, optimistic_problem.costs, optimistic_problem.limits)
    assert build_region(optimistic_problem, actions, np.zeros(d)).compute_upper_bound().bound == pytest.approx(
        exact, abs=1e-4
    )


def test_a_box_of_too_many_corners_is_bounded_too() -> None:
    rng = np.random.default_rng(0)
    d = 20
    optimistic_problem, box = problem(rng, d, 1, 1, 1.0), BoxSet(-np.ones(d), np.ones(d))
    points = points_in(box, rng, d)
    assert (
        value(optimistic_problem, points[feasible(optimistic_problem, points)]).max()
        <= build_region(optimistic_problem, box, np.zeros(d)).compute_upper_bound().bound
    )


@pytest.mark.compiled
@given(st.integers(0, 100_000), st.integers(0, 3), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=100)
def test_the_true_optimum_is_attained_and_not_exceeded(seed: int, kind: int, d: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    actions, reward, costs = random_set(rng, kind, d), rng.normal(size=d), rng.normal(size=(m, d))
    limits = rng.uniform(0.05, 1.0, size=m)
    best = compute_best_value(actions, reward, costs, limits)
    points = points_in(actions, rng, d)
    inside = points[np.all(points @ costs.T <= limits, axis=1)]
    assert (inside @ reward).max() <= best + 1e-7
    witness = attained(actions, reward, costs, limits)
    assert best == pytest.approx(witness, abs=1e-5)


def attained(actions: Any, reward: np.ndarray, costs: np.ndarray, limits: np.ndarray) -> float:
    """Return the value at a point of the set, by another method: cutting planes at the support points."""
    from scipy.optimize import linprog

    d = reward.size
    normals, ends = np.empty((0, d)), np.empty(0)
    directions = np.vstack([np.eye(d), -np.eye(d), reward])
    for _ in range(400):
        normals = np.vstack([normals, directions])
        ends = np.append(ends, np.einsum("ij,ij->i", directions, actions.support(directions)))
        found = linprog(-reward, np.vstack([normals, costs]), np.append(ends, limits), bounds=(None, None))
        if actions.excess(found.x) < 1e-7:
            break
        gap = found.x - actions.find_exits(actions.middle, (found.x - actions.middle)[np.newaxis])[0]
        if isinstance(actions, BallSet | EllipsoidSet):
            gap = np.linalg.solve(actions.spread @ actions.spread.T, found.x - actions.middle)
        elif isinstance(actions, PolytopeSet):
            faces = compute_faces(actions.vertices)[0]
            worst = np.argmax(faces.normals @ (faces.basis.T @ (found.x - faces.origin)) - faces.offsets)
            gap = faces.basis @ faces.normals[worst]
        directions = gap[np.newaxis] / np.linalg.norm(gap)
    return float(reward @ found.x)
