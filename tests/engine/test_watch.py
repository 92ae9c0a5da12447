"""Squares that are not looked at closely could contradict nothing."""

import numpy as np

from stagewise.models.diagnostics import LEAST_RATIO, compute_max_squares


def test_no_test_is_louder_than_what_is_passed_over() -> None:
    loud = getattr(compute_max_squares, "py_func", compute_max_squares)
    assert all(loud(float(count), 0.0) > LEAST_RATIO * count * (1.0 + 1e-9) for count in np.geomspace(1.0, 1e12, 100))
