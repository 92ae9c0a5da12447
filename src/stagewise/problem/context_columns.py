"""Columns of a context as a problem declares them: numbers, booleans, dates and categories.

A value is read alone or with its column, with the same result: a number, or the index of a level. A value that cannot
be used refuses its own row and no other.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.actions import Flags
from stagewise.problem.checks import (
    BOOL_TYPES,
    LARGEST,
    Floats,
    StrictSettings,
    check_bool,
    check_mapping,
    check_number,
    check_range,
    check_unique_names,
    copy_read_only,
    is_listing,
    list_entries,
)
from stagewise.problem.columns import is_blank
from stagewise.problem.context import LONGEST_SEGMENT, check_segment_name
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr, suggest_name
from stagewise.problem.timing import LATEST

OTHER = "other"  # the level of values that are not declared
MOST_LEVELS = 100  # of one category
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = {bool, int, float, type(None)}  # types that NumPy converts as they are read one by one


class ColumnValues(NamedTuple):
    """The values of one column for many users."""

    values: Floats
    """(n,) numbers, or indices of levels; NaN: refused."""
    clipped: Flags
    """(n,) whether a value was beyond its range and counts as the end of it."""
    refused: dict[int, InvalidActions]
    """Errors by row."""


class ContextColumn(StrictSettings):
    """Base of the declared columns of a context."""

    type_name: ClassVar[str]  # in files
    labels: Sequence[str] = ()  # the names of its segments, where users can be divided by it
    missing: Any

    @abstractmethod
    def parse(self, value: Any, name: str) -> float:
        """Return a value that is not missing as a number, or as the index of its level."""

    @abstractmethod
    def parse_plain(self, column: npt.NDArray[Any]) -> Floats:
        """Return what `parse` returns for each value (n,); NaN where only `parse` can tell."""

    @cached_property
    def replacement(self) -> float | None:
        """What a missing value counts as; None: it is refused."""
        return None if self.missing is None else self.parse(self.missing, "missing")

    @property
    def example(self) -> Any:
        """A value, as JSON has it."""
        return self.labels[0]

    def put_in_range(self, number: float, name: str) -> tuple[float, bool]:
        """Return a number in its range, and whether it was clipped."""
        return number, False

    def put_all_in_range(self, numbers: Floats) -> Flags:
        """Clip numbers (n,) in place, NaN where one is refused; return which were clipped."""
        return np.zeros(numbers.size, dtype=np.bool_)

    def read(self, value: Any, name: str) -> tuple[float, bool]:
        """Return the number of a value or the index of its level, and whether it was clipped."""
        if not is_blank(value):
            return self.put_in_range(self.parse(value, name), name)
        if self.replacement is None:
            template = "{name!r} is missing; give every user a value, or declare missing=..., what counts instead"
            raise InvalidActions(ErrorCode.MISSING_CONTEXT_FIELD, template, name=name)
        return self.replacement, False

    def get_label(self, value: Any, name: str) -> str:
        return self.labels[int(self.read(value, name)[0])]

    def read_unchecked(self, column: npt.NDArray[Any], name: str) -> Floats:
        """Return values (n,) that may be out of range; NaN: missing, or not a value of this column."""
        values = self.parse_plain(column)
        for row in np.flatnonzero(np.isnan(values)).tolist():
            value = column[row]
            with suppress(InvalidActions):
                values[row] = math.nan if is_blank(value) else self.parse(value, name)
        return values

    def read_column(self, column: npt.NDArray[Any], name: str) -> ColumnValues:
        """Return the values of many users, as `read` returns each."""
        values = self.parse_plain(column)
        clipped, refused = self.put_all_in_range(values), dict[int, InvalidActions]()
        rest = np.flatnonzero(np.isnan(values))
        if rest.size and column.dtype.kind == "f" and self.replacement is not None:
            values[np.isnan(column)], rest = self.replacement, rest[~np.isnan(column[rest])]
        read = remember(lambda value: self.read(value, name))
        for row, value in zip(rest.tolist(), list(column[rest]), strict=True):
            result = read(value)
            if isinstance(result, InvalidActions):
                refused[row] = result
            else:
                values[row], clipped[row] = result
        return ColumnValues(values, clipped, refused)


def remember(read: Callable[[Any], tuple[float, bool]]) -> Callable[[Any], tuple[float, bool] | InvalidActions]:
    """Return a function that returns the errors of another one, called once for equal values of one type."""
    known: dict[Any, tuple[float, bool] | InvalidActions] = {}

    def try_read(value: Any) -> tuple[float, bool] | InvalidActions:
        try:
            return read(value)
        except InvalidActions as error:
            return error

    def look_up(value: Any) -> tuple[float, bool] | InvalidActions:
        try:
            key = type(value), value
            if key not in known:
                known[key] = try_read(value)
            return known[key]
        except Exception:  # the value cannot be a key, such as a list
            return try_read(value)

    return look_up


def is_real(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy; a duration of NumPy is an integer by class only."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, np.timedelta64)


def to_plain_numbers(column: npt.NDArray[Any]) -> Floats:
    """Return the numbers (n,) of a column; NaN for any other value, and for those too large to square."""
    numbers, kind = np.full(column.size, np.nan), column.dtype.kind
    if kind in "bfiu":
        numbers = np.array(column, dtype=np.float64)
    elif kind == "O" and set(map(type, column.tolist())) <= PLAIN:
        try:
            numbers = np.array(column.tolist(), dtype=np.float64)
        except OverflowError:  # an integer beyond all doubles
            return numbers
    numbers[~(np.abs(numbers) <= LARGEST)] = np.nan
    return numbers


class NumericColumn(ContextColumn):
    """Base of columns that are one number, scaled from its range to [−1, 1]."""

    clip: bool = False

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The range."""

    @property
    def example(self) -> Any:
        return self.pick(0.5)

    def pick(self, share: float) -> Any:
        """Return the value at a share of the range, as JSON has it.

        >>> Number(18, 99).pick(0.5), Boolean().pick(0.2), Date("2024-01-01", "2024-01-03").pick(0.5)
        (58.5, False, '2024-01-02')
        """
        low, high = self.ends
        return round(low + (high - low) * share, 3)

    def check(self) -> None:
        """Raise InvalidProblem for invalid settings."""
        check_bool(self.clip, "clip")
        low, high = self.ends
        try:
            inside = self.replacement is None or low <= self.replacement <= high
        except InvalidActions as error:
            raise InvalidProblem(error.code, "{error}", error=error) from None
        if not inside:
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "missing", self.missing, f"in {self.range_text}")

    def put_in_range(self, number: float, name: str) -> tuple[float, bool]:
        low, high = self.ends
        if low <= number <= high:
            return number, False
        if not self.clip:
            raise InvalidActions(ErrorCode.CONTEXT_OUT_OF_RANGE, self.describe_range_error(number, name))
        return (low if number < low else high), True

    def put_all_in_range(self, numbers: Floats) -> Flags:
        low, high = self.ends
        beyond = np.asarray((numbers < low) | (numbers > high))
        if self.clip:
            np.clip(numbers, low, high, out=numbers)
            return beyond
        numbers[beyond] = np.nan
        return np.zeros(numbers.size, dtype=np.bool_)

    def format(self, number: float) -> str:
        return f"{number:.15g}"

    @property
    def range_text(self) -> str:
        low, high = self.ends
        return f"[{self.format(low)}, {self.format(high)}]"

    def describe_range_error(self, number: float, name: str) -> str:
        """Return the message for a value outside the range."""
        percent = " (was it a percentage?)" if self.ends == (0.0, 1.0) and 1.0 < number <= 100.0 else ""
        return (
            f"{name!r} is {self.format(number)}, outside its range {self.range_text}{percent}; if that value is "
            "valid, declare a wider range in the problem's context, or clip=True"
        )


