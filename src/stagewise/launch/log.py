"""A log as a problem reads it: what was done for whom, how likely that was, and what came of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from stagewise.files.tables import table_at
from stagewise.kernels.compile import Flags, Floats, Ints
from stagewise.policies.problem import Problem
from stagewise.problem.checks import mapping_of, number
from stagewise.problem.columns import NOTHINGS, each_of, listed_names, named_column, near, occurring, plain_numbers
from stagewise.problem.errors import InvalidFile, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.naming import FLOATS
from stagewise.problem.window import moment
from stagewise.problem.words import nearest, shown

Texts = npt.NDArray[np.object_]
NOTHING = -1  # the number of an action that the problem does not have
TIMES = ("at", "time", "timestamp", "date", "day")  # what the column of times may be called
TOLD = ("action", "propensity", "at")  # what a log tells beside the names of a problem
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Log:
    """The rows of a log by the names of a problem, in the problem's own units, as they stand: nothing is judged yet.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe=0.0)},
    ... )
    >>> log = Log.of({"action": ["offer", "nothing"], "click": [1, 0], "opt_out": [0, None]}, problem)
    >>> log.actions.tolist(), log.values.tolist(), log.propensities
    ([1, 0], [[1.0, 0.0], [0.0, nan]], None)
    """

    problem: Problem
    actions: Ints
    """The number (n,) of what was done, −1 where it is no action of the problem."""
    numbers: Floats
    """The numbers (n, d) about the users, in their own units; NaN: missing."""
    segments: dict[str, Texts]
    """The segment (n,) of the users by division, as text; None: missing."""
    values: Floats
    """The reward and the costs (n, 1 + m), in their own units; NaN: not known."""
    probabilities: Floats | None
    """How likely every action (n, K) was, where the log says."""
    propensities: Floats | None
    """How likely what was done (n,) was, where the log says."""
    at: Floats | None
    """When (n,), in seconds since 1970, where the log says."""
    columns: Mapping[Any, Any]
    """All columns, also those that the problem does not name."""

    @classmethod
    def of(cls, source: Any, problem: Problem, *, names: Mapping[str, str] | None = None) -> Self:
        """Return a log, of a file or a frame; `names` leads from names of the problem, "action", "propensity" or "at"
        to the columns that hold them, where they are called otherwise.
        """
        columns = table_at(source)
        find = Finder(columns, {} if names is None else mapping_of(names, "names", InvalidOutcome))
        odds = [f"probability.{name}" for name in problem.actions]
        find.refuse_unknown([*TOLD, *problem.signals, *problem.context, *problem.divisions, *odds])
        done = find.texts("action")
        if not len(done):
            raise InvalidOutcome("the log has no rows; there is nothing to learn from it")
        places = {name: place for place, name in enumerate(problem.actions)}
        known = [column for name in odds if (column := find.perhaps(name)) is not None]
        return cls(
            problem=problem,
            actions=np.array([places.get(name, NOTHING) for name in done], dtype=np.int64),
            numbers=stacked([find.numbers(name, "context.") for name in problem.context], len(done)),
            segments={name: find.texts(name, "context.") for name in problem.divisions},
            values=stacked([find.numbers(name, "signal.") for name in problem.signals], len(done)),
            probabilities=np.column_stack(known) if len(known) == len(problem.actions) else None,
            propensities=find.perhaps("propensity"),
            at=find.times(),
            columns=columns,
        )

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.actions)

    @cached_property
    def whole(self) -> Flags:
        """Which rows (n,) have everything that learning needs."""
        return np.asarray((self.actions != NOTHING) & self.placed & ~np.isnan(self.values).any(axis=1))

    @cached_property
    def placed(self) -> Flags:
        """Which rows (n,) have a whole context: all numbers about the user, and all segments."""
        told = ~np.isnan(self.numbers).any(axis=1)
        for texts in self.segments.values():
            told &= np.array([text is not None for text in texts], dtype=bool)
        return np.asarray(told)

    @cached_property
    def order(self) -> Ints:
        """The rows in the order of time; as they stand where there is none."""
        return np.arange(self.rows) if self.at is None else np.argsort(self.at, kind="stable")

    def end(self, now: Any = None) -> float | None:
        """Return when the log was read, in seconds since 1970: as said, else at its last row; None: it has no times."""
        if now is not None:
            return moment(now)
        return None if self.at is None or np.isnan(self.at).all() else float(np.nanmax(self.at))

    def open(self, now: Any = None) -> Flags:
        """Return which outcomes (n, 1 + m) could still come when the log was read: their windows were open.

        What has come of them by then is no sample of what will have come: of rare costs nearly all would be missing,
        and count as none. `now` is as for `end`; in a log without times no window is open.
        """
        told, end = np.zeros(self.values.shape, dtype=bool), self.end(now)
        if self.at is not None and end is not None and not np.isnan(self.at).all():
            for place, signal in enumerate(self.problem.signals.values()):
                if signal.waits is not None:
                    told[:, place] = ~(self.at + signal.waits.seconds <= end)
        return told

    def counted(self, left_out: Flags) -> Floats:
        """Return the outcomes (n, 1 + m) as the problem counts them: with what a closed window stands for.

        NaN: not known, or among those that are left out.
        """
        told = self.values.copy()
        for place, signal in enumerate(self.problem.signals.values()):
            if signal.waits is not None and not signal.waits.drops:
                told[np.isnan(told[:, place]), place] = float(signal.waits.missing)
        return np.where(left_out, np.nan, told)

    @property
    def untimed(self) -> str:
        """What is to be said where outcomes that did not come count as declared, and nobody knows if they still may."""
        return "" if self.at is not None else ", as if all windows had closed: the log has no times"

    def taken(self, rows: Any) -> Self:
        """Return a log of some of the rows, by number or by a mask."""
        some = np.arange(self.rows)[rows]
        return replace(
            self,
            actions=self.actions[some],
            numbers=self.numbers[some],
            segments={name: texts[some] for name, texts in self.segments.items()},
            values=self.values[some],
            probabilities=None if self.probabilities is None else self.probabilities[some],
            propensities=None if self.propensities is None else self.propensities[some],
            at=None if self.at is None else self.at[some],
            columns={name: array[some] for name, array in self.arrays.items()},
        )

    @cached_property
    def arrays(self) -> dict[Any, npt.NDArray[Any]]:
        """All columns as arrays."""
        return {name: named_column(self.columns, name, "the log") for name in listed_names(self.columns, InvalidFile)}

    def shares(self, given: Mapping[Any, Any], what: str, error: type[StagewiseError]) -> Floats:
        """Return shares (K,) that were given by action; an action that is not named has none."""
        told, names = mapping_of(given, what, error), self.problem.actions
        unknown = next((name for name in told if name not in names), None)
        if unknown is not None:
            raise error(f"{what} names {shown(unknown)}, which is no action{nearest(unknown, names)}")
        return np.array([number(told.get(name, 0.0), f"{what} for {name!r}", error) for name in names])

    def frame(self) -> dict[str, Any]:
        """Return the columns by the problem's own names, as `agent.learn_frame` takes them."""
        named = [None if place == NOTHING else self.problem.actions[place] for place in self.actions]
        told: dict[str, Any] = {"action": np.array(named, dtype=object)}
        told |= {name: self.numbers[:, i] for i, name in enumerate(self.problem.context)}
        told |= self.segments
        return told | {name: self.values[:, i] for i, name in enumerate(self.problem.signals)}


