"""What several checks look at in one log: which rows are known, how they are grouped, where they stand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.signals.interval import Interval, kl_interval
from stagewise.launch.doctor.exchange import Flags, ranks
from stagewise.launch.doctor.splitting import HALF, split
from stagewise.launch.log import Log, Texts, texts_of
from stagewise.launch.mixing import hashed
from stagewise.problem.declared import Limit

INTERVAL = named(kl_interval)
MISSING = "(missing)"  # the group of rows that name none


@dataclass(frozen=True, eq=False)
class Chart:
    """A log, and what is reckoned of it once."""

    log: Log
    called: Mapping[str, str] = field(default_factory=dict)
    """Which columns hold what the problem has another name for."""

    @cached_property
    def done(self) -> Texts:
        """What was done in every row (n,), as the log has it."""
        return texts_of(self.log.arrays[self.called.get("action", "action")].tolist())

    @cached_property
    def known(self) -> Flags:
        """The rows (n,) whose action is one of the problem's."""
        return np.asarray(self.log.actions >= 0)

    @cached_property
    def safe(self) -> int:
        """The number of the safe action."""
        return list(self.log.problem.actions).index(self.log.problem.safe)

    @cached_property
    def names(self) -> list[str]:
        """The names of the signals, the reward first."""
        return list(self.log.problem.signals)

    @cached_property
    def open(self) -> Flags:
        """The outcomes (n, 1 + m) that are left out, as `evaluate` does: their window was open when the log was cut.

        Where none of them is missing, the log was cut later than its last row says, and all of them stay.
        """
        late = self.log.open()
        return np.asarray(late & (late & np.isnan(self.log.values)).any(axis=0))

    @cached_property
    def values(self) -> Floats:
        """The outcomes (n, 1 + m) as the problem counts them; NaN: not known."""
        return self.log.counted(self.open)

    def seen(self, signal: int) -> Flags:
        """Return the rows (n,) whose action is known and whose outcome lies in its range."""
        low, high = self.ends(signal)
        values = self.values[:, signal]
        return np.asarray(self.known & (values >= low) & (values <= high))  # false for NaN

    def ends(self, signal: int) -> tuple[float, float]:
        """Return between which numbers a signal is declared to lie."""
        declared = self.log.problem.signals[self.names[signal]]
        return float(declared.low), float(declared.high)

    def scaled(self, signal: int) -> Floats:
        """Return a signal (n,) scaled to [0, 1]; NaN where it is not known."""
        low, high = self.ends(signal)
        return np.asarray((self.values[:, signal] - low) / (high - low))

    @cached_property
    def ranked(self) -> list[Floats]:
        """The place (n,) of every row's numbers among all that are known, ½ where one is missing."""
        return [self._ranked(self.log.numbers[:, place]) for place in range(self.log.numbers.shape[1])]

    def _ranked(self, column: Floats) -> Floats:
        there, placed = np.isfinite(column), np.full(column.size, 0.5)
        placed[there] = ranks(column[there])
        return placed

    def swappable(self, place: int) -> list[int]:
        """Return the numbers about users that would lie in the range of one, and it in theirs."""
        ends, spans = self.log.problem.ends, self.spans
        mine = (spans[place, 0] >= ends[:, 0]) & (spans[place, 1] <= ends[:, 1])
        theirs = (spans[:, 0] >= ends[place, 0]) & (spans[:, 1] <= ends[place, 1])
        return [int(other) for other in np.flatnonzero(mine & theirs) if other != place]

    @cached_property
    def spans(self) -> Floats:
        """Between which values every number about users lies (d, 2); NaN where one is missing."""
        return np.column_stack([self.log.numbers.min(axis=0), self.log.numbers.max(axis=0)])

    @cached_property
    def when(self) -> Floats:
        """Where every row (n,) stands in time, in (0, 1); rows of no known time in the middle."""
        if self.log.at is None:
            return np.asarray((np.arange(self.log.rows) + 0.5) / self.log.rows)
        return self._ranked(self.log.at)

    @cached_property
    def divided(self) -> dict[str, tuple[Ints, list[str]]]:
        """The segment (n,) of every row by number, and the segments' names, for every division."""
        return {name: numbered(texts) for name, texts in self.log.segments.items()}

    def cells(self, signal: int) -> Ints:
        """Return in which cell (n,) of one rate a row lies: its action, and its segment where rates are kept by one."""
        by = self.log.problem.choices[self.names[signal]].by
        actions = np.maximum(self.log.actions, 0)
        if by is None:
            return np.asarray(actions)
        groups, names = self.divided[by]
        return np.asarray(actions * len(names) + groups)

    @cached_property
    def half(self) -> Flags:
        """Half of the rows (n,), by a hash of their numbers: what is fitted there is tested on the others."""
        return hashed(self.log.rows) < 0.5

    @cached_property
    def proposed_from(self) -> "Chart":
        """The rows that a proposal would be chosen from, where nothing else is said."""
        return Chart(self.log.taken(split(self.log.rows, self.log.at, HALF).chosen_from), self.called)

    def rate(self, signal: int, rows: Flags, chance: float) -> tuple[int, float, Interval]:
        """Return how many outcomes some rows have, their mean, and where their true mean lies but for some chance.

        The interval is OPB's "kl": it holds for any outcomes between the declared ends, for all numbers of rows at
        once, and so whoever chose the actions.
        """
        low, high = self.ends(signal)
        values = self.scaled(signal)[rows & self.seen(signal)]
        if not values.size:
            return 0, float("nan"), Interval(low, high)
        mean = float(values.mean())
        scaled = INTERVAL(float(values.size), mean, float(np.log(1.0 / chance)))
        return values.size, low + mean * (high - low), Interval(*(low + end * (high - low) for end in scaled))


def numbered(texts: Texts) -> tuple[Ints, list[str]]:
    """Return texts as numbers (n,), and the names that these are of; what is missing is a group of its own."""
    entries = texts.tolist()
    places = {name: place for place, name in enumerate(dict.fromkeys(entries))}
    groups = [MISSING if name is None else name for name in places]
    return np.array([places[name] for name in entries], dtype=np.int64), groups


def threshold_of(limit: Limit) -> tuple[float, bool]:
    """Return a limit's number in its own units, and whether it is one from below.

    >>> from stagewise.problem.thresholds import AtLeast, RelativeToSafe
    >>> threshold_of(Limit(AtLeast(0.9))), threshold_of(Limit(RelativeToSafe(1.5), safe=0.01))
    ((0.9, True), (0.015, False))
    """
    below, relative, value = limit.parts
    return float(value * (limit.safe or 0.0) if relative else value), below
