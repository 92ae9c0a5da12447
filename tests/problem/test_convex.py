"""Convex sets: their geometry against brute force, and what they refuse."""

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problem.refusal import refused

from stagewise import BallSet, BoxSet, EllipsoidSet, InvalidActions, PolytopeSet
from stagewise.problem.errors import ErrorCode

NAN, INF = math.nan, math.inf
SIMPLEX = PolytopeSet(np.eye(3))


def rotated(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def random_set(kind: str, d: int, seed: int) -> Any:
    """Return a set of this kind somewhere in space."""
    rng = np.random.default_rng([seed, d])
    center = rng.normal(size=d)
    if kind == "ball":
        return BallSet(rng.uniform(0.1, 3.0), center)
    if kind == "ellipsoid":
        turn = rotated(rng, d)
        shape = turn @ np.diag(rng.uniform(0.05, 4.0, size=d)) @ turn.T
        return EllipsoidSet(0.5 * (shape + shape.T), center)
    if kind == "box":
        return BoxSet(center - rng.uniform(0.1, 2.0, size=d), center + rng.uniform(0.1, 2.0, size=d))
    if kind == "vertices":
        return PolytopeSet(center + rng.normal(size=(d + 1 + seed % 6, d)))
    sides = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(2, d))])
    return PolytopeSet(A=sides, b=sides @ center + rng.uniform(0.3, 1.0, size=len(sides)))


KINDS = ["ball", "ellipsoid", "box", "vertices", "half-spaces"]
sets = st.builds(random_set, st.sampled_from(KINDS), st.integers(1, 4), st.integers(0, 10_000))


@pytest.mark.long
@given(sets, st.integers(0, 10_000))
@settings(max_examples=150)
def test_a_ray_leaves_the_set_where_reach_says(actions: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = actions.dimension
    inside = actions.middle + 0.6 * (actions.support(rng.normal(size=(1, d)))[0] - actions.middle)
    directions = rng.normal(size=(8, d)) * rng.uniform(0.01, 10.0, size=(8, 1))
    assert actions.contains(inside)
    for direction, far, end in zip(
        directions, actions.reach(inside, directions), actions.find_exits(inside, directions), strict=True
    ):
        assert far > 0.0
        assert np.allclose(end, inside + far * direction)
        assert actions.contains(end)
        assert actions.excess(inside + (1.0 + 1e-6) * far * direction) > max(actions.excess(end), 0.0)


@given(sets, st.integers(0, 10_000))
@settings(max_examples=150)
def test_no_point_of_the_set_beats_the_support(actions: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(5, actions.dimension))
    best = actions.support(directions)
    boundary = actions.find_exits(actions.middle, rng.normal(size=(400, actions.dimension)))
    assert all(actions.contains(point) for point in best)
    assert np.all(np.einsum("ij,ij->i", directions, best) >= (boundary @ directions.T).max(axis=0) - 1e-9)
    assert np.linalg.norm(boundary, axis=1).max() <= actions.longest + 1e-9


@given(sets, st.integers(0, 10_000))
@settings(max_examples=100)
def test_what_is_outside_is_pulled_in_and_what_is_inside_stays(actions: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = actions.middle + rng.normal(size=(20, actions.dimension)) * rng.uniform(0.01, 5.0, size=(20, 1))
    for point, pulled in zip(points, actions.retract(points), strict=True):
        assert actions.contains(pulled)
        if actions.contains(point):
            assert np.allclose(point, pulled, atol=1e-7)


def test_zero_directions_reach_nowhere() -> None:
    for kind in KINDS:
        actions = random_set(kind, 3, 1)
        assert actions.reach(actions.middle, np.zeros((1, 3))) == [0.0]
        assert actions.contains(actions.support(np.zeros((1, 3)))[0])


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_half_spaces_of_a_box_have_its_corners(d: int) -> None:
    low, high = -np.arange(1.0, d + 1), np.linspace(0.5, 2.0, d)
    found = PolytopeSet(A=np.vstack([np.eye(d), -np.eye(d)]), b=np.concatenate([high, -low])).vertices
    assert len(found) == 2**d
    for corner in product(*zip(low, high, strict=True)):
        assert np.abs(found - corner).sum(axis=1).min() < 1e-9
    box = BoxSet(low, high).vertices
    assert sorted(map(tuple, box.tolist())) == sorted(product(*zip(low.tolist(), high.tolist(), strict=True)))


@pytest.mark.long
@given(st.integers(2, 4), st.integers(0, 10_000))
@settings(max_examples=60)
def test_vertices_of_half_spaces_obey_them_and_contain_every_point_that_does(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(3, d))])
    ends = rng.uniform(0.2, 1.0, size=len(sides))
    polytope = PolytopeSet(A=sides, b=ends)
    assert np.all(polytope.vertices @ sides.T <= ends + 1e-9)
    for point in rng.uniform(-1.0, 1.0, size=(200, d)):
        excess = float(np.max(sides @ point - ends))
        if abs(excess) > 1e-6:
            assert polytope.contains(point) == (excess < 0.0)


