"""The best mixture when costs are bounded per function: a linear program with a row for every function.

Measured from the safe action, in units of each row's slack, all rows have the same form:

    Σ_i p_i a_ki ≤ 1,    a_ki = (f_k(x_i) − f_k(x₀)) / (limit_k − f_k(x₀)),    Σ_i p_i ≤ 1,    p ≥ 0

The share of the safe action is 1 less the sum; it alone is feasible.
"""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.simplex import OPTIMAL, find_best_mixture, get_limit_price, scratch_shape

GET_LIMIT_PRICE = as_python(get_limit_price)
SHARE_TOLERANCE = 1e-12  # smaller shares are rounding


class Vertex(NamedTuple):
    """A mixture and an upper bound on the best one."""

    shares: Floats  # (n + 1,) of the listed actions, then of the safe one
    value: float
    bound: float  # upper bound on the value of any feasible mixture
    solved: bool  # False: a program failed, and the previous solution is used
    programs: int  # number of linear programs solved


def scale_rows(table: Floats, limit: float) -> Floats:
    """Return the rows (F, n) of cost functions (F, n + 1)."""
    start = table[:, -1:]
    rows: Floats = (table[:, :-1] - start) / (limit - start)
    return rows


def build_shares(listed: Floats) -> Floats:
    """Return the shares (n + 1,) of a mixture from a solver's shares (n,) of the listed actions, normalised."""
    shares = np.where(listed > SHARE_TOLERANCE, listed, 0.0)
    total = float(shares.sum())
    if total > 1.0 - SHARE_TOLERANCE:
        shares /= total
        return np.append(shares, 0.0)
    return np.append(shares, 1.0 - total)


def compute_dual_bounds(values: Floats, prices: Floats, rows: Floats) -> Floats:
    """Return an upper bound on the value of feasible mixtures, for each row of values (n + 1,), at any prices λ ≥ 0.

    values₀ + Σ_k λ_k + max(0, max_i values_i − values₀ − Σ_k λ_k a_ki)        (weak duality)
    """
    table = np.atleast_2d(values)
    gains = table[:, :-1] - table[:, -1:] - prices @ rows
    bounds: Floats = table[:, -1] + prices.sum() + np.maximum(0.0, gains.max(axis=1, initial=0.0))
    return bounds


def find_best_under_rows(values: Floats, tables: tuple[Floats, ...], limits: Floats) -> Vertex:
    """Maximise E_p values subject to E_p f ≤ limit_j for every cost function f of every table j; the safe action last.

    `values` is (n + 1,), a table (F, n + 1). The safe action must be strictly within every limit. Few rows are ever
    tight: the compiled simplex solves with some, and the most violated row is added until none is violated.
    """
    rows = np.concatenate([scale_rows(table, limit) for table, limit in zip(tables, limits, strict=True)])
    active = [int(np.argmax(rows[:, np.argmax(values[:-1])]))]
    while True:
        columns, prices, solved = solve_under_rows(rows[active], values)
        costs = rows @ columns
        worst = int(np.argmax(costs))
        if not costs[worst] > 1.0 or worst in active:
            break
        active.append(worst)
    shares = mix_back_to_safe(build_shares(columns), tables, limits)
    bound = float(compute_dual_bounds(values, prices, rows[active])[0])
    return Vertex(shares, float(values @ shares), bound, solved and bool(np.isfinite(bound)), len(active))


def solve_under_rows(rows: Floats, values: Floats) -> tuple[Floats, Floats, bool]:
    """Maximise Σ p_i value_i over mixtures that a few rows (R, n) allow, by the compiled simplex.

    Return the shares of the listed actions (n,), the prices of the rows (R,), and whether it was solved.
    """
    count = len(rows)
    support, shares = np.empty(count + 1, dtype=np.int64), np.empty(count + 1)
    basis, gains = np.zeros(scratch_shape(count)), np.empty(values.size - 1)
    start, ends = np.zeros(count), np.ones(count)
    status = find_best_mixture(values[:-1].copy(), rows, float(values[-1]), start, ends, support, shares, basis, gains)
    columns, prices = np.zeros(values.size), np.array([GET_LIMIT_PRICE(basis, row) for row in range(count)])
    np.add.at(columns, support, shares)  # −1, the safe action, is the last
    return columns[:-1], np.maximum(prices, 0.0), bool(status == OPTIMAL)


def mix_back_to_safe(shares: Floats, tables: tuple[Floats, ...], limits: Floats) -> Floats:
    """Return the mixture with the least weight moved to the safe action, last, that satisfies every cost function.

        η = min_f (limit − f(x₀)) / (E f − f(x₀)) over the functions with E f > limit

    and a little more to compensate rounding, so that `compute_pessimistic_costs` is at most the limits to the bit.
    """
    result, guard = shares, 0.0
    while not np.all(compute_pessimistic_costs(result, tables) <= limits):
        if guard > 1.0:
            return np.append(np.zeros(shares.size - 1), 1.0)
        weight = min(compute_kept_weight(result, table, limit) for table, limit in zip(tables, limits, strict=True))
        result = max(0.0, weight - guard) * result
        result[-1] += 1.0 - float(result.sum())
        guard = 2.0 * guard + 2.0**-52
    return result


def compute_kept_weight(shares: Floats, table: Floats, limit: float) -> float:
    """Return the largest η in [0, 1] for which η shares + (1 − η) safe action costs at most the limit."""
    start, costs = table[:, -1], table @ shares
    over = costs > limit
    return float(np.min((limit - start[over]) / (costs[over] - start[over]), initial=1.0))


def compute_pessimistic_costs(shares: Floats, tables: tuple[Floats, ...]) -> Floats:
    """Return the largest expected cost (m,) of a mixture over the functions of each table."""
    return np.array([float(np.max(table @ shares)) for table in tables])