@dataclass(frozen=True)
class Number(NumericColumn):
    """A number about a user.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> tenure = Number(0, 3650, clip=True, missing=0)
        >>> tenure.read(4000, "tenure"), tenure.read(None, "tenure")
        ((3650.0, True), (0.0, False))
    """

    low: float = -1.0
    """The smallest value."""
    high: float = 1.0
    """The largest value."""
    clip: bool = False
    """Whether a value beyond the range counts as its end, and is counted; otherwise its row is refused."""
    missing: float | None = None
    """What a missing value counts as; None: its row is refused."""

    type_name: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        low, high = check_range(self.low, self.high, "a number")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        self.check()

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def read(self, value: Any, name: str) -> tuple[float, bool]:
        if type(value) is float and self.low <= value <= self.high:
            return value, False
        return super().read(value, name)

    def parse(self, value: Any, name: str) -> float:
        return 1.0 * value if isinstance(value, BOOL_TYPES) else check_number(value, repr(name), InvalidActions)

    def parse_plain(self, column: npt.NDArray[Any]) -> Floats:
        return to_plain_numbers(column)


@dataclass(frozen=True)
class Boolean(NumericColumn):
    """A value that is true or false: True and 1, or False and 0. Text is refused.

    Raises:
        InvalidProblem: A setting is invalid.

    Example:
        >>> [Boolean(missing=False).read(value, "is_new")[0] for value in (True, 0, None)]
        [1.0, 0.0, 0.0]
    """

    missing: bool | None = None
    """What a missing value counts as; None: its row is refused."""

    type_name: ClassVar[str] = "boolean"
    labels: ClassVar[Sequence[str]] = ("False", "True")  # type: ignore[misc]
    clip: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.check()

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, 1.0

    def pick(self, share: float) -> Any:
        return share >= 0.5

    def parse(self, value: Any, name: str) -> float:
        if isinstance(value, BOOL_TYPES) or (is_real(value) and value in (0, 1)):
            return float(value)
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, repr(name), value, "True or False, or 1 or 0")

    def parse_plain(self, column: npt.NDArray[Any]) -> Floats:
        numbers = to_plain_numbers(column)
        return np.where((numbers == 0.0) | (numbers == 1.0), numbers, np.nan)


