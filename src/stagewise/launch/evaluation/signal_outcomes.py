"""The outcomes of a log for an evaluation: scaled to [0, 1], with notes on missing ones."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import Log
from stagewise.launch.notes import Note, NoteCode
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.signals import Limit, Reward

MAX_DEVIATIONS = 4.0  # a difference above so many standard deviations is noted


class SignalOutcomes(NamedTuple):
    """One signal of a log."""

    known: npt.NDArray[np.bool_]
    """Which rows (n,) count."""
    values: Floats
    """Their outcomes (k,), scaled so that the declared range is [0, 1]."""
    notes: tuple[Note, ...]
    """What was left out or filled in."""


def get_outcomes(log: Log, name: str, now: Any) -> SignalOutcomes:
    """Return the outcomes of a signal as known at the time `now`, when the log was read."""
    signal: Reward | Limit = log.problem.signals[name]
    index, is_open, notes = list(log.problem.signals).index(name), log.open_windows(now), list[Note]()
    column, window = log.fill_closed_windows(is_open)[:, index], signal.waits
    open_rows = is_open[:, index]
    known, absent = ~np.isnan(column), np.isnan(log.values[:, index]) & ~open_rows
    if window is not None and open_rows.any():
        count = int(open_rows.sum())
        notes.append(Note.of(NoteCode.ROWS_WITH_OPEN_WINDOWS, name=name, count=count, window=window.duration_text))
    count = int(absent.sum())
    if count and window is not None and not window.drops:
        default, has_times = float(window.missing), log.at is not None
        notes.append(Note.of(NoteCode.OUTCOMES_FILLED, name=name, count=count, default=default, has_times=has_times))
    elif count:
        notes.append(Note.of(NoteCode.OUTCOMES_MISSING, name=name, count=count))
        notes += find_uneven_missing(log, name, absent)
    values = column[known]
    if values.size and not (values.min() >= signal.low and values.max() <= signal.high):
        wrong = values.min() if values.min() < signal.low else values.max()
        raise InvalidOutcome(
            ErrorCode.OUTCOME_OUT_OF_RANGE,
            "the log has an outcome of {wrong:.15g} for {name!r}, outside the declared range "
            "[{low:g}, {high:g}]; confidence intervals rely on that range",
            wrong=wrong,
            name=name,
            low=signal.low,
            high=signal.high,
        )
    scaled = (values - signal.low) / (signal.high - signal.low)
    return SignalOutcomes(known, scaled, tuple(notes))


def find_uneven_missing(log: Log, name: str, absent: npt.NDArray[np.bool_]) -> list[Note]:
    """Return a note if outcomes are missing more often after one action than overall."""
    overall = float(absent.mean())
    for index, action in enumerate(log.problem.actions):
        rows = absent[log.actions == index]
        if not rows.size:
            continue
        deviation = np.sqrt(overall * (1.0 - overall) / rows.size)
        share = float(rows.mean())
        if abs(share - overall) > MAX_DEVIATIONS * deviation:
            code = NoteCode.OUTCOMES_MISSING_UNEVENLY
            return [Note.of(code, name=name, action=action, share=share, overall=overall)]
    return []
