"""The outcomes of a log as an evaluation counts them: scaled to [0, 1], and what became of those that are missing."""

from typing import Any, NamedTuple

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


def outcomes_of(log: Log, name: str, now: Any) -> Outcomes:
    """Return the outcomes of a signal, as they were known when the log was read, at the time `now`."""
    signal: Reward | Limit = log.problem.signals[name]
    place, late, told = list(log.problem.signals).index(name), log.open(now), []
    column, window = log.counted(late)[:, place], signal.waits
    known, absent = ~np.isnan(column), np.isnan(log.values[:, place]) & ~late[:, place]
    if window is not None and late[:, place].any():
        told.append(f"{late[:, place].sum():,} rows are left out, whose window of {window.told} is still open")
    if absent.any() and window is not None and not window.drops:
        told.append(f"{absent.sum():,} outcomes that did not come count as {window.missing:g}{log.untimed}")
    elif absent.any():
        told.append(f"{absent.sum():,} rows have no outcome and are left out, as if that did not depend on it")
        told += uneven(log, absent)
    values = column[known]
    if values.size and not (values.min() >= signal.low and values.max() <= signal.high):
        wrong = values.min() if values.min() < signal.low else values.max()
        raise InvalidOutcome(
            f"the log has an outcome of {wrong:.15g} for {name!r}, outside [{signal.low:g}, {signal.high:g}], where "
            "the problem says that every outcome lies; intervals rest on that range"
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