@dataclass(frozen=True)
class Date(NumericColumn):
    """A day or a time: a `date`, a `datetime`, ISO text such as "2026-03-01", or seconds since 1970.

    Without a time zone it is in UTC. The unit of time does not matter, since a range is scaled to [−1, 1].

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> joined = Date("2024-01-01", "2026-12-31", clip=True)
        >>> joined.read("2023-06-01", "joined") == joined.read("2024-01-01", "joined")[:1] + (True,)
        True
    """

    low: str | date
    """The earliest day or time."""
    high: str | date
    """The latest day or time."""
    clip: bool = False
    """Whether a time beyond the range counts as its end, and is counted; otherwise its row is refused."""
    missing: str | date | None = None
    """What a missing value counts as; None: its row is refused."""

    type_name: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        for name in ("low", "high", "missing"):
            given = getattr(self, name)
            if isinstance(given, date):
                object.__setattr__(self, name, given.isoformat())
            elif not isinstance(given, str) and not (name == "missing" and given is None):
                rule = "a date, or text such as '2026-03-01'"
                raise InvalidProblem.must_be(ErrorCode.INVALID_TIME, f"the {name} of a date", given, rule)
        check_range(*self.ends, "a date")
        self.check()

    @cached_property
    def ends(self) -> tuple[float, float]:
        try:
            return self.parse(self.low, "low"), self.parse(self.high, "high")
        except InvalidActions as error:
            raise InvalidProblem(error.code, "{error}", error=error) from None

    def pick(self, share: float) -> Any:
        low, high = self.ends
        return self.format(low + (high - low) * share)

    def parse(self, value: Any, name: str) -> float:
        try:
            seconds = to_seconds(value)
            if abs(seconds) <= LATEST:  # false for NaN
                return seconds
        except Exception:  # an object's own code can raise anything
            pass
        rule = "a date, text such as '2026-03-01' or '2026-03-01T12:00:00Z', or seconds since 1970"
        raise InvalidActions.must_be(ErrorCode.INVALID_TIME, repr(name), value, rule)

    def parse_plain(self, column: npt.NDArray[Any]) -> Floats:
        if column.dtype.kind == "M":
            microseconds = column.astype("datetime64[us]")
            seconds = np.where(np.isnat(microseconds), np.nan, microseconds.astype(np.int64) / 1e6)
        else:
            seconds = to_plain_numbers(column) if column.dtype.kind in "fiu" else np.full(column.size, np.nan)
        return np.where(np.abs(seconds) <= LATEST, seconds, np.nan)

    def format(self, number: float) -> str:
        text = datetime.fromtimestamp(number, UTC).isoformat() if abs(number) < 2.5e11 else str(number)
        return text.removesuffix("+00:00").removesuffix("T00:00:00")


