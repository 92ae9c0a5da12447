"""The Cholesky factor V = LLᵀ of a growing matrix, for draws from N(0, V⁻¹)."""

import math

from stagewise.kernels.compile import Floats, kernel


@kernel
def update(factor: Floats, vector: Floats) -> None:
    """Turn L of V into L of V + vvᵀ, column by column with plane rotations; `vector` is used up."""
    size = vector.size
    for k in range(size):
        diagonal = factor[k, k]
        root = math.sqrt(diagonal * diagonal + vector[k] * vector[k])
        cosine, sine = root / diagonal, vector[k] / diagonal
        factor[k, k] = root
        for i in range(k + 1, size):
            factor[i, k] = (factor[i, k] + sine * vector[i]) / cosine
            vector[i] = cosine * vector[i] - sine * factor[i, k]


@kernel
def unwind(factor: Floats, vector: Floats) -> None:
    """Replace v by L⁻ᵀv, which turns N(0, I) into N(0, V⁻¹)."""
    for i in range(vector.size - 1, -1, -1):
        total = vector[i]
        for j in range(i + 1, vector.size):
            total -= factor[j, i] * vector[j]
        vector[i] = total / factor[i, i]
