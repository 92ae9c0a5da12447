"""Thresholds as they are given, one or several, with names or without."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.checks import entries_of, is_listing, mapping_of, shown
from stagewise.problem.errors import InvalidProblem


def given_as_list(threshold: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return the constraints as given, and their names."""
    if threshold is None:
        raise InvalidProblem("a threshold is missing; it is what every round's expected cost must stay under")
    if isinstance(threshold, Mapping):
        threshold = mapping_of(threshold, "threshold")
        if not threshold or not all(isinstance(name, str) for name in threshold):
            raise InvalidProblem(
                f"threshold is {shown(threshold)}; a mapping needs at least one constraint, named by text"
            )
        return list(threshold.values()), tuple(threshold)
    if isinstance(threshold, str | bytes):
        raise InvalidProblem(
            f"threshold is {shown(threshold)}; it must be a number, or one per constraint: two percent are 0.02"
        )
    if is_listing(threshold):
        entries = entries_of(threshold, "threshold")
        if not entries:
            raise InvalidProblem("threshold is an empty list; it needs at least one constraint")
        return entries, unnamed(len(entries))
    return [threshold], unnamed(1)


def unnamed(count: int) -> tuple[str, ...]:
    """Return what constraints are called that were given without names.

    >>> unnamed(1), unnamed(2)
    (('cost',), ('cost 1', 'cost 2'))
    """
    return ("cost",) if count == 1 else tuple(f"cost {i}" for i in range(1, count + 1))
