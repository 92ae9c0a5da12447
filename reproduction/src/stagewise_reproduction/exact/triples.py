"""The paper's maximum over triples of functions: a best-first search in which each node is one linear program.

Over mixtures p of n listed actions and the safe one, with E f = Σ_i p_i f(x_i),

    maximise  max_θ E θ + max_j α_j (max_μ' E μ' − min_μ'' E μ'')   subject to  E μ ≤ limit_j for every μ of table j

where θ is of the reward's table and μ', μ'' are of table j. For fixed j, θ, μ'', μ' it is a linear program. A node
fixes some of them, in this order. A function not yet fixed gives way to its table's pointwise maximum (for μ'' the
minimum), which is at least as much under every mixture; and since E μ' can be no more than its limit, the room
min(limit_j, E max μ') stands in for μ', which is most often exact. The prices of a node's program bound its children
before they are solved (docs/theory/function-classes.md).
"""

import heapq
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.rules.rows import Vertex, mixed_back, mixture_of, priced_bounds
from stagewise_reproduction.exact.highs import answered, maximal, needed_rows, stated

CLOSE = 1e-11  # relative; a node that promises no more than this beyond the best found is left alone


class Branch(NamedTuple):
    """The search for one constraint j."""

    choices: tuple[Floats, Floats, Floats]  # of θ, −α_j μ'' and α_j μ': tables (F, n + 1), all to be maximised
    highest: Floats  # (3, n + 1) their pointwise maxima
    room: float  # α_j limit_j: what no α_j E μ' exceeds
    solver: Any  # holds the rows, and min(room, E max α_j μ') as a variable of its own


class Node(NamedTuple):
    """A part of the search that is still open; the heap gives the one with the largest bound, then the oldest."""

    minus_bound: float
    number: int
    branch: int
    fixed: tuple[int, ...]


class Solved(NamedTuple):
    """What a node's program says."""

    shares: Floats  # (n + 1,)
    bound: float  # no mixture is worth more with what is fixed
    promises: Floats  # (F,) the same for each choice of what is fixed next
    solved: bool


def best_of_triples(
    rewards: Floats, tables: tuple[Floats, ...], limits: Floats, scales: Floats, most: int = 10_000
) -> Vertex:
    """Maximise the objective above for reward functions (A, n + 1), cost functions (B_j, n + 1) and scales α_j ≥ 0.

    At most `most` linear programs are solved; the answer is feasible and its bound proved whenever the search ends.
    The safe action must be strictly within every limit.
    """
    rows = needed_rows(tables, limits)
    parts = zip(tables, limits, scales, strict=True)
    branches = [branch_of(maximal(rewards), table, float(limit), float(scale), rows) for table, limit, scale in parts]
    best = np.eye(rewards.shape[1])[-1]
    value = closed = objective(best, branches)
    heap = [Node(-float(branch.highest.sum(axis=0).max()), place, place, ()) for place, branch in enumerate(branches)]
    heapq.heapify(heap)
    programs, made, solved = 0, len(heap), True
    while heap and -heap[0].minus_bound > value + CLOSE * max(1.0, abs(value)) and programs < most:
        node = heapq.heappop(heap)
        found = solved_node(branches[node.branch], node.fixed, rows)
        programs, solved = programs + 1, solved and found.solved
        bound = min(found.bound, -node.minus_bound)
        shares = mixed_back(found.shares, tables, limits)
        if objective(shares, branches) > value:
            best, value = shares, objective(shares, branches)
        if not found.promises.size:
            closed = max(closed, bound)
        for place, promised in enumerate(found.promises):
            heapq.heappush(heap, Node(-min(bound, float(promised)), made, node.branch, (*node.fixed, place)))
            made += 1
    bound = max([closed, value, *(-node.minus_bound for node in heap[:1])])
    return Vertex(best, value, bound, solved, programs)


def branch_of(rewards: Floats, table: Floats, limit: float, scale: float, rows: Floats) -> Branch:
    """Return the search for one constraint: only functions that no other reaches everywhere can be the best."""
    choices = (rewards, scale * maximal(-table), scale * maximal(table))
    highest = np.array([choice.max(axis=0) for choice in choices])
    rises = highest[2, :-1] - highest[2, -1]
    solver, columns = stated(rows), rows.shape[1]
    infinity, places = solver.getInfinity(), np.arange(columns + 1, dtype=np.int32)
    # t measured from its value at the safe action: t ≤ Σ_i p_i rise_i
    solver.addCol(0.0, -infinity, scale * limit - highest[2, -1], 0, places[:0], rises[:0])
    solver.addRow(-infinity, 0.0, columns + 1, places, np.append(-rises, 1.0))
    return Branch(choices, highest, scale * limit, solver)


def objective(shares: Floats, branches: list[Branch]) -> float:
    """Return the paper's optimistic reward of a mixture."""
    return max(float(sum(np.max(table @ shares) for table in branch.choices)) for branch in branches)


def solved_node(branch: Branch, fixed: tuple[int, ...], rows: Floats) -> Solved:
    """Solve one node and price its children.

    The room's program has a price 0 ≤ ν ≤ 1, at which min(room, E h) ≤ ν E h + (1 − ν) room: with it the objective is
    linear again, and so is the same with any one function in place of the maximum h.
    """
    parts = branch.highest.copy()
    for k, place in enumerate(fixed):
        parts[k] = branch.choices[k][place]
    ends = len(fixed) == len(branch.choices)
    asked = parts.sum(axis=0) if ends else parts[:2].sum(axis=0)
    found = answered(branch.solver, np.append(asked[:-1] - asked[-1], 0.0 if ends else 1.0))
    prices = np.maximum(found.prices[: len(rows)], 0.0)
    share = 1.0 if ends else min(max(float(found.prices[-1]), 0.0), 1.0)
    weights = np.array([1.0, 1.0, share])
    base, room = weights @ parts, (1.0 - share) * branch.room
    bound = float(priced_bounds(base + room, prices, rows)[0])
    if ends:
        return Solved(mixture_of(found.columns[:-1]), bound, np.empty(0), found.solved)
    next_ = len(fixed)
    swapped = base - weights[next_] * (parts[next_] - branch.choices[next_]) + room
    return Solved(mixture_of(found.columns[:-1]), bound, priced_bounds(swapped, prices, rows), found.solved)