def to_seconds(value: Any) -> float:
    """Return a time in seconds since 1970; raises whatever another value leads to."""
    if isinstance(value, BOOL_TYPES):
        raise TypeError
    if is_real(value):
        return float(value)
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    if getattr(moment, "nanosecond", 0):  # of pandas, cut to microseconds as in a column
        moment = moment.replace(nanosecond=0)  # type: ignore[call-arg]
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH).total_seconds()


@dataclass(frozen=True)
class Category(ContextColumn):
    """A category, such as a country or a plan: one of the declared levels.

    A level is text, a whole number, True or False; 1, 1.0 and "1" are the same level, True is another one.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> plan = Category(["free", "basic", "pro"], other=True, missing="other")
        >>> plan.labels, [plan.get_label(value, "plan") for value in ("pro", "gold", None)]
        (('free', 'basic', 'pro', 'other'), ['pro', 'other', 'other'])
    """

    levels: Sequence[str]
    """The declared levels; the first one is the reference."""
    other: bool = False
    """Whether any other value counts as the level "other"; otherwise its row is refused."""
    missing: str | None = None
    """The level of a missing value; None: its row is refused."""

    type_name: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        if not is_listing(self.levels):
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "levels", self.levels, "a list of levels")
        object.__setattr__(self, "levels", tuple(map(check_level, list_entries(self.levels, "levels"))))
        check_bool(self.other, "other")
        for level in self.levels:
            if self.levels.count(level) > 1:
                raise InvalidProblem(ErrorCode.DUPLICATE_NAME, "the level {level!r} is listed twice", level=level)
        if not 2 <= len(self.labels) <= MOST_LEVELS:
            rule = f"from 2 to {MOST_LEVELS}; list the most frequent ones, and declare other=True"
            raise InvalidProblem.must_be(ErrorCode.WRONG_SHAPE, "the number of levels", len(self.labels), rule)
        if self.missing is not None:
            object.__setattr__(self, "missing", check_level(self.missing))
        if self.missing is not None and self.missing not in self.labels:
            raise InvalidProblem.must_be_one_of(ErrorCode.INVALID_CHOICE, "missing", self.missing, self.labels)

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        """All levels, also that of values that are not declared."""
        return (*self.levels, OTHER) if self.other and OTHER not in self.levels else tuple(self.levels)

    @cached_property
    def features(self) -> Floats:
        """The features (K, K − 1) of each level."""
        return copy_read_only(build_level_features(len(self.labels)))

    @cached_property
    def features_by_label(self) -> dict[str, Floats]:
        """The features of each level, by its name."""
        return dict(zip(self.labels, self.features, strict=True))

    @cached_property
    def indices(self) -> dict[str, int]:
        """The index of each level, by its name."""
        return {label: index for index, label in enumerate(self.labels)}

    def relabel(self, text: str | None) -> str | None:
        """Return the level of a name, or the name itself if it is none; None: missing."""
        if text is None:
            return self.missing
        return OTHER if self.other and text not in self.labels else text

    def parse(self, value: Any, name: str) -> float:
        label = str(value) if isinstance(value, str) else check_segment_name(value, name)
        index = self.indices.get(OTHER if self.other and label not in self.indices else label)
        if index is None:
            hint = suggest_name(label, self.labels)
            template = "{name!r} is {value}, which is not a level{hint}; they are {labels}; other=True would take it"
            data = {"value": safe_repr(value), "hint": hint, "labels": join_names(self.labels)}
            raise InvalidActions(ErrorCode.UNKNOWN_LEVEL, template, name=name, **data)
        return float(index)

    def parse_plain(self, column: npt.NDArray[Any]) -> Floats:
        if column.dtype.kind != "O":
            return np.full(column.size, np.nan)
        get, nan = {label: float(index) for label, index in self.indices.items()}.get, math.nan
        try:
            return np.array([get(value, nan) for value in column.tolist()], dtype=np.float64)
        except Exception:  # a value cannot be a key, such as a list
            return np.full(column.size, np.nan)