def test_points_inside_are_no_vertices() -> None:
    assert PolytopeSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2], [1.0, 0.0]]).vertices.shape == (3, 2)


def test_a_simplex_is_flat_and_knows_it() -> None:
    middle = np.full(3, 1.0 / 3.0)
    assert SIMPLEX.contains(middle)
    assert not SIMPLEX.contains([0.3, 0.3, 0.3])
    assert np.allclose(SIMPLEX.reach(middle, np.array([[1.0, -1.0, 0.0], [1.0, 0.0, 0.0]])), [1.0 / 3.0, 0.0])
    assert SIMPLEX.contains(SIMPLEX.retract(np.array([[0.9, 0.9, 0.9]]))[0])


def test_a_segment_is_a_polytope_too() -> None:
    segment = PolytopeSet([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    assert len(segment.vertices) == 2
    assert np.allclose(segment.find_exits(np.zeros(2), np.array([[2.0, 2.0]])), [[1.0, 1.0]])


def test_a_ball_around_the_origin_takes_the_dimension_it_is_asked_for() -> None:
    assert BallSet(1.0).dimension is None
    assert BallSet(1.0).contains(np.zeros(7))
    assert BallSet(1.0).with_dimension(3).dimension == 3
    with refused(InvalidActions, ErrorCode.DIMENSION_MISMATCH):
        BallSet(1.0, np.zeros(2)).with_dimension(3)


def test_descriptions_are_plain_and_build_the_set_again() -> None:
    makers = {"ball": BallSet, "ellipsoid": EllipsoidSet, "box": BoxSet, "polytope": PolytopeSet}
    for kind in KINDS:
        actions = random_set(kind, 3, 2)
        rounded = json.loads(json.dumps(actions.description()))
        again = makers[rounded.pop("kind")](**rounded)
        directions = np.random.default_rng(0).normal(size=(9, 3))
        assert np.allclose(again.support(directions), actions.support(directions))


def test_sets_cannot_be_changed_through_their_arrays() -> None:
    low = np.zeros(2)
    box = BoxSet(low, np.ones(2))
    low[0] = 5.0
    assert box.low[0] == 0.0
    for values in (box.low, box.vertices, SIMPLEX.vertices, BallSet(1.0, [0.0]).center, EllipsoidSet(np.eye(2)).shape):
        assert values is not None
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


CUBE = np.vstack([np.eye(2), -np.eye(2)])
BAD: dict[str, tuple[Any, list[object]]] = {
    "no radius": (lambda: BallSet(0.0), [ErrorCode.OUT_OF_RANGE]),
    "a negative radius": (lambda: BallSet(-1.0), [ErrorCode.OUT_OF_RANGE]),
    "an endless radius": (lambda: BallSet(INF), [ErrorCode.NOT_FINITE]),
    "a radius that is none": (lambda: BallSet(NAN), [ErrorCode.NOT_FINITE]),
    "a truth value as radius": (lambda: BallSet(True), [ErrorCode.WRONG_TYPE]),
    "text as radius": (lambda: BallSet("1"), [ErrorCode.WRONG_TYPE]),
    "a ball nowhere": (lambda: BallSet(1.0, [NAN, 0.0]), [ErrorCode.NOT_FINITE]),
    "a ball around a table": (lambda: BallSet(1.0, [[0.0]]), [ErrorCode.WRONG_SHAPE]),
    "a ball around nothing": (lambda: BallSet(1.0, []), [ErrorCode.WRONG_SHAPE]),
    "a shape with a hole": (lambda: EllipsoidSet([[1.0, NAN], [NAN, 1.0]]), [ErrorCode.NOT_FINITE]),
    "a shape that is no square": (lambda: EllipsoidSet(np.ones((2, 3))), [ErrorCode.WRONG_SHAPE]),
    "a shape that is not symmetric": (lambda: EllipsoidSet([[1.0, 0.5], [0.0, 1.0]]), [ErrorCode.INVALID_ACTION_SET]),
    "a flat shape": (lambda: EllipsoidSet([[1.0, 1.0], [1.0, 1.0]]), [ErrorCode.INVALID_ACTION_SET]),
    "a zero shape": (lambda: EllipsoidSet(np.zeros((2, 2))), [ErrorCode.INVALID_ACTION_SET]),
    "a negative shape": (lambda: EllipsoidSet(-np.eye(2)), [ErrorCode.INVALID_ACTION_SET]),
    "a shape and another center": (lambda: EllipsoidSet(np.eye(2), np.zeros(3)), [3, 2]),
    "a box turned over": (lambda: BoxSet([0.0, 1.0], [1.0, 0.0]), [ErrorCode.INVALID_ACTION_SET]),
    "a flat box": (lambda: BoxSet([0.0], [0.0]), [ErrorCode.INVALID_ACTION_SET]),
    "a box of two sizes": (lambda: BoxSet([0.0], [1.0, 1.0]), [1, 2]),
    "a box without end": (lambda: BoxSet([0.0], [INF]), [ErrorCode.NOT_FINITE]),
    "too many corners": (lambda: BoxSet(np.zeros(40), np.ones(40)).vertices, [ErrorCode.TOO_LARGE]),
    "nothing": (lambda: PolytopeSet(), [ErrorCode.CONFLICTING_SETTINGS]),
    "both": (lambda: PolytopeSet(np.eye(2), A=CUBE, b=np.ones(4)), [ErrorCode.CONFLICTING_SETTINGS]),
    "A alone": (lambda: PolytopeSet(A=CUBE), [ErrorCode.CONFLICTING_SETTINGS]),
    "vertices with a hole": (lambda: PolytopeSet([[0.0, NAN], [1.0, 1.0]]), [ErrorCode.NOT_FINITE]),
    "one vertex": (lambda: PolytopeSet([[1.0, 1.0]]), [ErrorCode.INVALID_ACTION_SET]),
    "one vertex twice": (lambda: PolytopeSet([[1.0, 1.0], [1.0, 1.0]]), [ErrorCode.INVALID_ACTION_SET]),
    "no vertex": (lambda: PolytopeSet(np.zeros((0, 2))), [ErrorCode.WRONG_SHAPE]),
    "half-spaces without end": (lambda: PolytopeSet(A=np.eye(2), b=np.ones(2)), [ErrorCode.INVALID_ACTION_SET]),
    "a strip": (lambda: PolytopeSet(A=[[1.0, 0.0], [-1.0, 0.0]], b=[1.0, 1.0]), [ErrorCode.INVALID_ACTION_SET]),
    "half-spaces apart": (lambda: PolytopeSet(A=CUBE, b=[1.0, 1.0, -2.0, 1.0]), [ErrorCode.INVALID_ACTION_SET]),
    "half-spaces that touch": (lambda: PolytopeSet(A=CUBE, b=[1.0, 1.0, -1.0, 1.0]), [ErrorCode.INVALID_ACTION_SET]),
    "a row of zeros": (lambda: PolytopeSet(A=[*CUBE, [0.0, 0.0]], b=np.ones(5)), [ErrorCode.INVALID_ACTION_SET]),
    "too few ends": (lambda: PolytopeSet(A=CUBE, b=np.ones(3)), [ErrorCode.WRONG_SHAPE]),
    "ends with a hole": (lambda: PolytopeSet(A=CUBE, b=[1.0, 1.0, NAN, 1.0]), [ErrorCode.NOT_FINITE]),
}


@pytest.mark.wording
@pytest.mark.parametrize(("make", "parts"), BAD.values(), ids=BAD)
def test_a_set_that_is_none_is_refused(make: Any, parts: list[object]) -> None:
    with refused(InvalidActions, *parts):
        make()


@pytest.mark.parametrize(
    "actions", [BallSet(1.0, [0.0, 0.0]), EllipsoidSet(np.eye(2)), BoxSet([0, 0], [1, 1]), PolytopeSet(np.eye(2))]
)
@pytest.mark.parametrize(
    ("point", "code"),
    [
        ([0.5], ErrorCode.DIMENSION_MISMATCH),
        ([0.5, 0.5, 0.5], ErrorCode.DIMENSION_MISMATCH),
        (0.5, ErrorCode.WRONG_SHAPE),
        ([[0.5, 0.5]], ErrorCode.WRONG_SHAPE),
        ([np.nan, 0.0], ErrorCode.NOT_FINITE),
        ("x", ErrorCode.WRONG_TYPE),
    ],
)
def test_a_point_of_another_shape_is_not_asked_about(actions: Any, point: Any, code: ErrorCode) -> None:
    with refused(InvalidActions, code):
        actions.contains(point)
    assert actions.contains([0.5, 0.5])
