"""A number for every row that looks drawn by lot, the same in every process: SplitMix64's finish of its number."""

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats

Bits = npt.NDArray[np.uint64]
STEP = 0x9E3779B97F4A7C15


def mixed(rows: int, key: int = 0) -> Bits:
    """Return 64 bits for every row (n,), others for another key of 64 bits."""
    return finished(np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(STEP) + np.uint64(key))


def finished(z: Bits) -> Bits:
    """Return 64 bits that look drawn by lot, for each 64 bits (n,); different ones for different ones."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def hashed(rows: int) -> Floats:
    """Return a number in [0, 1) for every row (n,).

    >>> hashed(3).round(3).tolist()
    [0.883, 0.432, 0.026]
    """
    return np.asarray((mixed(rows) >> np.uint64(11)) / float(2**53))
