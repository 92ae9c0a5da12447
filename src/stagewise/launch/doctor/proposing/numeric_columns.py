"""Parse columns as numbers, also if they were logged as text, and name values that are not numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import to_text
from stagewise.problem.columns import NOTHINGS, describe_non_number, find_non_number
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr

MIN_NUMERIC_SHARE = 0.9  # share of numbers above which the other values are mistakes, not groups


def parse_outcomes(array: npt.NDArray[Any], name: str) -> Floats:
    """Return a column of outcomes."""
    values = parse_numbers(array)
    entries = array.tolist()
    odd = find_non_number(entries) if values is None else None
    if odd is not None:
        raise InvalidOutcome(
            ErrorCode.COLUMN_WRONG_TYPE,
            "the column {name} must hold outcomes, and it holds {entries}",
            name=safe_repr(name),
            entries=describe_non_number(entries, odd),
        )
    if values is None or not np.isfinite(values).any():
        raise InvalidOutcome(
            ErrorCode.COLUMN_WRONG_TYPE,
            "the column {name} must hold outcomes, and it holds no numbers",
            name=safe_repr(name),
        )
    return np.where(np.isfinite(values), values, np.nan)


def describe_non_numbers(entries: list[Any]) -> str:
    """Return which value of a mostly numeric column is not a number; empty for other columns.

    >>> "'old' in row 19 of 20" in describe_non_numbers(["18"] * 19 + ["old"]), describe_non_numbers(["NZ", "AU", "1"])
    (True, '')
    """
    known = [entry for entry in entries if to_text(entry) is not None]
    good = sum(find_non_number([entry]) is None for entry in known)
    odd = find_non_number(entries)
    if odd is None or good < MIN_NUMERIC_SHARE * len(known):
        return ""
    return f"{good:,} of its {len(known):,} values are numbers, and it holds {describe_non_number(entries, odd)}"


def parse_numbers(array: npt.NDArray[Any]) -> Floats | None:
    """Return a column as numbers, also if they were logged as text; None if it holds something else."""
    if array.dtype.kind in "bfiu":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        return None
    entries = array.tolist()
    if not any(type(entry).__name__ not in NOTHINGS for entry in entries):
        return np.full(len(entries), np.nan)
    try:
        return np.array([parse_number(entry) for entry in entries])
    except (TypeError, ValueError, OverflowError):
        return None


def parse_number(entry: Any) -> float:
    """Return one entry as a number, NaN if it is missing."""
    if type(entry).__name__ in NOTHINGS or entry == "":
        return float("nan")
    if isinstance(entry, str) and entry.strip().lower() in ("nan", "inf", "-inf", "infinity"):
        return float("nan")
    return float(entry)
