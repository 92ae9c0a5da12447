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

from stagewise.engine.random import CENTRE, FAR, NEAR, polynomial

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
def quantile(probability: float, tables: Any) -> float:
    """Return Φ⁻¹(p) as engine/random.py does, to the bit, with one division; `tables`: its (A, B), (C, D), (E, F)."""
    offset = probability - 0.5
    depth = CENTRE * CENTRE - offset * offset
    numerator, denominator = offset * polynomial(tables[0][0], depth), polynomial(tables[0][1], depth)
    if abs(offset) > CENTRE:
        distance = math.sqrt(-math.log(lesser(probability, 1.0 - probability)))
        if distance <= FAR:
            numerator = polynomial(tables[1][0], distance - NEAR)
            denominator = polynomial(tables[1][1], distance - NEAR)
        else:
            numerator = polynomial(tables[2][0], distance - FAR)
            denominator = polynomial(tables[2][1], distance - FAR)
        numerator = math.copysign(numerator, offset)
    return numerator / denominator


@device
def normals(first: float, second: float, tables: Any) -> tuple[float, float]:
    """Return two N(0, 1) numbers from two uniform ones."""
    return quantile(first, tables), quantile(second, tables)