def check_level(value: Any) -> str:
    """Return the name of a declared level."""
    try:
        label = check_segment_name(value, "a level")
    except InvalidActions:
        label = ""
    if not label:
        rule = f"a text of 1 to {LONGEST_SEGMENT} characters, a whole number, True or False"
        raise InvalidProblem.must_be(ErrorCode.INVALID_NAME, "a level", value, rule)
    return label


def build_level_features(levels: int) -> Floats:
    """Return the features (K, K − 1) of K levels, the corners of a regular simplex around 0.

        x₀ = −1,    x_k = √K e_k − 1/(1 + √K) elsewhere;    <x_j, x_k> = −1 and ‖x_k‖² = K − 1

    With a constant 1 the K rows are orthogonal and have the squared length K. So a mean in [0, 1] has a parameter of
    norm at most 1, as for numbers in [−1, 1] (docs/theory/context-models.md). Two levels are −1 and 1.

    >>> build_level_features(2).tolist(), build_level_features(4)[1].round(3).tolist()
    ([[-1.0], [1.0]], [1.667, -0.333, -0.333])
    """
    root = math.sqrt(levels)
    features = np.full((levels, levels - 1), -1.0 / (1.0 + root))
    np.fill_diagonal(features[1:], (levels + root - 1.0) / (1.0 + root))
    features[0] = -1.0
    return features


TYPES: dict[str, type[ContextColumn]] = {kind.type_name: kind for kind in (Number, Boolean, Date, Category)}


def parse_context(value: Any) -> dict[str, ContextColumn]:
    """Return the declared columns of a context by name."""
    if not isinstance(value, Mapping):
        return {name: Number() for name in check_unique_names(value, "columns of the context")}
    mapping = check_mapping(value, "the context")
    names = check_unique_names(tuple(mapping), "columns of the context")
    return {name: parse_column(mapping[name], name) for name in names}


def parse_column(entry: Any, name: str) -> ContextColumn:
    """Return a declared column: itself, (low, high), or a table of settings with its type."""
    if isinstance(entry, ContextColumn):
        return entry
    try:
        if isinstance(entry, Mapping):
            settings = check_mapping(entry, f"the column {name!r}")
            kind = settings.pop("type", Number.type_name)
            if not isinstance(kind, str) or kind not in TYPES:
                raise InvalidProblem.must_be_one_of(ErrorCode.INVALID_CHOICE, "the type", kind, list(TYPES))
            return TYPES[kind](**check_settings(TYPES[kind], settings))
        if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) != 2:
            rule = "(low, high), sw.Number(...), sw.Boolean(), sw.Date(...) or sw.Category(...)"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "the value", entry, rule)
        return Number(*entry)
    except InvalidProblem as error:
        raise InvalidProblem(error.code, "context {name!r}: {error}", name=name, error=error) from None


def check_settings(kind: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a column; raise InvalidProblem where a required one is missing."""
    required = {"levels"} if kind is Category else {"low", "high"} if kind in (Number, Date) else set[str]()
    absent = sorted(required - settings.keys())
    if absent:
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "the settings lack {names}", names=join_names(absent))
    return settings


def encode_column(column: ContextColumn) -> Any:
    """Return a declared column as `parse_column` reads it from a file."""
    settings = {f.name: getattr(column, f.name) for f in fields(column) if getattr(column, f.name) != f.default}  # type: ignore[arg-type]
    if isinstance(column, Number):
        if not column.clip and column.missing is None:
            return [column.low, column.high]
        settings |= {"low": column.low, "high": column.high}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    return {"type": column.type_name, **lists}
