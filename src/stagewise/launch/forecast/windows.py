"""What windows make of a log: rows whose windows are still open say nothing yet, and what did not come counts."""

from dataclasses import replace
from typing import Any

import numpy as np

from stagewise.kernels.compile import Flags
from stagewise.launch.log import Log
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import several


def closed(log: Log, now: Any = None) -> tuple[Flags, list[str]]:
    """Return which rows (n,) were answered when the log was read, and what is to be said of the others.

    `now` is when that was, in seconds since 1970 or a datetime; None: at the log's last row. What came early in an open
    window is no sample of what will have come: of rare costs nearly all would be missing, and count as none.
    """
    waits = {name: signal.waits for name, signal in log.problem.signals.items() if signal.waits is not None}
    end = log.end(now)
    if not waits or end is None or log.at is None or np.isnan(log.at).all():
        return np.ones(log.rows, dtype=bool), []
    name, window = max(waits.items(), key=lambda each: each[1].seconds)  # whoever is through this one is through all
    known = np.asarray(log.at + window.seconds <= end)
    if not known.any():
        raise InvalidOutcome(
            f"of all {several(log.rows, 'row')} the window of {name!r}, {window.told}, is still open at the end of the "
            "log, so nothing is known of it yet; take a longer log, or say when it was read: now=..."
        )
    left = int(np.count_nonzero(~known))
    return known, [f"{name}: {left:,} rows are left out, whose window of {window.told} is still open"] if left else []


def filled(log: Log) -> tuple[Log, list[str]]:
    """Return the log with what a signal's window stands for in the place of outcomes that were not reported."""
    values, notes = log.values.copy(), []
    for place, (name, signal) in enumerate(log.problem.signals.items()):
        missing, window = np.isnan(values[:, place]), signal.waits
        if window is None or window.drops or not missing.any():
            continue
        values[missing, place] = float(window.missing)
        as_if = "" if log.at is not None else ", as if all windows had closed: the log has no times"
        count = int(missing.sum())
        notes.append(f"{count:,} outcomes of {name!r} were not reported and count as {window.missing:g}{as_if}")
    return replace(log, values=values), notes
