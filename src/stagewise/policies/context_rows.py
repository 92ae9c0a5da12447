"""Rows of actions for users: the action's index, 1, the context numbers in [−1, 1], the segments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.context_encoder import ContextEncoder

ACTION, ONE, FIRST_NUMBER = 0, 1, 2  # columns of a row; the segments follow the numbers


def build_rows(problem: ContextEncoder, actions: Sequence[int], columns: Mapping[str, Any]) -> Floats:
    """Return the rows (n, D) of action indices and of columns by name: numbers in the user's units, and segments.

    >>> import stagewise as sw
    >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0, by="country")}}
    >>> problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", context={"age": (20, 60)}, **signals)
    >>> build_rows(problem, [0, 1], {"age": [40, 60], "country": [7, 8]})
    array([[0., 1., 0., 7.],
           [1., 1., 1., 8.]])
    """
    rows = np.ones((len(actions), FIRST_NUMBER + len(problem.context_names)))
    rows[:, ACTION] = actions
    for column, (name, (low, high)) in enumerate(problem.ranges, FIRST_NUMBER):
        rows[:, column] = scale_numbers(np.asarray(columns[name], dtype=np.float64), low, high)
    for column, name in enumerate(problem.divisions, FIRST_NUMBER + len(problem.context)):
        rows[:, column] = columns[name]
    return rows


def scale_numbers(values: Floats, low: float, high: float) -> Floats:
    """Return numbers scaled from their range to [−1, 1], bitwise equal to `kernels.scaling`."""
    return np.asarray(np.clip((2.0 * values - (low + high)) / (high - low), -1.0, 1.0))
