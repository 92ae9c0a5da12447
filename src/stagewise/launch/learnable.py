"""The rows of a log that can be learned from, as they stand in it, and what is said of the others.

Rows whose windows are still open say nothing yet; where a window is closed, what did not come counts as declared.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from stagewise.kernels.compile import Flags
from stagewise.launch.log import NOTHING, Log
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import several


def learnable(given: Log, now: Any = None) -> tuple[Log, list[str]]:
    """Return the whole rows of a log that was read at the time `now`, and notes on what was left out or filled in.

    A row is whole with an action of the problem, all that is known of a user, and all outcomes. Where a window is open
    at the end of the log its row is left out, whatever stands there: nobody knows yet what will have come.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe=0.0, window="1d")},
    ... )
    >>> told = {"action": ["offer"] * 3, "click": [1, 0, 1], "opt_out": [None, 0, 0], "at": [0.0, 50000.0, 100000.0]}
    >>> log, notes = learnable(Log.of(told, problem))
    >>> log.values.tolist(), notes[0]
    ([[1.0, 0.0]], 'opt_out: 2 rows are left out, whose window of 1d is still open')
    """
    answered, notes = closed(given, now)
    log, told = filled(given if answered.all() else given.taken(answered))
    whole = log.whole
    if not whole.any():
        raise InvalidOutcome(
            f"none of the log's {several(log.rows, 'row')} is whole: every row needs an action of the problem, all "
            "numbers about the user, and all outcomes"
        )
    return log if whole.all() else log.taken(whole), [*notes, *told, *left_out(log)]


def left_out(log: Log) -> list[str]:
    """Say which rows of a log are left out because something is missing."""
    unknown = log.actions == NOTHING
    blank = ~log.whole & ~unknown
    told = []
    if unknown.any():
        told.append(f"{several(int(unknown.sum()), 'row')} whose action is none of the problem's were left out")
    if blank.any():
        told.append(f"{several(int(blank.sum()), 'row')} with something missing were left out")
    return told


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
