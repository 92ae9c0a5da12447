"""What windows make of a log: rows whose windows are still open say nothing yet, and what did not come counts."""

from dataclasses import replace
from typing import Any

import numpy as np

from stagewise.kernels.compile import Flags
from stagewise.launch.log import Log
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import several


def closed(log: Log, now: Any = None) -> tuple[Flags, list[str]]:
    """Return which rows (n,) were answered when the log was read, at the time `now`, and what to say of the others."""
    known = np.asarray(~log.open(now).any(axis=1))
    if known.all():
        return known, []
    waits = {name: signal.waits for name, signal in log.problem.signals.items() if signal.waits is not None}
    name, window = max(waits.items(), key=lambda each: each[1].seconds)  # whoever is through this one is through all
    if not known.any():
        raise InvalidOutcome(
            f"of all {several(log.rows, 'row')} the window of {name!r}, {window.told}, is still open at the end of the "
            "log, so nothing is known of it yet; take a longer log, or say when it was read: now=..."
        )
    left = int(np.count_nonzero(~known))
    return known, [f"{name}: {left:,} rows are left out, whose window of {window.told} is still open"]


def filled(log: Log) -> tuple[Log, list[str]]:
    """Return the log with what a signal's window stands for in the place of outcomes that were not reported."""
    values, notes = log.counted(np.zeros(log.values.shape, dtype=bool)), []
    for place, (name, signal) in enumerate(log.problem.signals.items()):
        count = np.count_nonzero(np.isnan(log.values[:, place]) & ~np.isnan(values[:, place]))
        if count and signal.waits is not None:
            counts = f"count as {signal.waits.missing:g}{log.untimed}"
            notes.append(f"{count:,} outcomes of {name!r} were not reported and {counts}")
    return replace(log, values=values), notes
