"""Risk scores, by whose buckets the rates of a limit are kept."""

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from stagewise.problem.checks import (
    MOST,
    check_bool,
    check_integer,
    check_mapping,
    check_name,
    check_number,
    check_unique_names,
    is_listing,
    list_entries,
)
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.strict_settings import StrictSettings, check_range

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
