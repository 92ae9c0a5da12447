"""The growing Cholesky factor is numpy's, after any number of rows, and turns N(0, I) into N(0, V⁻¹)."""

import numpy as np
import pytest
from tests.kernels.textbook import unit_rows

from stagewise.kernels.cholesky import unwind, update

SIZES = [1, 2, 3, 10, 50]


@pytest.mark.parametrize("size", SIZES)
def test_the_factor_of_a_growing_matrix_is_numpys(size: int) -> None:
    random = np.random.default_rng(size)
    factor, gram = np.sqrt(0.3) * np.eye(size), 0.3 * np.eye(size)
    for row in unit_rows(random, 500, size) * random.uniform(0.01, 3.0, size=(500, 1)):
        update(factor, row.copy())
        gram += np.outer(row, row)
    np.testing.assert_allclose(factor, np.linalg.cholesky(gram), rtol=1e-10, atol=1e-10)


def test_a_row_of_zeros_changes_nothing() -> None:
    factor = np.linalg.cholesky(np.array([[4.0, 1.0], [1.0, 3.0]]))
    grown = factor.copy()
    update(grown, np.zeros(2))
    np.testing.assert_array_equal(grown, factor)


@pytest.mark.parametrize("size", SIZES)
def test_unwinding_solves_with_the_transposed_factor(size: int) -> None:
    random = np.random.default_rng(size)
    rows = random.normal(size=(2 * size, size))
    factor = np.linalg.cholesky(np.eye(size) + rows.T @ rows)
    vector = random.normal(size=size)
    unwound = vector.copy()
    unwind(factor, unwound)
    np.testing.assert_allclose(unwound, np.linalg.solve(factor.T, vector), rtol=1e-10, atol=1e-12)


def test_unwound_axes_span_the_inverse() -> None:
    rows = np.random.default_rng(4).normal(size=(9, 4))
    gram = np.eye(4) + rows.T @ rows
    axes = np.eye(4)
    for axis in axes:
        unwind(np.linalg.cholesky(gram), axis)
    np.testing.assert_allclose(axes.T @ axes, np.linalg.inv(gram), rtol=1e-11, atol=1e-13)
