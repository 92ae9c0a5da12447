"""The eluder dimension of a finite class of functions over finitely many actions (the paper's Section 5.3)."""

import math

import numpy as np

from stagewise.engine.compile import Flags, Floats


def compute_squared_differences(table: Floats) -> Floats:
    """Return (f(x) − f'(x))² (P, K) of every pair of functions in a table (F, K)."""
    one, other = np.triu_indices(len(table), 1)
    squares: Floats = (table[one] - table[other]) ** 2
    return squares


def is_independent(table: Floats, previous: list[int], action: int, scale: float) -> bool:
    """Return whether an action is ε-independent of others: functions within ε on those can differ by more than ε there.

    >>> is_independent(np.array([[0.0, 0.0], [0.1, 1.0]]), [0], 1, 0.5)
    True
    >>> is_independent(np.array([[0.0, 0.0], [1.0, 1.0]]), [0], 1, 0.5)
    False
    """
    squares = compute_squared_differences(np.asarray(table, dtype=np.float64))
    within = squares[:, previous].sum(axis=1) <= scale**2
    return bool(np.any(within & (squares[:, action] > scale**2)))


def compute_eluder_dimension(table: Floats, scale: float) -> int:
    """Return the length of the longest sequence of actions, each ε'-independent of those before it, for one ε' ≥ ε.

    No action comes twice, because it is dependent on itself. So sequences correspond to subsets of the actions, and
    dynamic programming visits the reachable ones: 2ᴷ of them, for each relevant ε'. For small classes.

    >>> compute_eluder_dimension(np.eye(4), 0.1)
    3
    """
    squares = compute_squared_differences(np.asarray(table, dtype=np.float64))
    count = squares.shape[1]
    if not len(squares) or not squares.max() > scale**2:
        return 0
    members = (np.arange(2**count)[:, np.newaxis] >> np.arange(count)) & 1 == 1  # (2ᴷ, K)
    sums = squares @ members.T  # (P, 2ᴷ)
    changes = np.unique(sums[(sums >= scale**2) & (sums < squares.max())])
    longest = 0
    for level in np.append(scale**2, changes):
        longest = max(longest, find_longest(sums <= level, squares > level, members))
        if longest == count:
            break
    return longest


def find_longest(within: Flags, beyond: Flags, members: Flags) -> int:
    """Return the size of the largest subset that can be reached where `within` (P, 2ᴷ) and `beyond` (P, K) hold."""
    allowed = (within.T.astype(np.int64) @ beyond.astype(np.int64)) > 0  # (2ᴷ, K)
    reached, longest = np.zeros(len(members), dtype=np.bool_), 0
    reached[0] = True
    for subset in np.arange(len(members)):
        if not reached[subset]:
            continue
        longest = max(longest, int(members[subset].sum()))
        for action in np.flatnonzero(allowed[subset] & ~members[subset]):
            reached[subset | (1 << int(action))] = True
    return longest


def compute_radius(size: int, rounds: int, delta: float) -> float:
    """Return the paper's γ(T, δ/2) = 512 log(24 |G| log(2T)/(δ/2))."""
    return 512.0 * math.log(24.0 * size * math.log(2.0 * rounds) / (delta / 2.0))


def compute_regret_order(
    rewards: Floats, costs: Floats, rounds: int, delta: float, safe_reward: float, safe_cost: float, threshold: float
) -> float:
    """Return the argument of O(·) in the paper's theorem on OPNLB, with the dimensions at scale 1/T.

    √(T d_r γ_r) + κ √(T d_c γ_c) + d_r + κ d_c with κ = (1 − r₀)/(τ − c₀). Its constant is not stated.
    """
    ratio = (1.0 - safe_reward) / (threshold - safe_cost)
    total = 0.0
    for weight, table in ((1.0, rewards), (ratio, costs)):
        dimension = compute_eluder_dimension(table, 1.0 / rounds)
        total += weight * (math.sqrt(rounds * dimension * compute_radius(len(table), rounds, delta)) + dimension)
    return total
