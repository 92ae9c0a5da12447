"""The best mixture where costs are bounded function by function: a linear program with a row for every function.

Measured from the safe action, in units of each row's slack, every row reads the same:

    Σ_i p_i a_ki ≤ 1,    a_ki = (f_k(x_i) − f_k(x₀)) / (limit_k − f_k(x₀)),    Σ_i p_i ≤ 1,    p ≥ 0

What is missing to 1 is the share of the safe action, which is feasible alone.
"""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.rules.simplex import OPTIMAL, best_mixture, price_in, scratch_shape

PRICE_IN = named(price_in)
DUST = 1e-12  # a share that is rounding


class Vertex(NamedTuple):
    """A mixture and what proves that none is better."""

    shares: Floats  # (n + 1,) of the listed actions, then of the safe one
    value: float
    bound: float  # no feasible mixture is worth more
    solved: bool  # False: a program was not, and what was known before stands in
    programs: int  # linear programs solved


def measured(table: Floats, limit: float) -> Floats:
    """Return the rows (F, n) of cost functions (F, n + 1)."""
    start = table[:, -1:]
    rows: Floats = (table[:, :-1] - start) / (limit - start)
    return rows


def mixture_of(listed: Floats) -> Floats:
    """Return the shares (n + 1,) of a mixture from a solver's shares (n,) of the listed actions, which may be off."""
    shares = np.where(listed > DUST, listed, 0.0)
    total = float(shares.sum())
    if total > 1.0 - DUST:
        shares /= total
        return np.append(shares, 0.0)
    return np.append(shares, 1.0 - total)


def priced_bounds(worth: Floats, prices: Floats, rows: Floats) -> Floats:
    """Return what no feasible mixture exceeds, for each worth (n + 1,) at prices λ ≥ 0, whoever found them.

    worth₀ + Σ_k λ_k + max(0, max_i worth_i − worth₀ − Σ_k λ_k a_ki)        (weak duality)
    """
    table = np.atleast_2d(worth)
    gains = table[:, :-1] - table[:, -1:] - prices @ rows
    bounds: Floats = table[:, -1] + prices.sum() + np.maximum(0.0, gains.max(axis=1, initial=0.0))
    return bounds


def best_under_rows(worth: Floats, tables: tuple[Floats, ...], limits: Floats) -> Vertex:
    """Maximise E_p worth subject to E_p f ≤ limit_j for every cost function f of every table j; the safe action last.

    `worth` is (n + 1,), a table (F, n + 1). The safe action must be strictly within every limit. Few rows are ever
    tight: the compiled simplex solves with some, and the row that its answer exceeds most is added until none is.
    """
    rows = np.concatenate([measured(table, limit) for table, limit in zip(tables, limits, strict=True)])
    heeded = [int(np.argmax(rows[:, np.argmax(worth[:-1])]))]
    while True:
        columns, prices, solved = solved_under(rows[heeded], worth)
        costs = rows @ columns
        worst = int(np.argmax(costs))
        if not costs[worst] > 1.0 or worst in heeded:
            break
        heeded.append(worst)
    shares = mixed_back(mixture_of(columns), tables, limits)
    bound = float(priced_bounds(worth, prices, rows[heeded])[0])
    return Vertex(shares, float(worth @ shares), bound, solved and bool(np.isfinite(bound)), len(heeded))


def solved_under(rows: Floats, worth: Floats) -> tuple[Floats, Floats, bool]:
    """Maximise Σ p_i worth_i over mixtures that few rows (R, n) allow, by the compiled simplex.

    Return the shares of the listed actions (n,), the prices of the rows (R,), and whether it was solved.
    """
    count = len(rows)
    support, shares = np.empty(count + 1, dtype=np.int64), np.empty(count + 1)
    basis, gains = np.zeros(scratch_shape(count)), np.empty(worth.size - 1)
    start, ends = np.zeros(count), np.ones(count)
    status = best_mixture(worth[:-1].copy(), rows, float(worth[-1]), start, ends, support, shares, basis, gains)
    columns, prices = np.zeros(worth.size), np.array([PRICE_IN(basis, row) for row in range(count)])
    np.add.at(columns, support, shares)  # −1, the safe action, is the last
    return columns[:-1], np.maximum(prices, 0.0), bool(status == OPTIMAL)


def mixed_back(shares: Floats, tables: tuple[Floats, ...], limits: Floats) -> Floats:
    """Return the mixture with as much weight moved to the safe action, last, as every cost function needs.

        η = min_f (limit − f(x₀)) / (E f − f(x₀)) over the functions with E f > limit

    and a little more where rounding asks for it, so that `dearest_of` is at most the limits to the bit.
    """
    result, guard = shares, 0.0
    while not np.all(dearest_of(result, tables) <= limits):
        if guard > 1.0:
            return np.append(np.zeros(shares.size - 1), 1.0)
        weight = min(kept_weight(result, table, limit) for table, limit in zip(tables, limits, strict=True))
        result = max(0.0, weight - guard) * result
        result[-1] += 1.0 - float(result.sum())
        guard = 2.0 * guard + 2.0**-52
    return result


def kept_weight(shares: Floats, table: Floats, limit: float) -> float:
    """Return the largest η in [0, 1] at which η shares and 1 − η of the safe action cost at most the limit."""
    start, costs = table[:, -1], table @ shares
    over = costs > limit
    return float(np.min((limit - start[over]) / (costs[over] - start[over]), initial=1.0))


def dearest_of(shares: Floats, tables: tuple[Floats, ...]) -> Floats:
    """Return the largest expected cost (m,) that any function of each table gives a mixture."""
    return np.array([float(np.max(table @ shares)) for table in tables])
