"""The outcomes of a log as an evaluation counts them: scaled to [0, 1], and what became of those that are missing."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats
from stagewise.launch.log import Log
from stagewise.problem.declared import Limit, Reward
from stagewise.problem.errors import InvalidOutcome

STRANGE = 4.0  # standard deviations that chance does not explain


class Outcomes(NamedTuple):
    """One signal of a log."""

    known: npt.NDArray[np.bool_]
    """Which rows (n,) count."""
    values: Floats
    """Their outcomes (k,), scaled so that the declared range is [0, 1]."""
    note: str
    """What was left out or filled in; empty: nothing."""


def outcomes_of(log: Log, name: str, end: float | None) -> Outcomes:
    """Return the outcomes of a signal, as they were known at the end of the log, in seconds since 1970."""
    signal: Reward | Limit = log.problem.signals[name]
    column = log.values[:, list(log.problem.signals).index(name)].copy()
    told = []
    window = signal.waits
    known = np.ones(log.rows, dtype=bool)
    if window is not None and log.at is not None and end is not None:
        known = log.at + window.seconds <= end
        if not known.all():  # what came early in an open window is no sample of what will have come
            told.append(f"{np.count_nonzero(~known):,} rows are left out, whose window of {window.told} is still open")
    absent = known & np.isnan(column)
    if absent.any() and window is not None and not window.drops:
        column[absent] = float(window.missing)
        closed = "" if log.at is not None else ", as if all windows had closed: the log has no times"
        told.append(f"{absent.sum():,} outcomes that did not come count as {window.missing:g}{closed}")
    elif absent.any():
        known &= ~absent
        told.append(f"{absent.sum():,} rows have no outcome and are left out, as if that did not depend on it")
        told += uneven(log, absent)
    values = column[known]
    if values.size and not (values.min() >= signal.low and values.max() <= signal.high):
        wrong = values.min() if values.min() < signal.low else values.max()
        raise InvalidOutcome(
            f"the log has an outcome of {wrong:g} for {name!r}, outside [{signal.low:g}, {signal.high:g}], where the "
            "problem says that every outcome lies; intervals rest on that range"
        )
    scaled = (values - signal.low) / (signal.high - signal.low)
    return Outcomes(known, scaled, f"{name}: {'; '.join(told)}" if told else "")


def uneven(log: Log, absent: npt.NDArray[np.bool_]) -> list[str]:
    """Return a warning where outcomes are missing after some actions more than after others: then rows left out lie."""
    overall, told = float(absent.mean()), []
    for place, name in enumerate(log.problem.actions):
        mine = absent[log.actions == place]
        spread = np.sqrt(overall * (1.0 - overall) / mine.size) if mine.size else np.inf
        if abs(mine.mean() - overall) > STRANGE * spread if mine.size else False:
            told.append(f"{mine.mean():.1%} of them after {name!r} and {overall:.1%} overall, which makes this a guess")
    return told[:1]
