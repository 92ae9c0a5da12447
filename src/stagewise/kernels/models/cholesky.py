"""A symmetric positive definite matrix V, given by its lower triangle, and T with V⁻¹ = TᵀT."""

import math

from stagewise.kernels.compile import Floats, kernel


@kernel
def invert_root(matrix: Floats) -> None:
    """Replace the lower triangle of V (n, n) by T = L⁻¹, V = LLᵀ; entries above the diagonal are not read."""
    n = matrix.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(total) if i == j else total / matrix[j, j]
    for j in range(n):
        matrix[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= matrix[i, k] * matrix[k, j]
            matrix[i, j] = total / matrix[i, i]


@kernel
def solve_root(root: Floats, vector: Floats, image: Floats, solution: Floats) -> float:
    """Write Tb and V⁻¹b = TᵀTb; return bᵀV⁻¹b."""
    n, form = vector.size, 0.0
    for i in range(n):
        solution[i] = 0.0
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * vector[j]
        image[i] = total
        form += total * total
        for j in range(i + 1):
            solution[j] += root[i, j] * total
    return form
