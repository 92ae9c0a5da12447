"""Divisions of users: by the segments of one or several columns."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.problem.checks import Floats
from stagewise.problem.context import check_segment_name, get_segment_name, hash_segment
from stagewise.problem.context_columns import NumericColumn
from stagewise.problem.signals import RiskScore


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
        """Return the name of a segment."""
        return get_segment_name(key)

    def encode_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the keys of many users, from columns of checked names."""
        rows = list(zip(*(columns[column] for column in self.columns), strict=True))
        keys = {row: self.encode_names(row) for row in set(rows)}
        return [keys[row] for row in rows]


@dataclass(frozen=True)
class ScoreDivision(Division):
    """The buckets of a score; the key is the number of the bucket, from the lowest."""

    score: RiskScore
    terms: tuple[tuple[str, float, NumericColumn], ...]
    """The columns that the score sums, their weights, and how they are read."""

    @property
    def name(self) -> str:
        """The name of the score."""
        return self.score.name

    @cached_property
    def _points(self) -> list[float]:
        return list(self.score.points)

    @cached_property
    def _bucket_names(self) -> tuple[str, ...]:
        return self.score.bucket_names

    def get_segment_name(self, key: int) -> str:
        """Return the name of a bucket."""
        return self._bucket_names[key]

    def encode(self, values: Mapping[str, Any]) -> int:
        """Return the bucket of a user from a context by name.

        >>> from stagewise.problem.context_columns import Number
        >>> ScoreDivision((), RiskScore("risk"), (("risk", 1.0, Number(0, 1)),)).encode({"risk": 0.31})
        3
        """
        total = 0.0
        for name, weight, column in self.terms:
            total += weight * column.read(values[name], name)[0]
        return bisect_right(self._points, total)

    def encode_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the buckets of many users, from columns of checked numbers."""
        total: Floats = np.zeros(1)
        for name, weight, _ in self.terms:
            total = total + weight * columns[name]
        return np.searchsorted(self._points, total, side="right")


def join_segments(names: Sequence[str]) -> str:
    r"""Return the name of a segment of several columns; a comma or a backslash in a name is escaped.

    >>> join_segments(["NZ"]), join_segments(["NZ", "pro"]), join_segments(["a, b", "c"])
    ('NZ', 'NZ, pro', 'a\\, b, c')
    """
    if len(names) == 1:
        return names[0]
    return ", ".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)
