"""Columns as numbers, also where they were logged as texts; what keeps a column from being one of numbers is named."""

from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats
from stagewise.launch.log import text_of
from stagewise.problem.columns import NOTHINGS, no_number, unlike
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import shown

MOSTLY = 0.9  # of a column that are numbers: then the others are slips, and no names of groups


def outcomes_of(array: npt.NDArray[Any], name: str) -> Floats:
    """Return a column of outcomes."""
    values = numbers_of(array)
    entries = array.tolist()
    odd = no_number(entries) if values is None else None
    if odd is not None:
        raise InvalidOutcome(f"the column {shown(name)} is to hold outcomes, and holds {unlike(entries, odd)}")
    if values is None or not np.isfinite(values).any():
        raise InvalidOutcome(f"the column {shown(name)} is to hold outcomes, and holds no numbers")
    return np.where(np.isfinite(values), values, np.nan)


def nearly_numbers(entries: list[Any]) -> str:
    """Return what keeps a column from being one of numbers, where nine tenths of it are; else nothing.

    >>> nearly_numbers(["18"] * 19 + ["old"]), nearly_numbers(["NZ", "AU", "1"])
    ("19 of its 20 values are numbers, and it holds 'old' in row 19 of 20, counted from 0, which is no number", '')
    """
    there = [entry for entry in entries if text_of(entry) is not None]
    good = sum(no_number([entry]) is None for entry in there)
    odd = no_number(entries)
    if odd is None or good < MOSTLY * len(there):
        return ""
    return f"{good:,} of its {len(there):,} values are numbers, and it holds {unlike(entries, odd)}"


def numbers_of(array: npt.NDArray[Any]) -> Floats | None:
    """Return a column as numbers, also where they were logged as texts; None where it holds something else."""
    if array.dtype.kind in "bfiu":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        return None
    entries = array.tolist()
    if not any(type(entry).__name__ not in NOTHINGS for entry in entries):
        return np.full(len(entries), np.nan)
    try:
        return np.array([number_in(entry) for entry in entries])
    except (TypeError, ValueError, OverflowError):
        return None


def number_in(entry: Any) -> float:
    """Return one entry as a number, NaN where there is none."""
    if type(entry).__name__ in NOTHINGS or entry == "":
        return float("nan")
    if isinstance(entry, str) and entry.strip().lower() in ("nan", "inf", "-inf", "infinity"):
        return float("nan")
    return float(entry)
