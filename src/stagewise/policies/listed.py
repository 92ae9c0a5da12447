"""Listed actions: what is taken as a list."""

from typing import Any

from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed


def listed_of(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays by their ends and polytopes by their vertices.

    That suffices: every other point is a mixture of these.
    """
    return actions.as_list() if isinstance(actions, ActionSet) else Finite.borrowed(actions)
