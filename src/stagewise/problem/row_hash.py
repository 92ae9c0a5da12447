"""A hash of 64 bits for every row of a table, made column by column: equal rows have equal hashes, in every process."""

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


def with_column(before: Hashes, column: Hashes) -> Hashes:
    """Return hashes (n,) of rows with one column more (FNV's multiplication, SplitMix64's finish)."""
    z = before * np.uint64(0x100000001B3) + column + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def bits_of(numbers: npt.NDArray[np.generic]) -> Hashes:
    """Return numbers (n,) as 64 bits each, the same for equal numbers: 0.0 and -0.0 are equal.

    >>> bool(bits_of(np.array([0.0]))[0] == bits_of(np.array([-0.0]))[0])
    True
    """
    return np.ascontiguousarray(numbers.astype(np.float64) + 0.0).view(np.uint64)


def hashes_of(rows: npt.NDArray[np.float64]) -> Hashes:
    """Return the hash (n,) of every row of numbers (n, d)."""
    told = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        told = with_column(told, bits_of(column))
    return told
