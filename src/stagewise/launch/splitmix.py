"""SplitMix64: pseudo-random bits for every row, the same in every process."""

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats

Bits = npt.NDArray[np.uint64]
GOLDEN_GAMMA = 0x9E3779B97F4A7C15


def hash_row_numbers(rows: int, key: int = 0) -> Bits:
    """Return 64 bits for every row (n,), by a key of 64 bits."""
    return finalize_bits(np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(GOLDEN_GAMMA) + np.uint64(key))


def finalize_bits(z: Bits) -> Bits:
    """Return SplitMix64's finalizer of each 64 bits (n,), a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def uniform_hash(rows: int) -> Floats:
    """Return a number in [0, 1) for every row (n,).

    >>> uniform_hash(3).round(3).tolist()
    [0.883, 0.432, 0.026]
    """
    return np.asarray((hash_row_numbers(rows) >> np.uint64(11)) / float(2**53))
