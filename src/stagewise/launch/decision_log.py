"""`Log`: the columns of a log by the names of a problem."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.files.tables import read_table
from stagewise.launch.notes import Note, NoteCode
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_mapping, check_number
from stagewise.problem.columns import (
    get_column,
    is_blank,
    is_missing,
    list_column_names,
    list_unique_names,
    map_unique,
    parse_object_numbers,
    suggest_column,
    to_objects,
)
from stagewise.problem.context import FLOATS
from stagewise.problem.context_columns import Boolean, Category, Date, NumericColumn
from stagewise.problem.division import Division, ScoreDivision, join_segments
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_count, safe_repr, suggest_name
from stagewise.problem.timing import parse_timestamp

Texts = npt.NDArray[np.object_]
UNKNOWN_ACTION = -1  # index of an action that is not in the problem
TIME_COLUMNS = ("at", "time", "timestamp", "date", "day")  # usual names of the column of times
RESERVED_NAMES = ("action", "propensity", "at")  # what a log has besides the names of a problem
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Log:
    """The rows of a log by the names of a problem, in the problem's own units, unchecked."""

    problem: Problem
    actions: Ints
    """The index (n,) of the action, −1 if it is not in the problem."""
    numbers: Floats
    """The numbers (n, d) about users, in their own units, dates in seconds since 1970; NaN: missing. What a problem
    declares to be clipped is clipped, and what counts for a missing value is filled in."""
    segments: dict[str, Texts]
    """The levels of categories and the segments (n,) of users by column, as text; None: missing."""
    scores: dict[str, Floats]
    """The score (n,) of users by column; NaN: missing."""
    values: Floats
    """The reward and the costs (n, 1 + m), in their own units; NaN: unknown."""
    probabilities: Floats | None
    """The probability of every action (n, K), if logged."""
    propensities: Floats | None
    """The probability of the action taken (n,), if logged."""
    at: Floats | None
    """The time (n,), in seconds since 1970, if logged."""
    columns: Mapping[Any, Any]
    """All columns, also those that are not in the problem."""
    read_at: float | None = None
    """When the log was read, in seconds since 1970; None: at its last row."""

    @classmethod
    def of(cls, source: Any, problem: Problem, *, columns: Mapping[str, str] | None = None) -> Self:
        """Read a log from a file or a frame.

        `columns` is the mapping from names of the problem, "action", "propensity" or "at" to columns of the log.
        """
        table = read_table(source)
        finder = ColumnFinder(table, {} if columns is None else check_mapping(columns, "columns", InvalidOutcome))
        probability_names = [f"probability.{name}" for name in problem.action_names]
        names = [*RESERVED_NAMES, *problem.reported, *problem.context_names, *probability_names]
        finder.refuse_unknown(names)
        actions = finder.texts("action")
        rows = len(actions)
        if not rows:
            raise InvalidOutcome(ErrorCode.LOG_EMPTY, "the log has no rows, so there is nothing to learn")
        indices = {name: index for index, name in enumerate(problem.action_names)}
        found = [finder.optional_numbers(name) for name in probability_names]
        probabilities = [column for column in found if column is not None]
        return cls(
            problem=problem,
            actions=np.array([indices.get(name, UNKNOWN_ACTION) for name in actions], dtype=np.int64),
            numbers=stack_columns([finder.context_numbers(*one) for one in problem.numbers.items()], rows),
            segments={name: finder.labels(name, problem.categories.get(name)) for name in problem.text_columns},
            scores={name: finder.context_numbers(name, one) for name, one in problem.score_columns.items()},
            values=stack_columns(
                [
                    finder.numbers(name, "signal.") if signal.is_reported else np.full(rows, float(signal.low))
                    for name, signal in problem.signals.items()
                ],
                rows,
            ),
            probabilities=np.column_stack(probabilities) if len(probabilities) == len(problem.action_names) else None,
            propensities=finder.optional_numbers("propensity"),
            at=finder.times(),
            columns=table,
        )

    @property
    def rows(self) -> int:
        return len(self.actions)

    @cached_property
    def complete_rows(self) -> Flags:
        """Which rows (n,) have an action, a complete context and all outcomes."""
        return np.asarray(
            (self.actions != UNKNOWN_ACTION) & self.complete_contexts & ~np.isnan(self.values).any(axis=1)
        )

    @cached_property
    def complete_contexts(self) -> Flags:
        """Which rows (n,) have all numbers about the user in their ranges, all levels and all segments."""
        ends = self.problem.ends
        complete = ((self.numbers >= ends[:, 0]) & (self.numbers <= ends[:, 1])).all(axis=1)
        for name, column in self.problem.score_columns.items():
            complete &= (self.scores[name] >= column.ends[0]) & (self.scores[name] <= column.ends[1])
        for name, texts in self.segments.items():
            complete &= np.array([text is not None for text in texts], dtype=bool)
            complete &= ~self.find_unknown_levels(name)
        return np.asarray(complete)

    def find_unknown_levels(self, name: str) -> Flags:
        """Return which rows (n,) have a level that a category does not declare."""
        category = self.problem.categories.get(name)
        labels = None if category is None else {None, *category.labels}
        return np.array(
            [labels is not None and text not in labels for text in self.segments[name].tolist()], dtype=bool
        )

    @cached_property
    def category_features(self) -> Floats:
        """The features (n, c) of the categories; NaN where a level is missing or not declared."""
        columns = [np.empty((self.rows, 0))]
        for name, category in self.problem.categories.items():
            none = np.full(len(category.labels) - 1, np.nan)
            columns.append(np.array([category.features_by_label.get(text, none) for text in self.segments[name]]))
        return np.concatenate(columns, axis=1)

    @cached_property
    def readings(self) -> dict[str, Floats]:
        """The numbers, the scores and the indices of levels (n,) by column; NaN: missing, or not a declared level."""
        columns = {**dict(zip(self.problem.numbers, self.numbers.T, strict=True)), **self.scores}
        for name, category in self.problem.categories.items():
            columns[name] = np.array([category.indices.get(text, math.nan) for text in self.segments[name].tolist()])
        return columns

    def get_group_names(self, division: Division) -> Texts:
        """Return the group (n,) of users by a division, as text; None: missing."""
        if isinstance(division, ScoreDivision):
            keys = zip(division.encode_columns(self.readings).tolist(), self.complete_contexts.tolist(), strict=True)
            return to_objects([division.get_segment_name(key) if known else None for key, known in keys])
        rows = zip(*(self.get_segments(column) for column in division.columns), strict=True)
        names = [None if None in row else join_segments(row) for row in rows]
        return np.array(names, dtype=object)

    def get_segments(self, column: str) -> list[str | None]:
        """Return the segments (n,) of a column; None: missing."""
        if column in self.segments:
            texts: list[str | None] = self.segments[column].tolist()
            return texts
        numbers, labels = self.numbers[:, list(self.problem.numbers).index(column)], Boolean.labels
        return [labels[int(number)] if number in (0.0, 1.0) else None for number in numbers.tolist()]

    @cached_property
    def order(self) -> Ints:
        """The rows in the order of time; in the order of the file without times."""
        return np.arange(self.rows) if self.at is None else np.argsort(self.at, kind="stable")

    def read_time(self, as_of: Any = None) -> float | None:
        """Return when the log was read, in seconds since 1970: as given, else its last time; None: it has no times."""
        if as_of is not None or self.read_at is not None:
            return self.read_at if as_of is None else parse_timestamp(as_of)
        return None if self.at is None or np.isnan(self.at).all() else float(np.nanmax(self.at))

    def open_windows(self, as_of: Any = None) -> Flags:
        """Return which outcomes (n, 1 + m) have a window that was open when the log was read, at `as_of`.

        The outcomes reported by then are a biased sample: most rare costs would still be missing and count as none. In
        a log without times no window is open.
        """
        is_open, end = np.zeros(self.values.shape, dtype=bool), self.read_time(as_of)
        if self.at is not None and end is not None and not np.isnan(self.at).all():
            for index, signal in enumerate(self.problem.signals.values()):
                if signal.outcome_window is not None:
                    is_open[:, index] = ~(self.at + signal.outcome_window.seconds <= end)
        return is_open

    def fill_closed_windows(self, left_out: Flags) -> Floats:
        """Return the outcomes (n, 1 + m) with defaults for closed windows; NaN: unknown, or left out."""
        values = self.values.copy()
        for index, signal in enumerate(self.problem.signals.values()):
            if signal.outcome_window is not None and not signal.outcome_window.drops:
                values[np.isnan(values[:, index]), index] = float(signal.outcome_window.missing)
        return np.where(left_out, np.nan, values)

    def take(self, rows: Any) -> Self:
        """Return a log of some rows, by index or by a mask."""
        chosen = np.arange(self.rows)[rows]
        return replace(
            self,
            actions=self.actions[chosen],
            numbers=self.numbers[chosen],
            segments={name: texts[chosen] for name, texts in self.segments.items()},
            scores={name: numbers[chosen] for name, numbers in self.scores.items()},
            values=self.values[chosen],
            probabilities=None if self.probabilities is None else self.probabilities[chosen],
            propensities=None if self.propensities is None else self.propensities[chosen],
            at=None if self.at is None else self.at[chosen],
            columns={name: array[chosen] for name, array in self.arrays.items()},
        )

    @cached_property
    def arrays(self) -> dict[Any, npt.NDArray[Any]]:
        return {
            name: get_column(self.columns, name, "the log") for name in list_column_names(self.columns, InvalidFile)
        }

    def parse_shares(self, given: Mapping[Any, Any], what: str, error: type[StagewiseError]) -> Floats:
        """Return shares (K,) by action; an action that is not named has none."""
        shares, names = check_mapping(given, what, error), self.problem.action_names
        unknown = next((name for name in shares if name not in names), None)
        if unknown is not None:
            template = "{what} names {unknown}, which is no action{hint}"
            data = {"what": what, "unknown": safe_repr(unknown), "hint": suggest_name(unknown, names)}
            raise error(ErrorCode.UNKNOWN_ACTION, template, **data)
        return np.array([check_number(shares.get(name, 0.0), f"{what} for {name!r}", error) for name in names])

    def frame(self) -> dict[str, Any]:
        """Return the columns by the problem's names, for `agent.learn_log_frame`."""
        actions = [None if index == UNKNOWN_ACTION else self.problem.action_names[index] for index in self.actions]
        columns: dict[str, Any] = {"action": np.array(actions, dtype=object)}
        columns |= {name: self.numbers[:, i] for i, name in enumerate(self.problem.numbers)}
        columns |= self.segments | self.scores
        if self.problem.needs_times and self.at is not None:
            columns["at"] = self.at
        signals = enumerate(self.problem.signals.items())
        return columns | {name: self.values[:, i] for i, (name, signal) in signals if signal.is_reported}


