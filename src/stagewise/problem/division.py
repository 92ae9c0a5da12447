"""Divisions of users: by the segments of one or several columns."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.checks import Floats
from stagewise.problem.context import check_segment_name, find_segment_names, get_segment_name, hash_segment
from stagewise.problem.context_columns import Category, ContextColumn, NumericColumn
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.risk_score import RiskScore


@dataclass(frozen=True)
class Division:
    """A division of users. Its key is one number, by which the models of its signals find a user's rates."""

    columns: tuple[str, ...]
    """The columns of the context that it reads."""

    @property
    def name(self) -> str:
        """The name of the division.

        >>> Division(("country", "plan")).name
        'country and plan'
        """
        return " and ".join(self.columns)

    def encode(self, values: Mapping[str, Any]) -> int:
        """Return the key of a user's segment from a context by name.

        >>> Division(("country",)).encode({"country": "NZ"}) == hash_segment("NZ")
        True
        """
        return self.encode_names([check_segment_name(values[column], column) for column in self.columns])

    def encode_names(self, names: Sequence[str]) -> int:
        """Return the key of the names of a segment, one for each column."""
        return hash_segment(join_segments(names))

    def get_segment_name(self, key: int) -> str:
        return get_segment_name(key)

    def list_names(self, keys: Floats) -> set[str]:
        """Return the names of keys, without those that this process does not know."""
        return find_segment_names(keys)

    def encode_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the keys of many users, from columns of checked names."""
        rows = list(zip(*(columns[column] for column in self.columns), strict=True))
        keys = {row: float(self.encode_names(row)) for row in set(rows)}
        return np.fromiter(map(keys.__getitem__, rows), np.float64, len(rows))


class ScoreTerm(NamedTuple):
    """What one column adds to a score."""

    name: str
    weight: float
    """Of a number; it is not used for a category."""
    by_level: Sequence[float] | None = None
    """What each level of a category adds; None: the column is a number."""


@dataclass(frozen=True)
class ScoreDivision(Division):
    """The buckets of a score; the key is the number of the bucket, from the lowest."""

    score: RiskScore
    terms: tuple[ScoreTerm, ...]

    @property
    def name(self) -> str:
        return self.score.name

    @cached_property
    def _points(self) -> list[float]:
        return list(self.score.points)

    @cached_property
    def _bucket_names(self) -> tuple[str, ...]:
        return self.score.bucket_names

    def get_segment_name(self, key: int) -> str:
        return self._bucket_names[key]

    def list_names(self, keys: Floats) -> set[str]:
        """Return nothing: the score names its buckets."""
        return set()

    def encode(self, values: Mapping[str, float]) -> int:
        """Return the bucket of a user, from checked numbers and indices of levels by column.

        >>> ScoreDivision((), RiskScore("risk"), (ScoreTerm("risk", 1.0),)).encode({"risk": 0.31})
        3
        """
        total = 0.0
        for name, weight, by_level in self.terms:
            total += weight * values[name] if by_level is None else by_level[int(values[name])]
        return bisect_right(self._points, total)

    def encode_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the buckets of many users, from columns of checked numbers and indices of levels."""
        return np.searchsorted(self._points, self.compute_totals(columns), side="right")

    def compute_totals(self, columns: Mapping[str, Any]) -> Floats:
        """Return the scores of many users, bitwise equal to one by one; indices of levels that are NaN count as 0."""
        total: Floats = np.zeros(1)
        for name, weight, by_level in self.terms:
            if by_level is None:
                total = total + weight * columns[name]
            else:
                total = total + np.array(by_level)[np.nan_to_num(columns[name]).astype(np.int64)]
        return total


def build_score_terms(score: RiskScore, columns: Mapping[str, ContextColumn]) -> tuple[ScoreTerm, ...]:
    """Return what each column of a context adds to a score; "country=FR" is a level of a category."""
    if score.weights is None:
        column = columns.get(score.name)
        if column is not None and not isinstance(column, NumericColumn):
            raise build_column_error(score, score.name)
        if column is not None and column.ends != score.ends:
            text, rule = f"the range of the score {score.name!r}", f"that of the context's {score.name!r}"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, text, score.ends, rule)
        return (ScoreTerm(score.name, 1.0),)
    terms: dict[str, ScoreTerm] = {}
    for key, weight in score.terms:
        if isinstance(columns.get(key), NumericColumn):
            terms[key] = ScoreTerm(key, weight)
            continue
        name, level = find_level(key, columns)
        if name is None:
            raise build_column_error(score, key)
        labels = columns[name].labels
        by_level = list(terms[name].by_level or () if name in terms else [0.0] * len(labels))
        by_level[labels.index(level)] = weight
        terms[name] = ScoreTerm(name, 0.0, tuple(by_level))
    return tuple(terms.values())


def find_level(key: str, columns: Mapping[str, ContextColumn]) -> tuple[str | None, str]:
    """Return the category and the level that a key such as "country=FR" names; None: there is none."""
    for name, column in columns.items():
        level = key.removeprefix(f"{name}=")
        if isinstance(column, Category) and level != key and level in column.labels:
            return name, level
    return None, ""


def build_column_error(score: RiskScore, name: str) -> InvalidProblem:
    """Return the error of a score with something that is no column of the context."""
    rule = "a number, boolean or date of the context, or a level of a category, such as 'country=FR'"
    return InvalidProblem.must_be(ErrorCode.UNKNOWN_NAME, f"a column of the score {score.name!r}", name, rule)


def join_segments(names: Sequence[str]) -> str:
    r"""Return the name of a segment of several columns; a comma or a backslash in a name is escaped.

    >>> join_segments(["NZ"]), join_segments(["NZ", "pro"]), join_segments(["a, b", "c"])
    ('NZ', 'NZ, pro', 'a\\, b, c')
    """
    if len(names) == 1:
        return names[0]
    return ", ".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)


def name_segment(policy: Any, signal: str, key: int) -> str:
    problem = getattr(policy, "problem", None)
    division = None if problem is None else problem.get_division(signal)
    return get_segment_name(key) if division is None else str(division.get_segment_name(key))
