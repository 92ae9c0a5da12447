"""The form of each limit, chosen from one part of a log: one rate for each action, by segment, or linear."""

from dataclasses import dataclass

from stagewise.launch.doctor.chart import MISSING, Chart
from stagewise.launch.doctor.checks.model import uneven
from stagewise.launch.doctor.checks.segments import columns_of_text
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import parted
from stagewise.launch.doctor.finding import said
from stagewise.policies.problem import TAKEN

LEVEL = 0.05  # chance that anything is chosen that is not there, of all that is tried
MOST_SEGMENTS = 100


@dataclass(frozen=True)
class Form:
    """How a limit's mean is modelled, why, and among how many ways that was chosen."""

    why: str
    by: str | None = None
    linear: bool = False
    ways: int = 1


def form_of(chart: Chart, signal: int) -> Form:
    """Return the form that the rows show to be needed: numbers that move the mean first, then segments."""
    name = chart.names[signal]
    texts = {column: told for column, told in columns_of_text(chart).items() if may_divide(column, told[1])}
    limits = len(chart.names) - 1
    ways = 1 + len(texts) + bool(chart.log.problem.context)
    moved = uneven(chart, signal, name, 0.5 * LEVEL / limits) if chart.log.problem.context else []
    if moved:
        return Form(f"{moved[0].sentence.split(', where')[0]}", linear=True, ways=ways)
    rows = chart.seen(signal)
    marked = events(chart, signal)[rows]
    tried: dict[str, tuple[float, str]] = {}
    for column, (groups, names) in texts.items():
        told = parted(marked, groups[rows], chart.cells(signal)[rows], len(names))
        words = f"in {names[told.group]!r} it is {told.difference:+.2g} from what it is elsewhere"
        tried[column] = told.chance * len(texts) * limits, words
    best = min(tried, key=lambda column: tried[column][0], default=None)
    if best is not None and tried[best][0] <= 0.5 * LEVEL:
        chance, words = tried[best]
        return Form(f"rates differ by {best!r}: {words} (chance {said(chance)}, of all tried)", by=best, ways=ways)
    return Form("no number and no column of text shows rates that differ within an action", ways=ways)


def may_divide(column: str, groups: list[str]) -> bool:
    """Say whether a problem can divide users by a column: it has a name for every user, and not too many."""
    return len(groups) <= MOST_SEGMENTS and MISSING not in groups and column not in TAKEN and len(column) <= 100
