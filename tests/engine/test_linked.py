"""Kernels within kernels are linked, and where Numba no longer allows it, compiled as Numba does it."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from stagewise.engine import jit as linking
from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.simplex import OPTIMAL, find_best_mixture, scratch_shape

pytestmark = pytest.mark.compiled


def pair() -> tuple[Any, Callable[[float], float]]:
    """Return a kernel, and one that calls it."""

    @kernel
    def inner(x: float) -> float:
        return x * x + 1.0

    @kernel
    def outer(x: float) -> float:
        return inner(x) / 3.0

    return inner, outer


def test_what_only_kernels_call_is_no_machine_code_by_itself() -> None:
    inner, outer = pair()
    assert outer(0.1) == (0.1 * 0.1 + 1.0) / 3.0
    assert not inner.overloads
    assert inner(0.1) == 0.1 * 0.1 + 1.0  # for Python it is compiled when Python calls it
    assert inner.overloads


@kernel
def solved_twice(
    reward: Floats, cost: Floats, ends: Floats, support: Ints, shares: Floats, basis: Floats, gains: Floats
) -> int:
    """Solve a program and what is left of it without its first action."""
    code = find_best_mixture(reward, cost, 0.0, ends[0], ends[1], support, shares, basis, gains)
    return code + find_best_mixture(reward[1:], cost[:, 1:], 0.0, ends[0], ends[1], support, shares, basis, gains[1:])


def test_a_long_kernel_that_is_marked_so_is_called_and_not_copied() -> None:
    """The simplex, in the place of each of the six programs that some rounds solve, compiled for 40 s."""
    support, shares = np.zeros(3, dtype=np.int64), np.zeros(3)
    ends, room = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(scratch_shape(2))
    assert solved_twice(np.ones(3), np.eye(3)[:2] * 9.0, ends, support, shares, room, np.zeros(3)) == 2 * OPTIMAL
    (text,) = cast(Any, solved_twice).inspect_llvm().values()
    assert len([line for line in text.splitlines() if " call " in line and "best_mixture" in line]) == 2


@pytest.mark.parametrize("lost", linking.NEEDED)
def test_without_what_it_replaces_kernels_are_compiled_as_numba_does(
    monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    kept = {name: None for name in linking.NEEDED if name != lost}
    monkeypatch.setattr(linking, "LIBRARY", type("Library", (), kept))
    inner, outer = pair()
    assert outer(0.1) == (0.1 * 0.1 + 1.0) / 3.0
    assert inner.overloads
