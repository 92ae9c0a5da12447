"""Numbers that are constant for an action: they describe the action, not the user.

A discount that is 0 wherever nothing is sent does not show the outcome of "nothing" at a discount of 0.2. If it were
fitted, its slope would be the prior's, and an action that was never clicked would be forecast to be. So such slopes are
0, and a note says so.
"""

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.forecast.forecast_log import ForecastLog
from stagewise.launch.notes import Note, NoteCode

CHANCE_LEVEL = 0.001  # p-value below which equal values are not a coincidence


def find_constant_features(actions: Ints, users: Floats, count: int) -> Flags:
    """Return which numbers (K, d) are constant for each action, beyond coincidence.

    If a share q of all rows has this number, the others of n rows have it too with probability q^(n − 1).

    >>> users = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.2], [1.0, 0.3]] * 9)
    >>> find_constant_features(np.array([0, 0, 1, 1] * 9), users, 2)
    array([[False,  True],
           [False, False]])
    """
    constant = np.zeros((count, users.shape[1]), dtype=bool)
    for a in range(count):
        rows = users[actions == a]
        if len(rows) > 1:
            share = (users == rows[0]).mean(axis=0)
            constant[a] = (rows == rows[0]).all(axis=0) & (share ** (len(rows) - 1.0) < CHANCE_LEVEL)
    return constant


def describe_constant_features(log_rows: ForecastLog) -> list[Note]:
    """Return notes on numbers that are constant for an action, if a signal is linear in them."""
    problem = log_rows.log.problem
    if all(choice.model != "linear" for choice in problem.choices.values()):
        return []
    constant = find_constant_features(
        log_rows.actions, log_rows.users[:, : 1 + len(problem.context)], len(problem.actions)
    )[:, 1:]
    return [
        Note.of(NoteCode.FEATURE_CONSTANT_FOR_ACTION, action=action, names=names)
        for action, names in (
            (action, [name for name, is_constant in zip(problem.context, row, strict=True) if is_constant])
            for action, row in zip(problem.actions, constant, strict=True)
        )
        if names
    ]
