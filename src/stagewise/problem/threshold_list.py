"""Thresholds as a list with names."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.checks import check_mapping, is_listing, list_entries, safe_repr
from stagewise.problem.errors import ErrorCode, InvalidProblem


def list_thresholds(threshold: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return the thresholds and their names."""
    if threshold is None:
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE, "threshold is missing; it is the limit on every round's expected cost"
        )
    if isinstance(threshold, Mapping):
        threshold = check_mapping(threshold, "threshold")
        if not threshold:
            raise InvalidProblem(ErrorCode.MISSING_VALUE, "threshold is empty; it must have at least one constraint")
        if not all(isinstance(name, str) for name in threshold):
            raise InvalidProblem(
                ErrorCode.INVALID_NAME,
                "threshold is {threshold}; the name of every constraint must be a string",
                threshold=safe_repr(threshold),
            )
        return list(threshold.values()), tuple(threshold)
    if isinstance(threshold, str | bytes):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "threshold is {threshold}; it must be a number, or one for each constraint, with two "
            "percent written as 0.02",
            threshold=safe_repr(threshold),
        )
    if is_listing(threshold):
        entries = list_entries(threshold, "threshold")
        if not entries:
            raise InvalidProblem(ErrorCode.MISSING_VALUE, "threshold is empty; it must have at least one constraint")
        return entries, build_default_names(len(entries))
    return [threshold], build_default_names(1)


def build_default_names(count: int) -> tuple[str, ...]:
    """Return the default names of constraints.

    >>> build_default_names(1), build_default_names(2)
    (('cost',), ('cost 1', 'cost 2'))
    """
    return ("cost",) if count == 1 else tuple(f"cost {i}" for i in range(1, count + 1))
