"""Roots and ratios of the GPU's loops: right to a few units in the last place from a start right to 20 bits."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewise.engine.compile import as_python
from stagewise.engine.random import fill_normal, quantile_pair
from stagewise.simulation.gpu import lockstep
from stagewise.simulation.gpu.registers import TABLES

CLOSE = 1e-15
errors = st.floats(-(2.0**-20), 2.0**-20)


@given(x=st.floats(1e-280, 1e280), error=errors)
def test_a_rough_inverse_root_becomes_a_root(x: float, error: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "rough_inverse_root", lambda y: (1.0 + error) / math.sqrt(y))
        assert lockstep.root.py_func(x) == pytest.approx(math.sqrt(x), rel=CLOSE, abs=0.0)
        assert lockstep.inverse_root.py_func(x) == pytest.approx(1.0 / math.sqrt(x), rel=CLOSE, abs=0.0)


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


def test_many_normal_numbers_are_the_kernels_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also an odd number of them, and those in the tails, which are computed afterwards."""
    monkeypatch.setattr(lockstep, "rough_inverse", lambda y: 1.0 / y)
    monkeypatch.setattr(lockstep, "cuda", SimpleNamespace(ffs=lambda bits: (bits & -bits).bit_length()))
    fill, tails = as_python(lockstep.fill_normals), 0
    for round_ in range(100):
        device, host = np.full(20, math.nan), np.empty(19)
        with np.errstate(over="ignore"):
            fill(device, 19, 7, 3, round_, 4, TABLES)
            as_python(fill_normal)(host, 7, 3, round_, 4)
        np.testing.assert_allclose(device[:19], host, rtol=CLOSE)
        tails += int(np.sum(np.abs(host) > 1.5))
    assert tails > 200
