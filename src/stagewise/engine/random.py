"""Philox4x32-10: 128 random bits as a function of a counter and a key, without state (Salmon et al. 2011).

Quantiles of the normal distribution: one uniform number in, one normal number out.

Counter-based random numbers: a draw is a function of seed, run, round, stream and position, without state.

The seed is Philox's key; (position // 2, stream, round, run) is its counter, so these four are integers in [0, 2³²).
Each call of Philox makes two numbers: pair k of a stream holds its positions 2k and 2k + 1.

Inside kernels a seed is 64 signed bits, because Numba converts uint64 + int64 to float and rejects Python integers of
2⁶³ or more. Seeds below 2⁶³ are passed unchanged; `to_signed_seed` converts larger ones once, before any loop.
"""

import math

from stagewise.engine.compile import Floats, kernel

WORD = 0xFFFFFFFF
ROUNDS = 10
FIRST_MULTIPLIER = 0xD2511F53
SECOND_MULTIPLIER = 0xCD9E8D57
FIRST_WEYL = 0x9E3779B9
SECOND_WEYL = 0xBB67AE85


@kernel
def philox(
    first: int, second: int, third: int, fourth: int, first_key: int, second_key: int
) -> tuple[int, int, int, int]:
    """Return the four random words that belong to a counter of four words and a key of two.

        (c₀, c₁, c₂, c₃) ← (hi(M₁c₂) ⊕ c₁ ⊕ k₀, lo(M₁c₂), hi(M₀c₀) ⊕ c₃ ⊕ k₁, lo(M₀c₀))
        (k₀, k₁) ← (k₀ + W₀, k₁ + W₁) mod 2³²                ten times (Salmon et al. 2011)

    A word is an integer in [0, 2³²), stored in 64 signed bits, because Numba converts the sum of an unsigned and a
    signed integer to float. A product may reach the sign bit; the mask after the shift removes it.
    """
    for _ in range(ROUNDS):
        first_product = FIRST_MULTIPLIER * first
        second_product = SECOND_MULTIPLIER * third
        first = ((second_product >> 32) & WORD) ^ second ^ first_key
        second = second_product & WORD
        third = ((first_product >> 32) & WORD) ^ fourth ^ second_key
        fourth = first_product & WORD
        first_key = (first_key + FIRST_WEYL) & WORD
        second_key = (second_key + SECOND_WEYL) & WORD
    return first, second, third, fourth


CENTRE = 0.425
NEAR = 1.6
FAR = 5.0
# Coefficients of Wichura's PPND16, from the constant term upwards.
CENTRE_NUMERATOR = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
CENTRE_DENOMINATOR = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
TAIL_NUMERATOR = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
TAIL_DENOMINATOR = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
FAR_NUMERATOR = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
FAR_DENOMINATOR = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)


@kernel
def polynomial(c: tuple[float, ...], x: float) -> float:
    """Return c₀ + c₁x + … + c₇x⁷ as (c₀ + c₁x + (c₂ + c₃x)x²) + (c₄ + c₅x + (c₆ + c₇x)x²)x⁴."""
    # Horner's rule takes fewer products, but each waits for the one before: a pair of normals took 2 ns more.
    square = x * x
    lower = c[0] + c[1] * x + (c[2] + c[3] * x) * square
    upper = c[4] + c[5] * x + (c[6] + c[7] * x) * square
    return lower + upper * (square * square)


@kernel
def central(probability: float) -> float:
    """Return Φ⁻¹(p) where |q| ≤ 0.425, with q = p − ½: q A(0.425² − q²) / B(0.425² − q²)."""
    offset = probability - 0.5
    depth = CENTRE * CENTRE - offset * offset
    return offset * polynomial(CENTRE_NUMERATOR, depth) / polynomial(CENTRE_DENOMINATOR, depth)


@kernel
def extreme(probability: float) -> float:
    """Return Φ⁻¹(p) where |p − ½| > 0.425, with r = √(−log min(p, 1 − p)).

    |Φ⁻¹(p)| = C(r − 1.6) / D(r − 1.6), or E(r − 5) / F(r − 5) where r > 5
    """
    distance = math.sqrt(-math.log(min(probability, 1.0 - probability)))
    if distance <= FAR:
        size = polynomial(TAIL_NUMERATOR, distance - NEAR) / polynomial(TAIL_DENOMINATOR, distance - NEAR)
    else:
        size = polynomial(FAR_NUMERATOR, distance - FAR) / polynomial(FAR_DENOMINATOR, distance - FAR)
    return math.copysign(size, probability - 0.5)


@kernel
def quantile(probability: float) -> float:
    """Return the x with P(N(0, 1) ≤ x) = p, for p in the open interval (0, 1), to within 1e-15 of its size.

    Φ⁻¹(p) = one ratio of polynomials in the centre, two in the tails        (Wichura 1988, AS 241, PPND16)
    """
    return central(probability) if abs(probability - 0.5) <= CENTRE else extreme(probability)


@kernel
def quantile_pair(first: float, second: float) -> tuple[float, float]:
    """Return both quantiles, the same to the bit as one by one."""
    # Both central values are computed before either branch, so that a mispredicted branch costs less.
    low, high = central(first), central(second)
    if abs(first - 0.5) > CENTRE:
        low = extreme(first)
    if abs(second - 0.5) > CENTRE:
        high = extreme(second)
    return low, high


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