class Finder:
    """Finds the columns of a log by the names that a problem has for them."""

    def __init__(self, columns: Mapping[Any, Any], names: Mapping[str, Any]) -> None:
        self.columns, self.names = columns, names
        self.column_names = listed_names(columns, InvalidOutcome)

    def refuse_unknown(self, known: Sequence[str], hint: str = "") -> None:
        """Refuse names that nothing is called, and columns that the log does not have: else they would be ignored."""
        for name, column in self.names.items():
            if name not in known:
                raise InvalidOutcome(
                    f"names has {shown(name)}, which nothing is called here; it may name "
                    f"{shown(list(known))}{hint}{nearest(name, known)}"
                )
            if column not in self.column_names:
                raise InvalidOutcome(
                    f"names says that {shown(name)} is in {shown(column)}, which is no column of the log"
                    f"{near(column, self.column_names)}; its columns are {shown(self.column_names)}"
                )

    def place(self, name: str, prefix: str = "") -> Any:
        """Return the column of a name: as said, else with the prefix that a desk's export gives it, else its own."""
        if name in self.names:
            return self.names[name]
        return f"{prefix}{name}" if prefix and f"{prefix}{name}" in self.column_names else name

    def column(self, name: str, prefix: str = "") -> npt.NDArray[Any]:
        """Return a column that must be there."""
        hint = f"; where it has another name, give names={{{name!r}: ...}}, or --names {name}=..."
        place = self.place(name, prefix)
        if place not in self.column_names:
            raise InvalidOutcome(
                f"the log has no column {shown(place)}{near(place, self.column_names)}; its columns are "
                f"{shown(self.column_names)}{hint}"
            )
        return named_column(self.columns, place, "the log", hint=hint)

    def texts(self, name: str, prefix: str = "") -> Texts:
        """Return a column of names (n,); None where there is none."""
        entries = self.column(name, prefix).tolist()
        return texts_of(entries, f"the column {shown(self.place(name, prefix))}")

    def perhaps(self, name: str) -> Floats | None:
        """Return a column of numbers (n,) that may be absent; None: it is."""
        return self.numbers(name) if self.place(name) in self.column_names else None

    def numbers(self, name: str, prefix: str = "") -> Floats:
        """Return a column of numbers (n,), NaN where there is none."""
        column = self.column(name, prefix)
        if column.dtype.kind == "O":
            column = plain_numbers(column, f"the column {shown(self.place(name, prefix))}", InvalidOutcome)
        if column.dtype.kind not in "bfiu":
            first = f", such as {shown(column.tolist()[0])}" if column.size else ""
            raise InvalidOutcome(f"the column {shown(self.place(name, prefix))} holds no numbers{first}")
        return np.asarray(column, dtype=np.float64)

    def only_times(self) -> Any:
        """Return the column that holds times, whatever it is called; None where there is none, or more than one."""
        found = [name for name in self.column_names if holds_times(named_column(self.columns, name, "the log"))]
        return found[0] if len(found) == 1 else None

    def times(self) -> Floats | None:
        """Return when (n,) in seconds since 1970; None where no column says."""
        name = self.names.get("at", next((name for name in TIMES if name in self.column_names), None))
        name = self.only_times() if name is None else name
        if name is None:
            return None
        column = named_column(self.columns, name, "the log")
        if column.dtype.kind in "bfiu":
            endless = np.flatnonzero(np.isinf(column))
            return np.asarray(column, dtype=np.float64) if not endless.size else no_time(column[endless[0]], name)
        if column.dtype.kind == "M":
            seconds = column.astype("datetime64[us]").astype(np.int64) / 1e6
            return np.asarray(np.where(np.isnat(column), np.nan, seconds))
        return np.array([seconds_of(value, name) for value in column.tolist()])


