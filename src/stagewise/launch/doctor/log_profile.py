"""Values that several checks share: known rows, groups, ranks and rates of one log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.launch.decision_log import Log, Texts, to_texts
from stagewise.launch.doctor.holdout_split import DEFAULT_FRACTION, split_rows
from stagewise.launch.doctor.permutation_tests import Flags, compute_ranks
from stagewise.launch.splitmix import uniform_hash
from stagewise.models.intervals import Interval, compute_kl_interval
from stagewise.problem.signals import Limit

KL_INTERVAL = as_python(compute_kl_interval)
MISSING_GROUP = "(missing)"  # the group of rows without one


@dataclass(frozen=True, eq=False)
class LogProfile:
    """A log, with values that are computed once."""

    log: Log
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column mapping."""

    @cached_property
    def action_texts(self) -> Texts:
        """The logged action of every row (n,) as text."""
        return to_texts(self.log.arrays[self.columns.get("action", "action")].tolist())

    @cached_property
    def known(self) -> Flags:
        """The rows (n,) whose action is in the problem."""
        return np.asarray(self.log.actions >= 0)

    @cached_property
    def safe(self) -> int:
        """The index of the safe action."""
        return list(self.log.problem.actions).index(self.log.problem.safe)

    @cached_property
    def names(self) -> list[str]:
        """The names of the signals, the reward first."""
        return list(self.log.problem.signals)

    @cached_property
    def open_windows(self) -> Flags:
        """The outcomes (n, 1 + m) whose window was open at the end of the log; `evaluate` leaves them out too.

        If none of a signal is missing, the log ended later than its last row, and all outcomes stay.
        """
        late = self.log.open_windows()
        return np.asarray(late & (late & np.isnan(self.log.values)).any(axis=0))

    @cached_property
    def values(self) -> Floats:
        """The outcomes (n, 1 + m), with defaults for closed windows; NaN: unknown."""
        return self.log.fill_closed_windows(self.open_windows)

    def observed(self, signal: int) -> Flags:
        """Return the rows (n,) with a known action and an outcome in its range."""
        low, high = self.ends(signal)
        values = self.values[:, signal]
        return np.asarray(self.known & (values >= low) & (values <= high))  # false for NaN

    def ends(self, signal: int) -> tuple[float, float]:
        """Return the declared range of a signal."""
        declared = self.log.problem.signals[self.names[signal]]
        return float(declared.low), float(declared.high)

    def scaled(self, signal: int) -> Floats:
        """Return a signal (n,) scaled to [0, 1]; NaN: unknown."""
        low, high = self.ends(signal)
        return np.asarray((self.values[:, signal] - low) / (high - low))

    @cached_property
    def ranks(self) -> list[Floats]:
        """The ranks (n,) of every number about users; ½ if it is missing."""
        return [self._rank(self.log.numbers[:, index]) for index in range(self.log.numbers.shape[1])]

    def _rank(self, column: Floats) -> Floats:
        known, ranks = np.isfinite(column), np.full(column.size, 0.5)
        ranks[known] = compute_ranks(column[known])
        return ranks

    def find_swappable(self, index: int) -> list[int]:
        """Return the numbers about users that are in the range of one, while it is in theirs."""
        ends, spans = self.log.problem.ends, self.observed_ranges
        fits_theirs = (spans[index, 0] >= ends[:, 0]) & (spans[index, 1] <= ends[:, 1])
        fits_mine = (spans[:, 0] >= ends[index, 0]) & (spans[:, 1] <= ends[index, 1])
        return [int(other) for other in np.flatnonzero(fits_theirs & fits_mine) if other != index]

    @cached_property
    def observed_ranges(self) -> Floats:
        """The observed range (d, 2) of every number about users; NaN if a value is missing."""
        return np.column_stack([self.log.numbers.min(axis=0), self.log.numbers.max(axis=0)])

    @cached_property
    def time_ranks(self) -> Floats:
        """The rank (n,) of every row in time, in (0, 1); ½ if its time is unknown."""
        if self.log.at is None:
            return np.asarray((np.arange(self.log.rows) + 0.5) / self.log.rows)
        return self._rank(self.log.at)

    @cached_property
    def segment_codes(self) -> dict[str, tuple[Ints, list[str]]]:
        """The segment codes (n,) and names of every division."""
        return {name: encode_groups(texts) for name, texts in self.log.segments.items()}

    def cells(self, signal: int) -> Ints:
        """Return the cell (n,) of one rate of every row: its action, and its segment if rates are by segment."""
        by = self.log.problem.choices[self.names[signal]].by
        actions = np.maximum(self.log.actions, 0)
        if by is None:
            return np.asarray(actions)
        groups, names = self.segment_codes[by]
        return np.asarray(actions * len(names) + groups)

    @cached_property
    def half(self) -> Flags:
        """Half of the rows (n,), by a hash of their indices, to fit; the others are to test."""
        return uniform_hash(self.log.rows) < 0.5

    @cached_property
    def selection_half(self) -> "LogProfile":
        """The rows that a proposal would be chosen from by default."""
        return LogProfile(
            self.log.take(split_rows(self.log.rows, self.log.at, DEFAULT_FRACTION).selection), self.columns
        )

    def rate(self, signal: int, rows: Flags, p_value: float) -> tuple[int, float, Interval]:
        """Return the number of outcomes of some rows, their mean, and an interval with error probability p_value.

        The interval is OPB's "kl": it holds for any outcomes in the declared range and for all numbers of rows at
        once, and so for every logging policy.
        """
        low, high = self.ends(signal)
        values = self.scaled(signal)[rows & self.observed(signal)]
        if not values.size:
            return 0, float("nan"), Interval(low, high)
        mean = float(values.mean())
        scaled = KL_INTERVAL(float(values.size), mean, float(np.log(1.0 / p_value)))
        return values.size, low + mean * (high - low), Interval(*(low + end * (high - low) for end in scaled))


def encode_groups(texts: Texts) -> tuple[Ints, list[str]]:
    """Return texts as codes (n,) with their names; missing texts are one group."""
    entries = texts.tolist()
    codes = {name: index for index, name in enumerate(dict.fromkeys(entries))}
    groups = [MISSING_GROUP if name is None else name for name in codes]
    return np.array([codes[name] for name in entries], dtype=np.int64), groups


def get_threshold(limit: Limit) -> tuple[float, bool]:
    """Return a limit's threshold in its own units, and whether it is a lower limit.

    >>> from stagewise.problem.thresholds import AtLeast, RelativeToSafe
    >>> get_threshold(Limit(AtLeast(0.9))), get_threshold(Limit(RelativeToSafe(1.5), safe=0.01))
    ((0.9, True), (0.015, False))
    """
    below, relative, value = limit.parts
    return float(value * (limit.safe or 0.0) if relative else value), below
