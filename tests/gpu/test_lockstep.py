"""On a machine with a CUDA device: the roots and ratios that rank candidates are right to the last few bits."""

from typing import Any

import numpy as np
import pytest

from stagewise.simulation.gpu.lockstep import ratio, root

pytestmark = pytest.mark.gpu


def test_roots_and_ratios_of_all_sizes() -> None:
    from numba import cuda

    @cuda.jit
    def fill(xs: Any, roots: Any, ratios: Any) -> None:
        index = cuda.grid(1)
        if index < xs.size:
            roots[index], ratios[index] = root(xs[index]), ratio(0.5, xs[index])

    draws = np.random.default_rng(0)
    xs = draws.uniform(1.0, 10.0, 100_000) * 10.0 ** draws.integers(-250, 250, 100_000)
    device = [cuda.to_device(array) for array in (xs, np.zeros(xs.size), np.zeros(xs.size))]
    fill[400, 256](*device)
    np.testing.assert_allclose(device[1].copy_to_host(), np.sqrt(xs), rtol=1e-15)
    np.testing.assert_allclose(device[2].copy_to_host(), 0.5 / xs, rtol=1e-15)
