"""Numbers that are about an action rather than about the user: all rows of the action have the same one.

A discount that is 0 wherever nothing is sent does not say what "nothing" would come to at a discount of 0.2. Fitted all
the same, its slope would be whatever was thought possible beforehand, and the forecast would make of an action that was
never clicked one that is. So such slopes are 0, and a note says so.
"""

import numpy as np

from stagewise.kernels.compile import Flags, Floats, Ints
from stagewise.launch.forecast.reading import Reading

CHANCE = 0.001  # that all rows of an action are alike by chance, below which they are not by chance


def tied(actions: Ints, users: Floats, count: int) -> Flags:
    """Return which numbers (d,) of each action (K, d) are all the same, and too often so for chance.

    Where a share q of all rows has this number, the others of n rows have it too with probability q^(n − 1).

    >>> tied(np.array([0, 0, 1, 1] * 9), np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.2], [1.0, 0.3]] * 9), 2)
    array([[False,  True],
           [False, False]])
    """
    found = np.zeros((count, users.shape[1]), dtype=bool)
    for a in range(count):
        mine = users[actions == a]
        if len(mine) > 1:
            share = (users == mine[0]).mean(axis=0)
            found[a] = (mine == mine[0]).all(axis=0) & (share ** (len(mine) - 1.0) < CHANCE)
    return found


def ties(reading: Reading) -> list[str]:
    """Say which numbers were taken for ones about an action, where a signal is linear in them."""
    problem = reading.log.problem
    if all(choice.model != "linear" for choice in problem.choices.values()):
        return []
    which = tied(reading.actions, reading.users[:, : 1 + len(problem.context)], len(problem.actions))[:, 1:]
    return [
        f"all rows of {action!r} have the same {', '.join(map(repr, names))}: what it comes to for other users is "
        "taken to be the same, which the log cannot show; is that a number about the user?"
        for action, names in (
            (action, [name for name, same in zip(problem.context, row, strict=True) if same])
            for action, row in zip(problem.actions, which, strict=True)
        )
        if names
    ]
