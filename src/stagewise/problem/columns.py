"""The columns of a data frame as arrays: of pandas, of polars, of Arrow, or a mapping of lists; none is imported."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import LARGEST, Floats, is_listing, unmasked
from stagewise.problem.errors import InvalidOutcome, StagewiseError
from stagewise.problem.tables import labels
from stagewise.problem.words import nearest, shown

FORMS = "a data frame of pandas or polars, an Arrow table, or a mapping from names to columns"
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NOTHINGS = ("NoneType", "NAType", "NaTType")  # what pandas, polars and Arrow have where there is no value


def columns_of(frame: Any) -> Mapping[Any, Any]:
    """Return something to look columns up in by their names, and that lists its names."""
    columns = fetched(frame)
    check_lengths(columns)
    return columns


def fetched(frame: Any) -> Mapping[Any, Any]:
    """Return something to look columns up in, whatever their lengths."""
    if isinstance(frame, Mapping):
        return frame
    if type(frame).__name__ == "LazyFrame":
        raise InvalidOutcome("the frame is a LazyFrame, which holds no rows yet; give frame.collect()")
    try:
        known = not isinstance(frame, type | str | list | tuple | np.ndarray) and getattr(frame, "ndim", 2) != 1
        names = labels(frame) if known else None
        if names is not None and not hasattr(frame, "fetchall"):  # a query has columns, and nothing in them yet
            return Columns(frame, names)
        if known and hasattr(frame, "__arrow_c_stream__"):
            from arro3.core import Table

            table = Table.from_arrow(frame)
            return Columns(table, list(table.column_names))
    except Exception as error:  # whatever the object's own code came to
        raise InvalidOutcome(f"the frame is {shown(frame)}, which cannot be read: {shown(str(error))}") from None
    raise InvalidOutcome(f"the frame is {shown(frame)}; it must be {FORMS}")


def check_lengths(columns: Mapping[Any, Any]) -> None:
    """Refuse columns of several lengths: what a row is could only be guessed, and rows would be left out silently."""
    first: tuple[Any, int] | None = None
    for name in listed_names(columns, InvalidOutcome):
        size = length_of(columns, name)
        if size is None:  # who reads this column says what it is
            continue
        first = (name, size) if first is None else first
        if size != first[1]:
            raise InvalidOutcome(
                f"the column {shown(name)} has {size:,} values, and {shown(first[0])} has {first[1]:,}: the columns "
                "have several lengths, and every column needs a value a row"
            )


def length_of(columns: Mapping[Any, Any], name: Any) -> int | None:
    """Return how many values a column has; None: that cannot be told."""
    try:
        held = columns[name]
    except Exception:
        return None
    try:
        return len(held)
    except Exception:
        array = array_of(held)
        return None if array is None or array.ndim != 1 else array.size


class Columns(dict[Any, Any]):
    """Columns that are fetched when they are asked for."""

    def __init__(self, frame: Any, names: list[Any]) -> None:
        super().__init__(dict.fromkeys(names))
        self.frame = frame

    def __getitem__(self, name: Any) -> Any:
        return self.frame[name]


def each_of(values: list[Any], take: Callable[[Any], Any]) -> list[Any]:
    """Return what is made of every value of a column; of equal values of one type it is made once.

    1, 1.0 and True are equal to Python, and three values here.

    >>> each_of([1, True, 1.0, 1], str)
    ['1', 'True', '1.0', '1']
    """
    keys = list(zip(map(type, values), values, strict=True))
    try:
        known = {key: take(key[1]) for key in dict.fromkeys(keys)}
        return [known[key] for key in keys]
    except TypeError:  # something that has no hash, such as a list
        return [take(value) for value in values]


def near(name: Any, names: Any) -> str:
    """Return " (did you mean ...?)" where a name is nearly one of these.

    >>> near("rewrad", ["reward", "cost"]), near("x", ["reward"])
    (" (did you mean 'reward'?)", '')
    """
    meant = nearest(name, [other for other in names if isinstance(other, str)]).removeprefix("; ")
    return f" ({meant})" if meant else ""


def distinct(value: Any) -> list[Any]:
    """Return the names that are listed, each once; none, where what is given lists something else.

    >>> distinct(["a", "b"]), distinct("ab"), distinct(["a", "a"])
    (['a', 'b'], [], [])
    """
    if not is_listing(value):
        return []
    try:
        names = list(value)
        return names if len(set(names)) == len(names) else []
    except Exception:  # something in it can be no name
        return []


def named_column(
    columns: Mapping[Any, Any], name: Any, what: str, error: type[StagewiseError] = InvalidOutcome, hint: str = ""
) -> npt.NDArray[Any]:
    """Return one column as an array (n,), whatever it holds; `what` is the argument that names it, `hint` a way out."""
    listed = listed_names(columns, error)
    try:
        known = name in listed
    except Exception:  # whatever it does when it is compared
        known = False
    if not known:
        raise error(
            f"{what} names {shown(name)}, which is no column of the frame{near(name, listed)}; "
            f"its columns are {shown(listed)}{hint}"
        )
    try:
        held = columns[name]
    except Exception:
        raise error(f"the column {shown(name)} cannot be read from the frame") from None
    column = array_of(unmasked(held, f"the column {shown(name)}", error))
    if column is None or column.ndim != 1:
        several = column is not None and column.ndim > 1
        why = "two columns have that name, or it is a table in itself" if several else f"it is {shown(held)}"
        raise error(f"the column {shown(name)} is not one value a row; {why}")
    return column


def occurring(entries: list[Any], at: str, error: type[StagewiseError]) -> dict[Any, None]:
    """Return what occurs in a column of names, each once, in the order in which it comes first.

    >>> list(occurring(["b", "a", "b"], "the column 'action'", InvalidOutcome))
    ['b', 'a']
    """
    try:
        return dict.fromkeys(entries)
    except Exception:  # something in it can be no name: a mapping, a list, or an object that fails
        for row, entry in enumerate(entries):
            try:
                dict.fromkeys(entries[: row + 1])
            except Exception:
                raise error(
                    f"{at} holds {shown(entry)} in row {row}, counted from 0, which can be no name; it must hold texts "
                    "or numbers"
                ) from None
        raise


def listed_names(columns: Mapping[Any, Any], error: type[StagewiseError]) -> list[Any]:
    """Return the names of all columns, whatever the mapping's own code does."""
    try:
        return list(columns)
    except Exception:
        raise error(f"the frame is {shown(columns)}; the names of its columns cannot be read") from None


