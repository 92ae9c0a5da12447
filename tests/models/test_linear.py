"""Linear models: the reflection, the remaining bounds, and settings that are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.alone import start_model
from tests.engine.textbook import build_model

from stagewise.models.regression import fill_coordinates
from stagewise.problem.errors import ErrorCode, InvalidProblem

coordinates = st.floats(-3.0, 3.0, allow_subnormal=False)
AXES = [[0.0, 0.0, 2.0], [0.0, 0.0, -2.0], [1.0, 0.0, 0.0], [0.0, -0.0, 1e-100], [1e150, 0.0, 1e150]]


def check_reflection(safe: np.ndarray) -> None:
    """The rows of H are orthonormal, the last of them is ±e₀, and a share is <x, x₀>/‖x₀‖²."""
    d, size, model = safe.size, np.linalg.norm(safe), start_model(build_model(safe, 0.0, np.zeros(1), 2))
    placed, shares = np.empty((d, d - 1)), np.empty(d)
    for i, axis in enumerate(np.eye(d)):
        shares[i] = fill_coordinates(model.block, model.settings, axis, placed[i])
    np.testing.assert_allclose(shares * size, safe / size, rtol=0.0, atol=1e-14)
    rows = np.column_stack([placed, shares * size])
    np.testing.assert_allclose(rows.T @ rows, np.eye(d), rtol=0.0, atol=1e-14)
    lost = np.empty(d - 1)
    assert fill_coordinates(model.block, model.settings, safe, lost) == pytest.approx(1.0, abs=1e-14)
    assert np.abs(lost).max(initial=0.0) <= 1e-15 * size


@pytest.mark.parametrize("safe", AXES)
def test_the_reflection_is_orthonormal_at_awkward_places(safe: list[float]) -> None:
    check_reflection(np.array(safe))


@pytest.mark.long
@settings(max_examples=200)
@given(st.lists(coordinates, min_size=1, max_size=12).filter(lambda x: np.linalg.norm(x) > 1e-6))
def test_the_reflection_is_orthonormal(safe: list[float]) -> None:
    check_reflection(np.array(safe))


def test_what_is_known_at_the_safe_action_leaves_less_to_bound() -> None:
    safe = np.array([3.0, 4.0])
    model = build_model(safe, 6.0, np.array([0.0, 10.0]), 3)
    np.testing.assert_allclose(model.learned_bounds(5.0), [1.6, 2.0, 0.0], atol=1e-7)


def test_what_is_unknown_keeps_its_bound() -> None:
    np.testing.assert_array_equal(build_model(np.array([3.0, 4.0]), None, None, 2).learned_bounds(5.0), [2.0, 2.0])
    np.testing.assert_array_equal(build_model(np.zeros(2), 0.0, np.zeros(1), 2).learned_bounds(0.0), [2.0, 2.0])


def test_the_papers_radius_keeps_the_papers_bound() -> None:
    model = build_model(np.array([0.0, 3.0, 4.0]), 6.0, np.array([5.0]), 2, radius="paper")
    np.testing.assert_array_equal(model.learned_bounds(5.0), [2.0, 2.0])


@pytest.mark.parametrize("radius", ["joint", "logdet", "paper"])
def test_a_value_at_the_safe_action_beyond_the_bound_is_refused(radius: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        build_model(np.array([0.0, 3.0, 4.0]), 0.0, np.array([-11.0]), 2, radius=radius).learned_bounds(5.0)
    assert caught.value.code is ErrorCode.BOUND_EXCEEDED
    assert caught.value.details["bounds"] == 2.0


@pytest.mark.parametrize(
    ("safe", "reward", "costs", "signal", "directions"),
    [
        ([0.0], 0.0, [0.0], "reward", 1),
        ([1.0, 0.0], 0.1, [0.1], "reward", 1),
        ([1.0, 0.0], None, [0.1], "cost", 1),
        ([1.0], None, None, "reward", 1),
        ([1.0], 0.1, [0.1], "reward", 0),
    ],
)
def test_the_papers_radius_is_refused_below_two_dimensions(
    safe: list[float], reward: float | None, costs: list[float] | None, signal: str, directions: int
) -> None:
    model = build_model(np.array(safe), reward, None if costs is None else np.array(costs), 2, radius="paper")
    with pytest.raises(InvalidProblem) as caught:
        list(model.build_blocks())
    assert caught.value.code is ErrorCode.UNSUPPORTED
    assert caught.value.details == {"signal": signal, "n": directions}


@pytest.mark.parametrize(
    ("safe", "known"), [([0.0, 0.0], True), ([1.0, 0.0, 0.0], True), ([1.0, 0.0], False), ([0.0] * 9, True)]
)
def test_the_papers_radius_is_accepted_from_two_dimensions_on(safe: list[float], known: bool) -> None:
    model = build_model(np.array(safe), 0.0 if known else None, np.zeros(1) if known else None, 2, radius="paper")
    (block,) = model.build_blocks()
    assert np.isfinite(block.floats).all()