class ColumnFinder:
    """Finds the columns of a log by the names of a problem."""

    def __init__(self, columns: Mapping[Any, Any], names: Mapping[str, Any]) -> None:
        self.columns, self.names = columns, names
        self.column_names = list_column_names(columns, InvalidOutcome)

    def refuse_unknown(self, known: Sequence[str], hint: str = "") -> None:
        """Reject unknown names and columns of the mapping, which would be ignored."""
        for name, column in self.names.items():
            if name not in known:
                raise InvalidOutcome(
                    ErrorCode.UNKNOWN_NAME,
                    "columns has {name}, which is not a name of the problem; it may be one of {known}{hint}{match}",
                    name=safe_repr(name),
                    known=safe_repr(list(known)),
                    hint=hint,
                    match=suggest_name(name, known),
                )
            if column not in self.column_names:
                raise InvalidOutcome(
                    ErrorCode.COLUMN_MISSING,
                    "columns maps {name} to {column}, which is not a column of the "
                    "log{hint}; its columns are {column_names}",
                    name=safe_repr(name),
                    column=safe_repr(column),
                    hint=suggest_column(column, self.column_names),
                    column_names=safe_repr(self.column_names),
                )

    def resolve(self, name: str, prefix: str = "") -> Any:
        """Return the column of a name: as mapped, else with the prefix of a server's export, else the name itself."""
        if name in self.names:
            return self.names[name]
        return f"{prefix}{name}" if prefix and f"{prefix}{name}" in self.column_names else name

    def column(self, name: str, prefix: str = "") -> npt.NDArray[Any]:
        hint = f"; if it has another name, give columns={{{name!r}: ...}}, or --columns {name}=..."
        column = self.resolve(name, prefix)
        if column not in self.column_names:
            raise InvalidOutcome(
                ErrorCode.COLUMN_MISSING,
                "the log has no column {column}{match}; its columns are {column_names}{hint}",
                column=safe_repr(column),
                match=suggest_column(column, self.column_names),
                column_names=safe_repr(self.column_names),
                hint=hint,
            )
        return get_column(self.columns, column, "the log", hint=hint)

    def texts(self, name: str, prefix: str = "") -> Texts:
        """Return a column of names (n,); None: missing."""
        entries = self.column(name, prefix).tolist()
        return to_texts(entries, f"the column {safe_repr(self.resolve(name, prefix))}")

    def context_numbers(self, name: str, column: NumericColumn) -> Floats:
        """Return a declared column of numbers (n,), with what counts for missing values, clipped where declared."""
        is_date = isinstance(column, Date)
        numbers = (
            column.read_unchecked(self.column(name, "context."), name) if is_date else self.numbers(name, "context.")
        )
        if column.replacement is not None:
            numbers = np.where(np.isnan(numbers), column.replacement, numbers)
        return np.clip(numbers, *column.ends) if column.clip else numbers

    def labels(self, name: str, category: Category | None) -> Texts:
        """Return a column of segments, or of a category's levels (n,); None: missing."""
        texts = self.texts(name, "context.")
        return texts if category is None else to_objects([category.relabel(text) for text in texts.tolist()])

    def optional_numbers(self, name: str) -> Floats | None:
        """Return an optional column of numbers (n,); None if the log lacks it."""
        return self.numbers(name) if self.resolve(name) in self.column_names else None

    def numbers(self, name: str, prefix: str = "") -> Floats:
        """Return a column of numbers (n,); NaN: missing."""
        column = self.column(name, prefix)
        if column.dtype.kind == "O":
            column = parse_object_numbers(column, f"the column {safe_repr(self.resolve(name, prefix))}", InvalidOutcome)
        if column.dtype.kind not in "bfiu":
            first = f", such as {safe_repr(column.tolist()[0])}" if column.size else ""
            template = "the column {resolve} holds no numbers{first}"
            data = {"resolve": safe_repr(self.resolve(name, prefix)), "first": first}
            raise InvalidOutcome(ErrorCode.COLUMN_WRONG_TYPE, template, **data)
        return np.asarray(column, dtype=np.float64)

    def find_time_column(self) -> Any:
        """Return the only column of times; None if there is none, or more than one."""
        found = [name for name in self.column_names if holds_times(get_column(self.columns, name, "the log"))]
        return found[0] if len(found) == 1 else None

    def times(self) -> Floats | None:
        """Return the times (n,) in seconds since 1970; None without such a column."""
        name = self.names.get("at", next((name for name in TIME_COLUMNS if name in self.column_names), None))
        name = self.find_time_column() if name is None else name
        if name is None:
            return None
        column = get_column(self.columns, name, "the log")
        if column.dtype.kind in "bfiu":
            infinite = np.flatnonzero(np.isinf(column))
            return np.asarray(column, dtype=np.float64) if not infinite.size else reject_time(column[infinite[0]], name)
        if column.dtype.kind == "M":
            seconds = column.astype("datetime64[us]").astype(np.int64) / 1e6
            return np.asarray(np.where(np.isnat(column), np.nan, seconds))
        return np.array([to_seconds(value, name) for value in column.tolist()])


