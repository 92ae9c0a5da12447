"""Quantiles of the normal distribution: one uniform number in, one normal number out."""

import math

from stagewise.kernels.compile import kernel

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
