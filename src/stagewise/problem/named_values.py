"""What people keep outcomes in, told apart by what it can do: mappings, data frames and rows of them have names."""

from collections.abc import Mapping, Sequence
from typing import Any

from stagewise.problem.checks import check_mapping
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr, suggest_name


def get_named_values(value: Any, what: str, error: type[StagewiseError] = InvalidOutcome) -> dict[Any, Any] | None:
    """Return the entries of a mapping, the columns of a data frame or the values of a labelled row; None: no names.

    Nothing is imported for it: Arrow tables tell their `column_names`, frames of pandas and polars their `columns`, and
    a row of a pandas frame has `keys`. A series whose labels are mere positions has no names.

    >>> get_named_values({"opt_out": 0.1}, "the cost"), get_named_values([0.1], "the cost")
    ({'opt_out': 0.1}, None)
    """
    if isinstance(value, Mapping):
        return check_mapping(value, what, error)
    if isinstance(value, list | tuple | float | int | str | type):  # the most common types have no names
        return None
    try:
        names = get_labels(value)
        return None if names is None else {name: value[name] for name in names}
    except Exception:  # an object's own code can raise anything
        raise error(
            ErrorCode.WRONG_TYPE,
            "{what} is {value}; its columns cannot be read by their names",
            what=what,
            value=safe_repr(value),
        ) from None


def get_labels(value: Any) -> list[Any] | None:
    """Return the names of a table or a row, in order."""
    for member in ("column_names", "columns"):
        if hasattr(value, member):
            return list(getattr(value, member))
    if not hasattr(value, "keys") or not hasattr(value, "__getitem__"):
        return None
    names = list(value.keys())
    return names if any(isinstance(name, str) for name in names) else None


def order_by_name(
    values: Mapping[Any, Any], names: Sequence[str], what: str, error: type[StagewiseError] = InvalidProblem
) -> list[Any]:
    """Return the values in the order of the constraints; the names must be equal."""
    if set(values) != set(names):
        hint = next((found for name in values if name not in names and (found := suggest_name(name, names))), "")
        raise error(
            ErrorCode.UNKNOWN_NAME,
            "{what} names {values}; the constraints are {names}{hint}",
            what=what,
            values=safe_repr(list(values)),
            names=safe_repr(list(names)),
            hint=hint,
        )
    return [values[name] for name in names]
