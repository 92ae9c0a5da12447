"""What it costs to cross from Python into a kernel: microseconds for an array, for a NamedTuple, and to return one.

Run `python benchmarks/border.py`. The reason for docs/decisions/0004-one-array-crosses-into-a-kernel.md.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np


class Nine(NamedTuple):
    """Nine numbers, as a policy's switches are."""

    a: int
    b: int
    c: int
    d: bool
    e: bool
    f: bool
    g: bool
    h: bool
    i: bool


class Two(NamedTuple):
    """Two numbers, as a choice is."""

    index: int
    reason: int


@numba.njit
def one_array(first: Any) -> int:
    return 1


@numba.njit
def seven_arrays(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> int:
    return 1


@numba.njit
def array_and_nine(first: Any, nine: Any) -> int:
    return 1


@numba.njit
def returning(first: Any) -> Two:
    return Two(1, 2)


def cost(function: Callable[..., Any], *arguments: Any) -> float:
    """Return microseconds a call, the best of five."""
    function(*arguments)
    best = np.inf
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(20_000):
            function(*arguments)
        best = min(best, (time.perf_counter() - started) / 20_000)
    return best * 1e6


def main() -> None:
    """Print what each adds."""
    array, nine = np.zeros(10), Nine(10, 1, 0, True, True, True, False, True, True)
    alone = cost(one_array, array)
    print(f"a call with one array: {alone:.2f} µs")
    print(f"each further array: {(cost(seven_arrays, *[array] * 7) - alone) / 6:.2f} µs")
    print(f"a NamedTuple of nine numbers besides: {cost(array_and_nine, array, nine) - alone:.2f} µs")
    print(f"a NamedTuple of two numbers returned: {cost(returning, array) - alone:.2f} µs")


if __name__ == "__main__":
    main()
