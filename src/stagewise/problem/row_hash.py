"""64-bit hashes of the rows of a table, the same in every process."""

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def finalize_bits(z: Hashes) -> Hashes:
    """Return SplitMix64's finaliser of 64 bits each (n,), a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def extend_hashes(before: Hashes, column: Hashes) -> Hashes:
    """Return the hashes (n,) of rows with one more column (FNV multiplication, SplitMix64 finaliser)."""
    return finalize_bits(before * np.uint64(0x100000001B3) + column + GOLDEN_GAMMA)


def convert_to_bits(numbers: npt.NDArray[np.generic]) -> Hashes:
    """Return numbers (n,) as 64 bits each, the same for equal numbers: 0.0 and -0.0 are equal.

    >>> bool(convert_to_bits(np.array([0.0]))[0] == convert_to_bits(np.array([-0.0]))[0])
    True
    """
    return np.ascontiguousarray(numbers.astype(np.float64) + 0.0).view(np.uint64)


def hash_rows(rows: npt.NDArray[np.float64]) -> Hashes:
    """Return the hash (n,) of every row of numbers (n, d)."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        hashes = extend_hashes(hashes, convert_to_bits(column))
    return hashes