def problem_of(value: Any) -> Problem:
    """Return a problem that was given, as itself, as plain values or as a file."""
    if isinstance(value, Problem):
        return value
    if isinstance(value, str | Path):
        return Problem.load(value)
    if isinstance(value, Mapping):
        return Problem.from_plain(mapping_of(value, "the problem"))
    raise InvalidProblem(f"the problem is {shown(value)}; it must be a Problem or a file such as 'problem.toml'")


def stacked(columns: list[Floats], rows: int) -> Floats:
    """Return columns beside one another (n, k), also where there is none."""
    return np.column_stack(columns) if columns else np.empty((rows, 0))


def texts_of(entries: list[Any], at: str = "a column of the log") -> Texts:
    """Return entries as names (n,)."""
    occurring(entries, at, InvalidOutcome)
    texts = np.empty(len(entries), dtype=object)
    texts[:] = each_of(entries, text_of)
    return texts


def text_of(value: Any) -> str | None:
    """Return a value as a name, the same as a decision's segment has (`segment_name`); None where there is none.

    >>> [text_of(value) for value in (1, 1.0, True, "1", "")]
    ['1', '1', 'True', '1', None]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value or value == "":
        return None
    return str(int(value)) if isinstance(value, FLOATS) and float(value).is_integer() else str(value)


def holds_times(column: npt.NDArray[Any]) -> bool:
    """Say whether a column holds times as such, and no texts that may be read as times."""
    if column.dtype.kind != "O":
        return column.dtype.kind == "M"
    return isinstance(next((value for value in column.tolist() if value is not None), None), datetime)


def seconds_of(value: Any, name: Any) -> float:
    """Return a time in seconds since 1970, NaN where there is none."""
    if type(value).__name__ in NOTHINGS:
        return float("nan")
    try:
        if isinstance(value, int | float):
            return float(value) if not math.isinf(value) else no_time(value, name)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH).total_seconds()
    except StagewiseError:
        raise
    except Exception:  # no text of a time, too large a number, or an object that fails
        no_time(value, name)


def no_time(value: Any, name: Any) -> NoReturn:
    """Refuse what is no time."""
    raise InvalidOutcome(
        f"the column {shown(name)} holds {shown(value)}, which is no time; write 2026-03-01T12:00:00, or seconds"
    ) from None
