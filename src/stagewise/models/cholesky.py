"""Cholesky factors of small symmetric matrices: A = LLᵀ, both in lower triangles."""

import math

from stagewise.engine.compile import Floats, kernel


@kernel
def factorise(matrix: Floats, root: Floats) -> bool:
    """Write L; return whether the matrix is positive definite. `root` may be the matrix itself."""
    for i in range(root.shape[0]):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            if i > j:
                root[i, j] = value / root[j, j]
            elif value > 0.0:
                root[i, i] = math.sqrt(value)
            else:
                return False
    return True


@kernel
def invert(root: Floats) -> None:
    """Replace L by L⁻¹, column by column."""
    for j in range(root.shape[0]):
        root[j, j] = 1.0 / root[j, j]
        for i in range(j + 1, root.shape[0]):
            value = 0.0
            for k in range(j, i):
                value -= root[i, k] * root[k, j]
            root[i, j] = value / root[i, i]


@kernel
def solve_lower(root: Floats, vector: Floats, image: Floats) -> float:
    """Write L⁻¹v, and return its squared norm, vᵀA⁻¹v. `image` may be the vector itself."""
    form = 0.0
    for i in range(root.shape[0]):
        value = vector[i]
        for j in range(i):
            value -= root[i, j] * image[j]
        value /= root[i, i]
        image[i] = value
        form += value * value
    return form


@kernel
def solve(root: Floats, vector: Floats, solution: Floats) -> None:
    """Write A⁻¹v. `solution` may be the vector itself."""
    solve_lower(root, vector, solution)
    for back in range(root.shape[0]):
        i = root.shape[0] - 1 - back
        value = solution[i]
        for j in range(i + 1, root.shape[0]):
            value -= root[j, i] * solution[j]
        solution[i] = value / root[i, i]


@kernel
def compute_norm(root: Floats, vector: Floats) -> float:
    """Return √(vᵀAv)."""
    form = 0.0
    for j in range(root.shape[0]):
        value = 0.0
        for i in range(j, root.shape[0]):
            value += root[i, j] * vector[i]
        form += value * value
    return math.sqrt(form)


@kernel
def compute_log_determinant(root: Floats) -> float:
    total = 0.0
    for i in range(root.shape[0]):
        total += math.log(root[i, i])
    return 2.0 * total


@kernel
def dot(one: Floats, other: Floats) -> float:
    """Return <v, w>."""
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total
