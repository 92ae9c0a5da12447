"""Select the rows of a log that can be learned, with notes on the others.

Rows with open windows are left out; where a window is closed, a missing outcome counts as its default.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from stagewise.engine.compile import Flags
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log
from stagewise.launch.notes import Note, NoteCode
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import format_count


def select_learnable(log: Log, now: Any = None) -> tuple[Log, list[Note]]:
    """Return the complete rows of a log that was read at the time `now`, and notes on rows left out or filled in.

    A complete row has an action of the problem, a complete context and all outcomes. A row with an open window is left
    out even if it has an outcome, because early outcomes are a biased sample.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe=0.0, window="1d")},
    ... )
    >>> rows = {"action": ["offer"] * 3, "click": [1, 0, 1], "opt_out": [None, 0, 0], "at": [0.0, 50000.0, 100000.0]}
    >>> log, notes = select_learnable(Log.of(rows, problem))
    >>> log.values.tolist(), str(notes[0].code)
    ([[1.0, 0.0]], 'rows_with_open_windows')
    """
    closed, notes = select_closed_rows(log, now)
    filled, fill_notes = fill_missing(log if closed.all() else log.take(closed))
    complete = filled.complete_rows
    if not complete.any():
        raise InvalidOutcome(
            ErrorCode.LOG_EMPTY,
            "none of the log's {rows} is complete; every row needs an action of the problem, every "
            "context number and every outcome",
            rows=format_count(filled.rows, "row"),
        )
    rows = filled if complete.all() else filled.take(complete)
    return rows, [*notes, *fill_notes, *describe_left_out(filled)]


def describe_left_out(log: Log) -> list[Note]:
    """Return notes on the incomplete rows of a log."""
    unknown = log.actions == UNKNOWN_ACTION
    incomplete = ~log.complete_rows & ~unknown
    counts = {NoteCode.ROWS_WITH_UNKNOWN_ACTION: int(unknown.sum()), NoteCode.ROWS_INCOMPLETE: int(incomplete.sum())}
    return [Note.of(code, count=count) for code, count in counts.items() if count]


def select_closed_rows(log: Log, now: Any = None) -> tuple[Flags, list[Note]]:
    """Return which rows (n,) had no open window at the time `now`, and a note on the others."""
    closed = np.asarray(~log.open_windows(now).any(axis=1))
    if closed.all():
        return closed, []
    windows = {name: signal.waits for name, signal in log.problem.signals.items() if signal.waits is not None}
    name, window = max(windows.items(), key=lambda one: one[1].seconds)  # when the longest is closed, all are
    if not closed.any():
        raise InvalidOutcome(
            ErrorCode.LOG_TOO_SHORT,
            "the window of {name!r}, {length_text}, is still open at the end of the log for all "
            "{rows}; give a longer log, or the time of its export as now=...",
            rows=format_count(log.rows, "row"),
            name=name,
            length_text=window.duration_text,
        )
    count = int(np.count_nonzero(~closed))
    return closed, [Note.of(NoteCode.ROWS_WITH_OPEN_WINDOWS, name=name, count=count, window=window.duration_text)]


def fill_missing(log: Log) -> tuple[Log, list[Note]]:
    """Return the log with defaults for outcomes that were not reported in their window, and notes on them."""
    values, notes = log.fill_closed_windows(np.zeros(log.values.shape, dtype=bool)), []
    for index, (name, signal) in enumerate(log.problem.signals.items()):
        count = int(np.count_nonzero(np.isnan(log.values[:, index]) & ~np.isnan(values[:, index])))
        if count and signal.waits is not None:
            default, has_times = float(signal.waits.missing), log.at is not None
            code = NoteCode.OUTCOMES_FILLED
            notes.append(Note.of(code, name=name, count=count, default=default, has_times=has_times))
    return replace(log, values=values), notes
