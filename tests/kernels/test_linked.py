"""Kernels within kernels are linked, and where Numba no longer allows it, compiled as Numba does it."""

from collections.abc import Callable
from typing import Any

import pytest

from stagewise.kernels import linked
from stagewise.kernels.compile import kernel

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


@pytest.mark.parametrize("lost", linked.NEEDED)
def test_without_what_it_replaces_kernels_are_compiled_as_numba_does(
    monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    kept = {name: None for name in linked.NEEDED if name != lost}
    monkeypatch.setattr(linked, "LIBRARY", type("Library", (), kept))
    inner, outer = pair()
    assert outer(0.1) == (0.1 * 0.1 + 1.0) / 3.0
    assert inner.overloads
