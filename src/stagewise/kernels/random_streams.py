"""Counter-based random numbers: a draw is a function of seed, run, round, stream and position, without state.

The seed is Philox's key; (position // 2, stream, round, run) is its counter, so these four are integers in [0, 2³²).
Each call of Philox makes two numbers: pair k of a stream holds its positions 2k and 2k + 1.

Inside kernels a seed is 64 signed bits, because Numba converts uint64 + int64 to float and rejects Python integers of
2⁶³ or more. Seeds below 2⁶³ are passed unchanged; `to_signed_seed` converts larger ones once, before any loop.
"""

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.normal import quantile, quantile_pair
from stagewise.kernels.philox import WORD, philox

OUTCOME = 0  # outcomes of a world; position: the signal, the reward first
ACTIONS = 1  # new action sets; position: the entry
POLICY = 2  # a policy's own draws, from a mixture or a posterior; position: the coordinate
INSTANCE = 3  # random instances, all in round 0
POSTERIOR = 4  # posterior draws of the signals of the first block, 5 of the second signal, and so on

HALF_SPACING = 2.0**-53


def to_signed_seed(seed: int) -> int:
    """Return the integer in [−2⁶³, 2⁶³) that has the same 64 bits as a seed in [0, 2⁶⁴)."""
    return seed - 2**64 if seed >= 2**63 else seed


@kernel
def open_unit(high: int, low: int) -> float:
    """Return a number strictly between 0 and 1 from two random words.

        u = (k + ½) 2⁻⁵² = (2k + 1) 2⁻⁵³,  k uniform on {0, …, 2⁵² − 1}

    With 53 random bits, k + ½ would need 54 and the last could round to one; with 52, every u and every 1 − u is exact.
    """
    odd = (high << 21) | (low >> 11) | 1
    return float(odd) * HALF_SPACING


@kernel
def uniform_pair(seed: int, run: int, round_: int, stream: int, pair: int) -> tuple[float, float]:
    """Return two numbers uniform on (0, 1): positions 2 · pair and 2 · pair + 1 of the stream."""
    first, second, third, fourth = philox(pair, stream, round_, run, seed & WORD, (seed >> 32) & WORD)
    return open_unit(first, second), open_unit(third, fourth)


@kernel
def uniform(seed: int, run: int, round_: int, stream: int, position: int) -> float:
    """Return one number uniform on (0, 1)."""
    even, odd = uniform_pair(seed, run, round_, stream, position // 2)
    return even if position % 2 == 0 else odd


@kernel
def normal_pair(seed: int, run: int, round_: int, stream: int, pair: int) -> tuple[float, float]:
    """Return two independent N(0, 1) numbers: positions 2 · pair and 2 · pair + 1 of the stream."""
    even, odd = uniform_pair(seed, run, round_, stream, pair)
    return quantile_pair(even, odd)


@kernel
def normal(seed: int, run: int, round_: int, stream: int, position: int) -> float:
    """Return one N(0, 1) number, Φ⁻¹(u): one uniform makes one normal, and none is ever rejected."""
    return quantile(uniform(seed, run, round_, stream, position))


@kernel
def fill_uniform(out: Floats, seed: int, run: int, round_: int, stream: int) -> None:
    """Write positions 0, 1, … of the stream into a vector: the values of `uniform`, two per call of Philox."""
    for pair in range(out.size // 2):
        out[2 * pair], out[2 * pair + 1] = uniform_pair(seed, run, round_, stream, pair)
    if out.size % 2 == 1:
        out[out.size - 1] = uniform(seed, run, round_, stream, out.size - 1)


@kernel
def fill_normal(out: Floats, seed: int, run: int, round_: int, stream: int) -> None:
    """Write positions 0, 1, … of the stream into a vector: the values of `normal`, two per call of Philox."""
    for pair in range(out.size // 2):
        out[2 * pair], out[2 * pair + 1] = normal_pair(seed, run, round_, stream, pair)
    if out.size % 2 == 1:
        out[out.size - 1] = normal(seed, run, round_, stream, out.size - 1)
