"""Whether rates are shown to be alike in all groups of a column: an equivalence, which few rows cannot show."""

from typing import NamedTuple

from stagewise.kernels.compile import Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.finding import said
from stagewise.problem.declared import Limit

NEAR = 0.1  # of a limit, that the rates of one action may lie apart by and be called alike


class Bar(NamedTuple):
    """How far apart alike rates may lie, and the limit that all of them may keep anyway, where one was given."""

    margin: float
    limit: float


def bar_of(chart: Chart, signal: int, limit: Limit, given: float | None) -> Bar:
    """Return the bar for a limit: a part of it; where none was given, of what the safe action costs."""
    if given is not None:
        return Bar(NEAR * (given - limit.low), given)
    _, mean, _ = chart.rate(signal, chart.log.actions == chart.safe, 0.5)
    return Bar(NEAR * (mean - limit.low), limit.low)


def alike(chart: Chart, signal: int, groups: Ints, names: list[str], bar: Bar, chance: float) -> str:
    """Return in words that groups need not be kept apart, but for some chance; nothing where that is not shown.

    Every action's mean in every group lies in its interval, all of them together but for `chance`. Alike are the means
    of an action where its highest upper end is within the margin of its lowest lower end. A group that an action has no
    row in has the whole range for its interval. And where every upper end keeps the limit nothing can break it.
    """
    problem = chart.log.problem
    share, widest, dearest = chance / (len(names) * len(problem.actions)), 0.0, chart.ends(signal)[0]
    for action in range(len(problem.actions)):
        doing = chart.log.actions == action
        rates = [chart.rate(signal, doing & (groups == place), share)[2] for place in range(len(names))]
        highest = max(rate.high for rate in rates)
        widest, dearest = max(widest, highest - min(rate.low for rate in rates)), max(dearest, highest)
    if dearest <= bar.limit:
        return f"no action is over {said(dearest)} in any of {len(names)} groups, and so none over the limit"
    if widest <= bar.margin:
        return f"within an action alike in all {len(names)} groups, within {said(widest)} of {said(bar.margin)} allowed"
    return ""
