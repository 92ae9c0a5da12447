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

from stagewise.engine.compile import Floats
from stagewise.rules.mixture import Vertex, build_shares, compute_dual_bounds, mix_back_to_safe
from stagewise_reproduction.exact.highs import build_solver, keep_maximal, select_rows, solve_program

CLOSE = 1e-11  # relative; nodes whose bound exceeds the best value by less are not expanded


class Branch(NamedTuple):
    """The search for one constraint j."""

    choices: tuple[Floats, Floats, Floats]  # tables (F, n + 1) of θ, −α_j μ'' and α_j μ', all to be maximised
    highest: Floats  # (3, n + 1) their pointwise maxima
    room: float  # α_j limit_j, an upper bound on α_j E μ'
    solver: Any  # holds the rows, and min(room, E max α_j μ') as an extra variable


class Node(NamedTuple):
    """An open node; the heap returns the one with the largest bound, then the oldest."""

    minus_bound: float
    number: int
    branch: int
    fixed: tuple[int, ...]


class NodeSolution(NamedTuple):
    """The solution of a node's program."""

    shares: Floats  # (n + 1,)
    bound: float  # upper bound for the fixed functions
    child_bounds: Floats  # (F,) the same for each choice of the next function
    solved: bool


def find_best_triple(
    rewards: Floats, tables: tuple[Floats, ...], limits: Floats, scales: Floats, most: int = 10_000
) -> Vertex:
    """Maximise the objective above for reward functions (A, n + 1), cost functions (B_j, n + 1) and scales α_j ≥ 0.

    At most `most` linear programs are solved; the answer is feasible and its bound is valid whenever the search ends.
    The safe action must be strictly within every limit.
    """
    rows = select_rows(tables, limits)
    parts = zip(tables, limits, scales, strict=True)
    branches = [
        build_branch(keep_maximal(rewards), table, float(limit), float(scale), rows) for table, limit, scale in parts
    ]
    best = np.eye(rewards.shape[1])[-1]
    value = closed = compute_objective(best, branches)
    heap = [Node(-float(branch.highest.sum(axis=0).max()), index, index, ()) for index, branch in enumerate(branches)]
    heapq.heapify(heap)
    programs, count, solved = 0, len(heap), True
    while heap and -heap[0].minus_bound > value + CLOSE * max(1.0, abs(value)) and programs < most:
        node = heapq.heappop(heap)
        found = solve_node(branches[node.branch], node.fixed, rows)
        programs, solved = programs + 1, solved and found.solved
        bound = min(found.bound, -node.minus_bound)
        shares = mix_back_to_safe(found.shares, tables, limits)
        if compute_objective(shares, branches) > value:
            best, value = shares, compute_objective(shares, branches)
        if not found.child_bounds.size:
            closed = max(closed, bound)
        for index, child_bound in enumerate(found.child_bounds):
            heapq.heappush(heap, Node(-min(bound, float(child_bound)), count, node.branch, (*node.fixed, index)))
            count += 1
    bound = max([closed, value, *(-node.minus_bound for node in heap[:1])])
    return Vertex(best, value, bound, solved, programs)


def build_branch(rewards: Floats, table: Floats, limit: float, scale: float, rows: Floats) -> Branch:
    """Return the search for one constraint; only functions that no other dominates can be optimal."""
    choices = (rewards, scale * keep_maximal(-table), scale * keep_maximal(table))
    highest = np.array([choice.max(axis=0) for choice in choices])
    rises = highest[2, :-1] - highest[2, -1]
    solver, columns = build_solver(rows), rows.shape[1]
    infinity, indices = solver.getInfinity(), np.arange(columns + 1, dtype=np.int32)
    # t measured from its value at the safe action: t ≤ Σ_i p_i rise_i
    solver.addCol(0.0, -infinity, scale * limit - highest[2, -1], 0, indices[:0], rises[:0])
    solver.addRow(-infinity, 0.0, columns + 1, indices, np.append(-rises, 1.0))
    return Branch(choices, highest, scale * limit, solver)


def compute_objective(shares: Floats, branches: list[Branch]) -> float:
    """Return the paper's optimistic reward of a mixture."""
    return max(float(sum(np.max(table @ shares) for table in branch.choices)) for branch in branches)


def solve_node(branch: Branch, fixed: tuple[int, ...], rows: Floats) -> NodeSolution:
    """Solve one node and bound its children.

    The room's program has a price 0 ≤ ν ≤ 1, at which min(room, E h) ≤ ν E h + (1 − ν) room: with it the objective is
    linear again, and so is the same with any one function in place of the maximum h.
    """
    parts = branch.highest.copy()
    for k, index in enumerate(fixed):
        parts[k] = branch.choices[k][index]
    ends = len(fixed) == len(branch.choices)
    objective = parts.sum(axis=0) if ends else parts[:2].sum(axis=0)
    found = solve_program(branch.solver, np.append(objective[:-1] - objective[-1], 0.0 if ends else 1.0))
    prices = np.maximum(found.prices[: len(rows)], 0.0)
    share = 1.0 if ends else min(max(float(found.prices[-1]), 0.0), 1.0)
    weights = np.array([1.0, 1.0, share])
    base, room = weights @ parts, (1.0 - share) * branch.room
    bound = float(compute_dual_bounds(base + room, prices, rows)[0])
    if ends:
        return NodeSolution(build_shares(found.columns[:-1]), bound, np.empty(0), found.solved)
    next_ = len(fixed)
    swapped = base - weights[next_] * (parts[next_] - branch.choices[next_]) + room
    return NodeSolution(
        build_shares(found.columns[:-1]), bound, compute_dual_bounds(swapped, prices, rows), found.solved
    )
