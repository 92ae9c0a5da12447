"""Squares that are not looked at closely could contradict nothing."""

import numpy as np

from stagewise.kernels.signals.watch import LEAST, loudest


def test_no_test_is_louder_than_what_is_passed_over() -> None:
    loud = getattr(loudest, "py_func", loudest)
    assert all(loud(float(count), 0.0) > LEAST * count * (1.0 + 1e-9) for count in np.geomspace(1.0, 1e12, 100))
