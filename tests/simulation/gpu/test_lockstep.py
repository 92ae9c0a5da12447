"""Roots and ratios of the GPU's loops: right to a few units in the last place from a start right to 20 bits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewise.engine.compile import as_python
from stagewise.engine.random import quantile_pair
from stagewise.simulation.gpu import lockstep
from stagewise.simulation.gpu.registers import TABLES

CLOSE = 1e-15
errors = st.floats(-(2.0**-20), 2.0**-20)


@given(x=st.floats(1e-280, 1e280), error=errors)
def test_a_rough_inverse_root_becomes_a_root(x: float, error: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "rough_inverse_root", lambda y: (1.0 + error) / math.sqrt(y))
        assert lockstep.root.py_func(x) == pytest.approx(math.sqrt(x), rel=CLOSE, abs=0.0)


@given(numerator=st.floats(1e-3, 1e3), denominator=st.floats(1e-100, 1e100), error=errors)
def test_a_rough_inverse_becomes_a_ratio(numerator: float, denominator: float, error: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "rough_inverse", lambda y: (1.0 + error) / y)
        found = lockstep.ratio.py_func(numerator, denominator)
        assert found == pytest.approx(numerator / denominator, rel=CLOSE, abs=0.0)


def test_the_root_of_nothing_is_nothing_and_not_nan() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "rough_inverse_root", lambda y: 1.0 / math.sqrt(y))
        assert 0.0 <= lockstep.root.py_func(0.0) <= 1e-149
        assert 0.0 <= lockstep.root.py_func(-1e-18) <= 1.1e-9  # what rounding may leave of a width


def test_the_normal_numbers_are_the_kernels_to_the_bit() -> None:
    chances = np.concatenate([np.random.default_rng(0).uniform(size=2000), 10.0 ** -np.arange(1.0, 16.0)])
    normals = as_python(lockstep.normals)
    for first, second in zip(chances, 1.0 - chances, strict=True):
        assert normals(first, second, TABLES) == quantile_pair(first, second)