def array_of(column: Any) -> npt.NDArray[Any] | None:
    """Return a column as NumPy has it; None: it is none.

    >>> array_of([1, True]).tolist(), array_of([1, 0.5]).tolist()  # NumPy alone makes 1 of True
    ([1, True], [1.0, 0.5])
    """
    try:
        kinds = set(map(type, column)) if isinstance(column, list | tuple) else set()
        array = np.asarray(column, dtype=object if len(kinds) > 1 and kinds & {bool, np.bool_} else None)
        return array if array.dtype.kind not in "US" else np.array(column, dtype=object)  # text turns all into text
    except Exception:  # an Arrow array that lacks values or has a dictionary says no more than that
        try:
            entries: list[Any] = column.to_pylist()
            array = np.empty(len(entries), dtype=object)
            array[:] = entries
            return array
        except Exception:
            return None


def numbers_in(
    columns: Mapping[Any, Any], name: Any, what: str, error: type[StagewiseError] = InvalidOutcome, hint: str = ""
) -> Floats:
    """Return one column of finite numbers (n,); true counts as 1 and false as 0.

    >>> numbers_in({"clicked": [True, False]}, "clicked", "reward")
    array([1., 0.])
    """
    column, at = named_column(columns, name, what, error, hint), f"the column {shown(name)}"
    if column.dtype.kind == "O":
        column = plain_numbers(column, at, error)
    if column.dtype.kind not in "bfiu":
        first = f", such as {shown(column.tolist()[0])}" if column.size else ""
        raise error(f"{at} holds values of type {column.dtype}{first}; it must hold numbers, or true and false")
    with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is refused below
        numbers = np.ascontiguousarray(column, dtype=np.float64)
    if numbers.size and not (numbers.min() > -LARGEST and numbers.max() < LARGEST):  # false for NaN too
        absent = np.isnan(numbers)
        if absent.any():
            raise error(lacking(at, absent))
        row = int(np.flatnonzero(~(np.abs(numbers) < LARGEST))[0])
        raise error(f"{at} holds {numbers[row]} in row {row}; every value must be finite and below {LARGEST:g}")
    return numbers


def plain_numbers(column: npt.NDArray[Any], at: str, error: type[StagewiseError]) -> Floats:
    """Return numbers that stand among objects, NaN where there is none."""
    entries = column.tolist()
    kinds = {type(entry) for entry in entries}
    absent = {kind for kind in kinds if kind.__name__ in NOTHINGS}
    strange = [kind for kind in kinds - absent if not issubclass(kind, NUMBERS) and kind.__name__ != "Decimal"]
    if strange:
        odd = no_number(entries)  # one text in a file makes texts of a whole column: it is named, not the first row
        row = next(i for i, entry in enumerate(entries) if type(entry) in strange) if odd is None else odd
        raise error(f"{at} holds {unlike(entries, row)}; it must hold numbers, or true and false")
    try:
        return np.array([math.nan if type(entry) in absent else float(entry) for entry in entries])
    except OverflowError:
        raise error(f"{at} holds a number that no double can hold; scale it") from None


def no_number(entries: list[Any]) -> int | None:
    """Return the first row that holds neither a number, a text that is one, nor nothing; None where there is none.

    >>> no_number(["0", "1.5", None, "", "yes"]), no_number(["0", 1])
    (4, None)
    """
    for row, entry in enumerate(entries):
        if isinstance(entry, NUMBERS) or type(entry).__name__ in (*NOTHINGS, "Decimal"):
            continue
        try:
            float(entry if not isinstance(entry, str) or entry.strip() else "0")
        except (TypeError, ValueError):
            return row
    return None


def unlike(entries: list[Any], row: int) -> str:
    """Return in words what a row holds among numbers, and what it may mean.

    >>> unlike(["0", "yes", "1"], 1)
    "'yes' in row 1 of 3, counted from 0, which is no number (1 for yes and 0 for no?)"
    """
    entry = entries[row]
    meant = " (1 for yes and 0 for no?)" if str(entry).strip().lower() in ("yes", "no", "y", "n") else ""
    kind = "a number that is written as text" if no_number([entry]) is None else "which is no number"
    return f"{shown(entry)} in row {row} of {len(entries):,}, counted from 0, {kind}{meant}"


def lacking(at: str, absent: npt.NDArray[np.bool_]) -> str:
    """Return which rows of a column have no value."""
    rows = np.flatnonzero(absent)
    listed = ", ".join(map(str, rows[:5])) + (f" and {rows.size - 5:,} more" if rows.size > 5 else "")
    return (
        f"{at} has no value in row{'s' if rows.size > 1 else ''} {listed} of {absent.size:,}, counted from 0; fill in "
        "what it means, and leave out a row only where that does not depend on what came of it"
    )
