"""Branch-free GPU arithmetic, accurate to a few units in the last place.

A GPU's exact roots and ratios branch for the rare inputs that need more work, which stalls a warp and keeps the
compiler from interleaving them; its `max` handles NaN. These approximations only rank candidates. What is played is
computed exactly.
"""

import math
from typing import Any

from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

from stagewise.engine.random import CENTRE, FAR, NEAR, polynomial, uniform_pair

device = cuda.jit(device=True, forceinline=True)
SMALLEST = 1e-300  # replaces 0, whose inverse root is infinite


def instruction(text: str) -> Any:
    """Return a function that emits one PTX instruction on float64."""

    def typed(context: Any, x: Any) -> Any:
        def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            double = ir.DoubleType()
            return builder.call(ir.InlineAsm(ir.FunctionType(double, [double]), f"{text} $0, $1;", "=d,d"), arguments)

        return types.float64(types.float64), emitted

    return intrinsic(typed)


rough_inverse = instruction("rcp.approx.ftz.f64")  # accurate to 20 bits
rough_inverse_root = instruction("rsqrt.approx.ftz.f64")


@device
def larger(a: float, b: float) -> float:
    """Return the larger of two numbers that are not NaN: three instructions, where `max` takes seven."""
    return a if a > b else b


@device
def lesser(a: float, b: float) -> float:
    """Return the lesser of two numbers that are not NaN."""
    return a if a < b else b


@device
def root(x: float) -> float:
    """Return √x for x ≥ 0: with y ≈ 1/√x and e = 1 − xy², √x = xy (1 + e/2 + 3e²/8 + …)."""
    positive = abs(x) + SMALLEST
    inverse = rough_inverse_root(positive)
    rough = positive * inverse
    error = 1.0 - rough * inverse
    return rough + rough * (error * (0.5 + 0.375 * error))


@device
def ratio(numerator: float, denominator: float) -> float:
    """Return a/b for b > 0: with y ≈ 1/b and e = 1 − by, 1/b = y (1 + e + e² + …)."""
    inverse = rough_inverse(denominator)
    error = 1.0 - denominator * inverse
    return numerator * (inverse + inverse * (error + error * error))


@device
def inverse_root(x: float) -> float:
    """Return 1/√x for x > 0: with y ≈ 1/√x and e = 1 − xy², 1/√x = y (1 + e/2 + 3e²/8 + …)."""
    inverse = rough_inverse_root(x)
    error = 1.0 - x * inverse * inverse
    return inverse + inverse * (error * (0.5 + 0.375 * error))


@device
def compute_central_fraction(offset: float, tables: Any) -> tuple[float, float]:
    """Return numerator and denominator of Φ⁻¹(½ + offset) in the centre."""
    depth = CENTRE * CENTRE - offset * offset
    return offset * polynomial(tables[0][0], depth), polynomial(tables[0][1], depth)


@device
def compute_tail_fraction(probability: float, tables: Any) -> tuple[float, float]:
    """Return numerator and denominator of Φ⁻¹(p) in a tail."""
    distance = math.sqrt(-math.log(lesser(probability, 1.0 - probability)))
    if distance <= FAR:
        numerator = polynomial(tables[1][0], distance - NEAR)
        denominator = polynomial(tables[1][1], distance - NEAR)
    else:
        numerator = polynomial(tables[2][0], distance - FAR)
        denominator = polynomial(tables[2][1], distance - FAR)
    return math.copysign(numerator, probability - 0.5), denominator


@device
def quantile(probability: float, tables: Any) -> float:
    """Return Φ⁻¹(p) as engine/random.py does, to the bit, with one division; `tables`: its (A, B), (C, D), (E, F)."""
    offset = probability - 0.5
    numerator, denominator = compute_central_fraction(offset, tables)
    if abs(offset) > CENTRE:
        numerator, denominator = compute_tail_fraction(probability, tables)
    return numerator / denominator


@device
def normals(first: float, second: float, tables: Any) -> tuple[float, float]:
    """Return two N(0, 1) numbers from two uniform ones."""
    return quantile(first, tables), quantile(second, tables)


@device
def fill_central(out: Any, position: int, probability: float, tails: int, tables: Any) -> int:
    """Write Φ⁻¹(p) if it is central; else write p, and return `tails` with the bit of this position set."""
    numerator, denominator = compute_central_fraction(probability - 0.5, tables)
    in_tail = abs(probability - 0.5) > CENTRE
    out[position] = probability if in_tail else ratio(numerator, denominator)
    return tails | (1 << position) if in_tail else tails


@device
def fill_normals(out: Any, count: int, seed: int, run: int, round_: int, stream: int, tables: Any) -> None:
    """Write up to 62 N(0, 1) numbers: positions 0, 1, … of a stream, right to a few units in the last place.

    Of a warp's threads nearly always one is in a tail. So tails are computed afterwards: a warp waits for the thread
    that has most of them, not for every position.
    """
    tails = 0
    for pair in range((count + 1) // 2):
        one, other = uniform_pair(seed, run, round_, stream, pair)
        tails = fill_central(out, 2 * pair, one, tails, tables)
        tails = fill_central(out, 2 * pair + 1, other, tails, tables)
    while tails:
        position = cuda.ffs(tails) - 1
        tails &= tails - 1
        numerator, denominator = compute_tail_fraction(out[position], tables)
        out[position] = ratio(numerator, denominator)