def resolve_problem(value: Any) -> Problem:
    """Return a problem, given as itself, as a mapping or as a file."""
    if isinstance(value, Problem):
        return value
    if isinstance(value, str | Path):
        return Problem.load(value)
    if isinstance(value, Mapping):
        return Problem.from_dict(check_mapping(value, "the problem"))
    template = "the problem is {value}; it must be a Problem or a file such as 'problem.toml'"
    raise InvalidProblem(ErrorCode.WRONG_TYPE, template, value=safe_repr(value))


def stack_columns(columns: list[Floats], rows: int) -> Floats:
    """Return columns as an array (n, k), also without columns."""
    return np.column_stack(columns) if columns else np.empty((rows, 0))


def to_texts(entries: list[Any], what: str = "a column of the log") -> Texts:
    """Return entries as names (n,)."""
    list_unique_names(entries, what, InvalidOutcome)
    texts = np.empty(len(entries), dtype=object)
    texts[:] = map_unique(entries, to_text)
    return texts


def to_text(value: Any) -> str | None:
    """Return a value as a name, as for a decision's segment (`check_segment_name`); None: missing."""
    if is_blank(value):
        return None
    return str(int(value)) if isinstance(value, FLOATS) and float(value).is_integer() else str(value)


def holds_times(column: npt.NDArray[Any]) -> bool:
    """Say whether a column holds times, not texts that could be parsed as times."""
    if column.dtype.kind != "O":
        return column.dtype.kind == "M"
    return isinstance(next((value for value in column.tolist() if value is not None), None), datetime)


