"""Divisions of users: by the segments of one or several columns, or by the buckets of a risk score."""

import hashlib
import itertools
import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.checks import (
    MOST,
    Floats,
    StrictSettings,
    check_bool,
    check_integer,
    check_mapping,
    check_name,
    check_number,
    check_range,
    check_unique_names,
    is_listing,
    list_entries,
)
from stagewise.problem.context import check_segment_name, find_segment_names, get_segment_name, hash_segment
from stagewise.problem.context_columns import Category, ContextColumn, NumericColumn
from stagewise.problem.errors import ErrorCode, InvalidProblem

MOST_BUCKETS = NO_BUCKET = 32  # of a score, and the number of a user without a bucket, whose costs are not learned


@dataclass(frozen=True)
class RiskScore(StrictSettings):
    """A risk score, by whose buckets a limit's rates are kept: a column of the context, or a sum of its numbers.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> RiskScore("risk", cuts=[0.1, 0.3]).bucket_names
        ('0 to 0.1', '0.1 to 0.3', '0.3 to 1')
    """

    name: str
    """The name of the score, and of its column in the context if it has no `weights`."""
    buckets: int | None = None
    """The number of buckets; None: 10, or as `cuts` say."""
    cuts: Sequence[float] | None = None
    """Where one bucket ends and the next begins, chosen before learning; None: equal parts of the range."""
    low: float | None = None
    """The smallest value of the column; None: 0."""
    high: float | None = None
    """The largest value of the column; None: 1."""
    monotone: bool = True
    """Whether mean costs do not fall from bucket to bucket, so that neighbouring buckets are pooled."""
    version: int = 1
    """The version of the score, from 1; a new version starts with new cells."""
    weights: Mapping[str, float] | Sequence[tuple[str, float]] | None = None
    """The score is the sum of these numbers of the context, times their weights, and of the weights of levels of
    categories, such as "country=FR"; a level without a weight adds 0. Needs `cuts`."""
    rows_digest: str | None = None
    """The SHA-256 of the rows that the weights were fitted to, which must not be learned (`fit_risk_score`)."""
    digest: str | None = None
    """The SHA-256 of `weights`, `cuts` and `rows_digest`; a score that does not match it is refused."""

    def __post_init__(self) -> None:
        what = f"the score {check_name(self.name, 'the name of a score')!r}"
        check_bool(self.monotone, f"monotone of {what}")
        check_integer(self.version, f"the version of {what}", f"from 1 to {MOST}", 1, MOST)
        for setting, digest in (("digest", self.digest), ("rows_digest", self.rows_digest)):
            if digest is not None:
                check_name(digest, f"the {setting} of {what}")
                if self.weights is None:
                    raise InvalidProblem.unused(setting, digest, f"{what} has no weights that were fitted")
        if self.weights is None:
            low, high = 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high
            ends: tuple[float | None, float | None] = check_range(low, high, what)
        else:
            object.__setattr__(self, "weights", parse_weights(self.weights, what))
            ends = None, None
            for setting, value in (("low", self.low), ("high", self.high)):
                if value is not None:
                    raise InvalidProblem.unused(setting, value, f"{what} has weights, and so no range")
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])
        object.__setattr__(self, "cuts", self._check_cuts(what))
        object.__setattr__(self, "buckets", len(self.points) + 1)
        if self.digest is not None and self.digest != (found := self.compute_digest()):
            template = (
                "the digest of {what} is {declared!r}, but its weights, cuts and rows_digest have {found!r}: they are "
                "not those of the fit; fit the score again, or leave digest out if they are yours"
            )
            data = {"what": what, "declared": self.digest, "found": found}
            raise InvalidProblem(ErrorCode.DIGEST_MISMATCH, template, **data)

    def compute_digest(self) -> str:
        """Return the SHA-256 of the weights, the cuts and the digest of the rows.

        Example:
            >>> RiskScore("risk", weights={"age": 0.5}, cuts=[1.0]).compute_digest()[:8]
            'f5a45465'
        """
        parts = {"weights": self.terms, "cuts": self.points, "rows_digest": self.rows_digest}
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _check_cuts(self, what: str) -> tuple[float, ...]:
        low, high = self.ends
        subject, parts = f"the buckets of {what}", 10 if self.buckets is None else self.buckets
        parts = check_integer(parts, subject, f"from 2 to {MOST_BUCKETS}", 2, MOST_BUCKETS)
        if self.cuts is None:
            if self.weights is not None:
                rule = "where its buckets begin, since it has weights"
                raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, f"the cuts of {what}", None, rule)
            return tuple(low + (high - low) * i / parts for i in range(1, parts))
        if not is_listing(self.cuts):
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the cuts of {what}", self.cuts, "a list of numbers")
        cuts = tuple(check_number(cut, f"a cut of {what}") for cut in list_entries(self.cuts, f"the cuts of {what}"))
        if not 1 <= len(cuts) < MOST_BUCKETS or any(b <= a for a, b in itertools.pairwise((low, *cuts, high))):
            rule = f"1 to {MOST_BUCKETS - 1} numbers, each above the one before and inside its range"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the cuts of {what}", list(cuts), rule)
        if self.buckets is not None and parts != len(cuts) + 1:
            raise InvalidProblem.conflict(subject, parts, f"there are {len(cuts)} cuts", "leave one of them out")
        return cuts

    @property
    def points(self) -> tuple[float, ...]:
        """The cut points."""
        return tuple(self.cuts or ())

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the score."""
        if self.low is None or self.high is None:
            return -math.inf, math.inf
        return float(self.low), float(self.high)

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """The columns that it sums, with their weights."""
        return ((self.name, 1.0),) if self.weights is None else tuple(self.weights)  # type: ignore[arg-type]

    @property
    def bucket_names(self) -> tuple[str, ...]:
        """The names of the buckets, from the lowest."""
        low, high = self.ends
        first = f"below {self.points[0]:.4g}" if self.weights is not None else f"{low:.4g} to {self.points[0]:.4g}"
        last = f"from {self.points[-1]:.4g}" if self.weights is not None else f"{self.points[-1]:.4g} to {high:.4g}"
        return (first, *(f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(self.points)), last)

    def to_entry(self) -> Any:
        """Return its name, or its settings as `parse_score` reads them."""
        if self == RiskScore(self.name):
            return self.name
        entry = {f.name: getattr(self, f.name) for f in fields(self)}
        entry |= {
            "cuts": list(self.points),
            "weights": None if self.weights is None else dict(self.terms),
            "buckets": None,
        }
        return {name: value for name, value in entry.items() if value is not None}


def parse_weights(value: Any, what: str) -> tuple[tuple[str, float], ...]:
    """Return the weights of a score by column."""
    if isinstance(value, Mapping):
        pairs = list(check_mapping(value, f"the weights of {what}").items())
    else:
        pairs = list_entries(value, f"the weights of {what}") if is_listing(value) else []
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        rule = "a mapping from numbers of the context to weights"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the weights of {what}", value, rule)
    names = check_unique_names([name for name, _ in pairs], f"weights of {what}")
    weights = [check_number(weight, f"a weight of {what}") for _, weight in pairs]
    return tuple(zip(names, weights, strict=True))


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
