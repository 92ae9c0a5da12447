"""The basis of a mixture program: the basic variables, and the inverse of their columns, updated by pivots.

A variable is a listed action i ≥ 0, or ~k for the slack of row k; ~0 = -1 is the safe action. See `simplex` for the
scaling of rows.
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel

PIVOT = 1e-10


class Program(NamedTuple):
    """Maximise Σ p_i reward_i subject to Σ p_i cost_ji ≤ limit_j."""

    reward: Floats
    cost: Floats
    safe_reward: float
    safe_cost: Floats
    limits: Floats


class Basis(NamedTuple):
    """The variable at each position, the inverse of their columns, and the results of the current pivot."""

    support: Ints
    inverse: Floats
    prices: Floats
    direction: Floats
    noise_floor: Floats
    gains: Floats


@kernel
def is_basic(support: Ints, variable: int) -> bool:
    """Return whether a variable is basic."""
    found = False
    for position in range(support.size):
        found |= bool(support[position] == variable)
    return found


@kernel
def sum_values(values: Floats) -> float:
    """Return the sum of a few values."""
    total = 0.0
    for index in range(values.size):
        total += values[index]
    return total


@kernel
def get_coefficient(program: Program, row: int, variable: int) -> float:
    """Return a_ki: the coefficient of a variable in a row."""
    if variable < 0:
        return 1.0 if row == ~variable else 0.0
    if row == 0:
        return 1.0
    above: float = program.cost[row - 1, variable] - program.safe_cost[row - 1]
    slack: float = program.limits[row - 1] - program.safe_cost[row - 1]
    return above / slack


@kernel
def compute_direction(variable: int, program: Program, basis: Basis) -> None:
    """Write the direction B⁻¹ a: the rate at which each basic variable falls as the entering one grows."""
    for position in range(basis.support.size):
        update_direction(position, variable, program, basis)


@kernel
def compute_step_to_zero(basis: Basis, position: int) -> float:
    """Return how much of the entering variable reduces a basic variable to zero; ∞ if it does not fall."""
    fall = basis.direction[position]
    return max(sum_values(basis.inverse[position]), 0.0) / fall if fall > basis.noise_floor[position] else math.inf


@kernel
def apply_pivot(basis: Basis, position: int, variable: int) -> None:
    """Replace the variable at a position: eliminate so that its direction becomes a unit vector."""
    pivot = basis.direction[position]
    for row in range(basis.support.size):
        basis.inverse[position, row] /= pivot
    for other in range(basis.support.size):
        if other != position:
            for row in range(basis.support.size):
                basis.inverse[other, row] -= basis.direction[other] * basis.inverse[position, row]
    basis.support[position] = variable


@kernel
def refactorise(program: Program, basis: Basis) -> None:
    """Recompute the inverse: from the identity, pivot the basic actions in for the slacks that left."""
    size = basis.support.size
    for position in range(size):
        for row in range(size):
            basis.inverse[position, row] = 1.0 if position == row else 0.0
    for position in range(size):
        while basis.support[position] < 0 and ~basis.support[position] != position:
            own_position = ~basis.support[position]
            basis.support[position], basis.support[own_position] = basis.support[own_position], basis.support[position]
    for position in range(size):
        if basis.support[position] >= 0:
            compute_direction(basis.support[position], program, basis)
            swap_positions(basis, position, find_steepest_position(basis, position))
            apply_pivot(basis, position, basis.support[position])


@kernel
def find_steepest_position(basis: Basis, start: int) -> int:
    """Return the position with the largest direction, from `start` on, whose action is not yet pivoted in."""
    chosen = start
    for position in range(start + 1, basis.support.size):
        if basis.support[position] >= 0 and abs(basis.direction[position]) > abs(basis.direction[chosen]):
            chosen = position
    return chosen


@kernel
def swap_positions(basis: Basis, one: int, other: int) -> None:
    """Swap two positions whose actions are not yet pivoted in."""
    inverse, direction = basis.inverse, basis.direction
    direction[one], direction[other] = direction[other], direction[one]
    for row in range(basis.support.size):
        inverse[one, row], inverse[other, row] = inverse[other, row], inverse[one, row]


@kernel
def update_direction(position: int, variable: int, program: Program, basis: Basis) -> bool:
    """Write the rate at which one basic variable falls, and return whether it does.

    A rate 10¹⁰ times smaller than its terms may be rounding, and a pivot on it would ruin the inverse.
    """
    fall, size = 0.0, 0.0
    for row in range(basis.support.size):
        coefficient = get_coefficient(program, row, variable)
        fall += basis.inverse[position, row] * coefficient
        size += abs(basis.inverse[position, row]) * max(abs(coefficient), 1.0)
    basis.direction[position], basis.noise_floor[position] = fall, PIVOT * size
    return fall > PIVOT * size
