"""The basis of a mixture program: which variables hold a place, and the inverse of their columns, kept by pivots.

A variable is a listed action i ≥ 0, or ~k for the slack of row k; ~0 = -1 is the safe action. `simplex` says how rows
are measured.
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
    """Which variable holds each place, the inverse of their columns, and what follows from it in this pivot."""

    support: Ints
    inverse: Floats
    prices: Floats
    direction: Floats
    noise_floor: Floats
    gains: Floats


@kernel
def holds(support: Ints, variable: int) -> bool:
    """Say whether a variable is basic."""
    found = False
    for place in range(support.size):
        found |= bool(support[place] == variable)
    return found


@kernel
def total(values: Floats) -> float:
    """Return the sum of a few values."""
    added = 0.0
    for index in range(values.size):
        added += values[index]
    return added


@kernel
def entry(program: Program, row: int, variable: int) -> float:
    """Return a_ki: the coefficient of a variable in a row."""
    if variable < 0:
        return 1.0 if row == ~variable else 0.0
    if row == 0:
        return 1.0
    above: float = program.cost[row - 1, variable] - program.safe_cost[row - 1]
    slack: float = program.limits[row - 1] - program.safe_cost[row - 1]
    return above / slack


@kernel
def head_for(variable: int, program: Program, basis: Basis) -> None:
    """Write the direction B⁻¹ a: how fast each basic variable falls as the entering one grows."""
    for place in range(basis.support.size):
        falls(place, variable, program, basis)


@kernel
def step_until_empty(basis: Basis, place: int) -> float:
    """Return how much of the entering variable empties a place, ∞ if it does not fall."""
    fall = basis.direction[place]
    return max(total(basis.inverse[place]), 0.0) / fall if fall > basis.noise_floor[place] else math.inf


@kernel
def exchange(basis: Basis, place: int, variable: int) -> None:
    """Let a variable take a place: the elimination that turns its direction into a unit vector, done to the inverse."""
    pivot = basis.direction[place]
    for row in range(basis.support.size):
        basis.inverse[place, row] /= pivot
    for other in range(basis.support.size):
        if other != place:
            for row in range(basis.support.size):
                basis.inverse[other, row] -= basis.direction[other] * basis.inverse[place, row]
    basis.support[place] = variable


@kernel
def refactorise(program: Program, basis: Basis) -> None:
    """Make the inverse afresh: from the identity, let the basic actions take the places of the slacks that left."""
    size = basis.support.size
    for place in range(size):
        for row in range(size):
            basis.inverse[place, row] = 1.0 if place == row else 0.0
    for place in range(size):
        while basis.support[place] < 0 and ~basis.support[place] != place:
            home = ~basis.support[place]
            basis.support[place], basis.support[home] = basis.support[home], basis.support[place]
    for place in range(size):
        if basis.support[place] >= 0:
            head_for(basis.support[place], program, basis)
            swap_places(basis, place, steepest_open(basis, place))
            exchange(basis, place, basis.support[place])


@kernel
def steepest_open(basis: Basis, start: int) -> int:
    """Return the place with the largest direction among those, from `start` on, that still wait for their action."""
    chosen = start
    for place in range(start + 1, basis.support.size):
        if basis.support[place] >= 0 and abs(basis.direction[place]) > abs(basis.direction[chosen]):
            chosen = place
    return chosen


@kernel
def swap_places(basis: Basis, one: int, other: int) -> None:
    """Swap two places that wait for their actions."""
    inverse, direction = basis.inverse, basis.direction
    direction[one], direction[other] = direction[other], direction[one]
    for row in range(basis.support.size):
        inverse[one, row], inverse[other, row] = inverse[other, row], inverse[one, row]


@kernel
def falls(place: int, variable: int, program: Program, basis: Basis) -> bool:
    """Write how fast one basic variable falls, and say whether it does.

    A fall 10¹⁰ times smaller than its terms may be rounding, and to pivot on it would ruin the inverse.
    """
    fall, size = 0.0, 0.0
    for row in range(basis.support.size):
        coefficient = entry(program, row, variable)
        fall += basis.inverse[place, row] * coefficient
        size += abs(basis.inverse[place, row]) * max(abs(coefficient), 1.0)
    basis.direction[place], basis.noise_floor[place] = fall, PIVOT * size
    return fall > PIVOT * size
