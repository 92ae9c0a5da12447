"""The row of what was done for a user: the action's number, 1, the numbers about the user in [−1, 1], the segments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.told_by_name import ToldByName

ACTION, ONE, FIRST_NUMBER = 0, 1, 2  # places in a row; the segments follow the numbers


def rows_of(problem: ToldByName, actions: Sequence[int], columns: Mapping[str, Any]) -> Floats:
    """Return the rows (n, D) of actions by their numbers, and of columns by name: numbers in their own units, segments.

    >>> import stagewise as sw
    >>> told = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0, by="country")}}
    >>> problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", context={"age": (20, 60)}, **told)
    >>> rows_of(problem, [0, 1], {"age": [40, 60], "country": [7, 8]})
    array([[0., 1., 0., 7.],
           [1., 1., 1., 8.]])
    """
    rows = np.ones((len(actions), FIRST_NUMBER + len(problem.expected)))
    rows[:, ACTION] = actions
    for place, (name, (low, high)) in enumerate(problem.ranges, FIRST_NUMBER):
        rows[:, place] = scaled_numbers(np.asarray(columns[name], dtype=np.float64), low, high)
    for place, name in enumerate(problem.divisions, FIRST_NUMBER + len(problem.context)):
        rows[:, place] = columns[name]
    return rows


def scaled_numbers(values: Floats, low: float, high: float) -> Floats:
    """Return how far numbers lie between their ends, from −1 to 1: the same as `kernels.ranges`, to the bit."""
    return np.asarray(np.clip((2.0 * values - (low + high)) / (high - low), -1.0, 1.0))
