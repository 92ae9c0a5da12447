"""What people keep outcomes in, told apart by what it can do: mappings, data frames and rows of them have names."""

from collections.abc import Mapping, Sequence
from typing import Any

from stagewise.problem.checks import mapping_of
from stagewise.problem.errors import InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.words import nearest, shown


def named(value: Any, what: str, error: type[StagewiseError] = InvalidOutcome) -> dict[Any, Any] | None:
    """Return the entries of a mapping, the columns of a data frame or the values of a labelled row; None: no names.

    Nothing is imported for it: Arrow tables tell their `column_names`, frames of pandas and polars their `columns`, and
    a row of a pandas frame has `keys`. A series whose labels are mere positions has no names.

    >>> named({"opt_out": 0.1}, "the cost"), named([0.1], "the cost")
    ({'opt_out': 0.1}, None)
    """
    if isinstance(value, Mapping):
        return mapping_of(value, what, error)
    if isinstance(value, list | tuple | float | int | str | type):  # what is most often given has no names
        return None
    try:
        names = labels(value)
        return None if names is None else {name: value[name] for name in names}
    except Exception:  # whatever the object's own code came to
        raise error(f"{what} is {shown(value)}; its columns cannot be read by their names") from None


def labels(value: Any) -> list[Any] | None:
    """Return the names that a table or a row tells, in its own order."""
    for member in ("column_names", "columns"):
        if hasattr(value, member):
            return list(getattr(value, member))
    if not hasattr(value, "keys") or not hasattr(value, "__getitem__"):
        return None
    names = list(value.keys())
    return names if any(isinstance(name, str) for name in names) else None


def in_order(
    given: Mapping[Any, Any], names: Sequence[str], what: str, error: type[StagewiseError] = InvalidProblem
) -> list[Any]:
    """Return the entries by the constraints' names, which must all be there and no others."""
    if set(given) != set(names):
        near = next((found for name in given if name not in names and (found := nearest(name, names))), "")
        raise error(f"{what} names {shown(list(given))}; the constraints are {shown(list(names))}{near}")
    return [given[name] for name in names]