def to_seconds(value: Any, name: Any) -> float:
    """Return a time in seconds since 1970; NaN: missing."""
    if is_missing(value):
        return float("nan")
    try:
        if isinstance(value, int | float):
            return float(value) if not math.isinf(value) else reject_time(value, name)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH).total_seconds()
    except StagewiseError:
        raise
    except Exception:  # not a time, too large a number, or an object that fails
        reject_time(value, name)


def reject_time(value: Any, name: Any) -> NoReturn:
    template = "the column {name} holds {value}, which is not a time; write 2026-03-01T12:00:00 or seconds"
    raise InvalidOutcome(ErrorCode.INVALID_TIME, template, name=safe_repr(name), value=safe_repr(value)) from None


# Rows that can be learned: rows with open windows are left out; where a window is closed, a missing outcome counts as
# its default.


def select_learnable(log: Log, as_of: Any = None) -> tuple[Log, list[Note]]:
    """Return the complete rows of a log that was read at the time `as_of`, and notes on rows left out or filled in.

    A complete row has an action of the problem, a complete context and all outcomes. A row with an open window is left
    out even if it has an outcome, because early outcomes are a biased sample.
    """
    closed, notes = select_closed_rows(log, as_of)
    filled, fill_notes = fill_missing(log if closed.all() else log.take(closed))
    complete = filled.complete_rows
    if not complete.any():
        template = (
            "none of the log's {rows} is complete; every row needs an action of the "
            "problem, every context number and every outcome"
        )
        raise InvalidOutcome(ErrorCode.LOG_EMPTY, template, rows=format_count(filled.rows, "row"))
    rows = filled if complete.all() else filled.take(complete)
    return rows, [*notes, *fill_notes, *describe_left_out(filled)]


def describe_left_out(log: Log) -> list[Note]:
    """Return notes on the incomplete rows of a log."""
    unknown = log.actions == UNKNOWN_ACTION
    incomplete = ~log.complete_rows & ~unknown
    counts = {NoteCode.ROWS_WITH_UNKNOWN_ACTION: int(unknown.sum()), NoteCode.ROWS_INCOMPLETE: int(incomplete.sum())}
    return [Note.of(code, count=count) for code, count in counts.items() if count]


def select_closed_rows(log: Log, as_of: Any = None) -> tuple[Flags, list[Note]]:
    """Return which rows (n,) had no open window at the time `as_of`, and a note on the others."""
    closed = np.asarray(~log.open_windows(as_of).any(axis=1))
    if closed.all():
        return closed, []
    name, window = max(
        log.problem.windows.items(), key=lambda one: one[1].seconds
    )  # when the longest is closed, all are
    if not closed.any():
        template = (
            "the window of {name!r}, {length_text}, was still open when the log was read, for all {rows}; give a "
            "longer log, or, if it was read later than at its last row, that time (--as-of; in Python as_of)"
        )
        data = {"rows": format_count(log.rows, "row"), "name": name, "length_text": window.duration_text}
        raise InvalidOutcome(ErrorCode.LOG_TOO_SHORT, template, **data)
    count = int(np.count_nonzero(~closed))
    return closed, [Note.of(NoteCode.ROWS_WITH_OPEN_WINDOWS, name=name, count=count, window=window.duration_text)]


def fill_missing(log: Log) -> tuple[Log, list[Note]]:
    """Return the log with defaults for outcomes that were not reported in their window, and notes on them."""
    values, notes = log.fill_closed_windows(np.zeros(log.values.shape, dtype=bool)), []
    for index, (name, signal) in enumerate(log.problem.signals.items()):
        count = int(np.count_nonzero(np.isnan(log.values[:, index]) & ~np.isnan(values[:, index])))
        if count and signal.outcome_window is not None:
            default, has_times = float(signal.outcome_window.missing), log.at is not None
            code = NoteCode.OUTCOMES_FILLED
            notes.append(Note.of(code, name=name, count=count, default=default, has_times=has_times))
    return replace(log, values=values), notes
