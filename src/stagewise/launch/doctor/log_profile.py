"""Values that several checks share: the signals of a log, with groups, ranks, rates and linear fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.decision_log import Log, Texts, to_texts
from stagewise.launch.statistics import KL_INTERVAL, compute_ranks, fit_logistic, uniform_hash
from stagewise.problem.checks import check_number
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.signals import Limit
from stagewise.problem.thresholds import parse_threshold

MISSING_GROUP = "(missing)"  # the group of rows without one
DEFAULT_FRACTION = 0.5  # share of rows that a proposal is chosen from by default
ROWS_PER_PARAMETER = 10  # of an action, before it is fitted
DECILES = 10


class Groups(NamedTuple):
    """A column of text as codes (n,), with the names of the groups; missing texts are one group."""

    codes: Ints
    names: list[str]

    @classmethod
    def of(cls, texts: Texts) -> "Groups":
        entries = texts.tolist()
        codes = {name: index for index, name in enumerate(dict.fromkeys(entries))}
        names = [MISSING_GROUP if name is None else name for name in codes]
        return cls(np.array([codes[name] for name in entries], dtype=np.int64), names)


class Rate(NamedTuple):
    """The mean of some outcomes with its interval, in the signal's own units."""

    rows: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class LogProfile:
    """A log, with values that are computed once."""

    log: Log
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column mapping."""

    @cached_property
    def signals(self) -> list["Signal"]:
        """The reward, if it is learned, and the costs."""
        reward = self.log.problem.reward
        return [*([Signal(self, 0, reward.name)] if reward.is_reported else []), *self.costs]

    def get_signal(self, index: int) -> "Signal":
        """Return the signal in a column of the values."""
        return next(signal for signal in self.signals if signal.index == index)

    @cached_property
    def costs(self) -> list["Cost"]:
        limits = self.log.problem.limits.items()
        return [Cost(self, index, name, limit) for index, (name, limit) in enumerate(limits, start=1)]

    @cached_property
    def action_texts(self) -> Texts:
        """The logged action of every row (n,) as text."""
        return to_texts(self.log.arrays[self.columns.get("action", "action")].tolist())

    @cached_property
    def known(self) -> Flags:
        """The rows (n,) whose action is in the problem."""
        return np.asarray(self.log.actions >= 0)

    @cached_property
    def cell_actions(self) -> Ints:
        """The index (n,) of every row's action; 0 if it is unknown."""
        return np.asarray(np.maximum(self.log.actions, 0))

    @cached_property
    def by_action(self) -> list[tuple[str, Flags]]:
        """The name and the rows (n,) of every action."""
        return [(name, self.log.actions == index) for index, name in enumerate(self.log.problem.action_names)]

    @cached_property
    def is_safe(self) -> Flags:
        """The rows (n,) of the safe action."""
        return np.asarray(self.log.actions == list(self.log.problem.action_names).index(self.log.problem.safe_name))

    @cached_property
    def open_windows(self) -> Flags:
        """The outcomes (n, 1 + m) whose window was open at the end of the log; `evaluate_on_log` leaves them out too.

        If none of a signal is missing, the log ended later than its last row, and all outcomes stay.
        """
        late = self.log.open_windows()
        return np.asarray(late & (late & np.isnan(self.log.values)).any(axis=0))

    @cached_property
    def values(self) -> Floats:
        """The outcomes (n, 1 + m), with defaults for closed windows; NaN: unknown."""
        return self.log.fill_closed_windows(self.open_windows)

    @cached_property
    def ranks(self) -> list[Floats]:
        """The ranks (n,) of every number about users; ½ if it is missing."""
        return [rank_known(column) for column in self.log.numbers.T]

    @cached_property
    def time_ranks(self) -> Floats:
        """The rank (n,) of every row in time, in (0, 1); ½ if its time is unknown."""
        if self.log.at is None:
            return np.asarray((np.arange(self.log.rows) + 0.5) / self.log.rows)
        return rank_known(self.log.at)

    @cached_property
    def observed_ranges(self) -> Floats:
        """The observed range (d, 2) of every number about users; NaN if a value is missing."""
        return np.column_stack([self.log.numbers.min(axis=0), self.log.numbers.max(axis=0)])

    def find_swappable(self, index: int) -> list[int]:
        """Return the numbers about users that are in the range of one, while it is in theirs."""
        ends, spans = self.log.problem.ends, self.observed_ranges
        fits_theirs = (spans[index, 0] >= ends[:, 0]) & (spans[index, 1] <= ends[:, 1])
        fits_mine = (spans[:, 0] >= ends[index, 0]) & (spans[:, 1] <= ends[index, 1])
        return [int(other) for other in np.flatnonzero(fits_theirs & fits_mine) if other != index]

    @cached_property
    def segments(self) -> dict[str, Groups]:
        """The groups of every category and every division, by its name."""
        categories, divisions = self.log.problem.categories, self.log.problem.divisions
        groups = {name: Groups.of(self.log.segments[name]) for name in categories}
        return groups | {division.name: Groups.of(self.log.get_group_names(division)) for division in divisions}

    @cached_property
    def half(self) -> Flags:
        """Half of the rows (n,), by a hash of their indices, to fit; the others are to test."""
        return uniform_hash(self.log.rows) < 0.5

    @cached_property
    def selection_half(self) -> "LogProfile":
        """The rows that a proposal would be chosen from by default."""
        split = Split.of(self.log.rows, self.log.at, DEFAULT_FRACTION)
        return LogProfile(self.log.take(split.selection), self.columns)

    @cached_property
    def design(self) -> Floats:
        """A constant, the numbers about users scaled to [−1, 1], and the features of categories (n, 1 + d)."""
        ends = np.array([ends for _, ends in self.log.problem.ranges]).reshape(-1, 2)
        scaled = (2.0 * self.log.numbers - ends.sum(axis=1)) / (ends[:, 1] - ends[:, 0])
        return np.column_stack([np.ones(self.log.rows), scaled, self.log.category_features])

    @cached_property
    def action_probabilities(self) -> Floats | None:
        """The probabilities (n, K) of all actions: as logged, or from propensities if each action has only one.

        None if they are not known.
        """
        log = self.log
        if log.probabilities is not None or log.propensities is None:
            return log.probabilities
        each = np.full(len(self.by_action), np.nan)
        for index, (_, rows) in enumerate(self.by_action):
            values = log.propensities[rows]
            if not values.size or values.min() != values.max():  # also if one is NaN
                return None
            each[index] = values[0]
        return np.tile(each, (log.rows, 1)) if abs(each.sum() - 1.0) <= 1e-3 * each.size else None


@dataclass(frozen=True, eq=False)
class Signal:
    """One signal of a log."""

    profile: LogProfile
    index: int
    name: str

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The declared range."""
        declared = self.profile.log.problem.signals[self.name]
        return float(declared.low), float(declared.high)

    @property
    def by(self) -> str | None:
        """The division of its rates."""
        return self.profile.log.problem.choices[self.name].by

    @property
    def model(self) -> str:
        """The model of its mean: "rates", "linear" or "logistic"."""
        return self.profile.log.problem.choices[self.name].model

    @property
    def is_per_user(self) -> bool:
        """Whether its mean depends on the numbers about users."""
        return self.model != "rates"

    @cached_property
    def values(self) -> Floats:
        """The outcomes (n,); NaN: unknown."""
        return self.profile.values[:, self.index]

    @cached_property
    def observed(self) -> Flags:
        """The rows (n,) with a known action and an outcome in its range."""
        low, high = self.ends
        return np.asarray(self.profile.known & (self.values >= low) & (self.values <= high))  # false for NaN

    @cached_property
    def scaled(self) -> Floats:
        """The outcomes (n,), scaled to [0, 1]; NaN: unknown."""
        low, high = self.ends
        return np.asarray((self.values - low) / (high - low))

    @cached_property
    def is_binary(self) -> bool:
        """Whether it has at most two values in this log."""
        values = self.values[self.observed]
        return values.size == 0 or bool(((values == values.min()) | (values == values.max())).all())

    @cached_property
    def event_threshold(self) -> float:
        """The threshold of an event: the lower of two outcomes, or the median."""
        values = self.values[self.observed]
        if not values.size:
            return self.ends[0]
        return float(values.min() if self.is_binary else np.median(values))

    @cached_property
    def events(self) -> Flags:
        """The rows (n,) with the higher of two outcomes, or with one above the median."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.observed & (self.values > self.event_threshold))

    @cached_property
    def cells(self) -> Ints:
        """The cell (n,) of one rate of every row: its action, and its segment if rates are by segment."""
        if self.by is None:
            return self.profile.cell_actions
        groups = self.profile.segments[self.by]
        return np.asarray(self.profile.cell_actions * len(groups.names) + groups.codes)

    def rate(self, rows: Flags, p_value: float) -> Rate:
        """Return the rate of some rows; its interval has error probability p_value.

        The interval is OPB's "kl": it holds for any outcomes in the declared range and for all numbers of rows at
        once, and so for every logging policy.
        """
        low, high = self.ends
        values = self.scaled[rows & self.observed]
        if not values.size:
            return Rate(0, float("nan"), low, high)
        mean = float(values.mean())
        scaled = KL_INTERVAL(float(values.size), mean, float(np.log(1.0 / p_value)))
        return Rate(values.size, low + mean * (high - low), *(low + end * (high - low) for end in scaled))

    def compute_change(self, before: Flags, after: Flags) -> tuple[float, float, float]:
        """Return the means of two sets of rows, and their difference relative to the smaller, above the low end."""
        first, second, low = self.rate(before, 0.5).mean, self.rate(after, 0.5).mean, self.ends[0]
        return first, second, abs(second - first) / max(min(abs(second - low), abs(first - low)), 1e-12)

    def compute_cell_rates(self, fit: Flags) -> Floats:
        """Return the rate (n,) of every row's cell among some rows, scaled to [0, 1]; NaN: none."""
        chosen = fit & self.observed
        size = int(self.cells.max(initial=-1)) + 1
        counts = np.bincount(self.cells[chosen], minlength=size)
        sums = np.bincount(self.cells[chosen], self.scaled[chosen], minlength=size)
        with np.errstate(invalid="ignore"):
            return np.asarray((sums / counts)[self.cells])

    # Regressions by action on a constant and the numbers about users, in the form of the signal's model.

    @cached_property
    def fitted_rows(self) -> Flags:
        """The rows (n,) that can be fitted: all values known and in range."""
        design, plain = np.abs(self.profile.design), 1 + len(self.profile.log.problem.numbers)
        inside = (design[:, :plain] <= 1.0 + 1e-9).all(axis=1) & np.isfinite(design).all(axis=1)  # false for NaN
        return np.asarray(self.observed & inside)

    def get_fit_rows(self, of_action: Flags, chosen: Flags | bool = True) -> Ints:
        """Return the indices of an action's rows; none if they are too few to fit."""
        indices = np.flatnonzero(self.fitted_rows & chosen & of_action)
        return indices if indices.size >= ROWS_PER_PARAMETER * self.profile.design.shape[1] else indices[:0]

    def fit(self, indices: Ints) -> Floats:
        """Return the parameter (1 + d,) of rows by least squares, or the likeliest of a logistic signal."""
        design = self.profile.design[indices]
        if self.model == "logistic":
            return fit_logistic(design, self.scaled[indices])
        return np.asarray(np.linalg.lstsq(design.T @ design, design.T @ self.scaled[indices], rcond=None)[0])

    def compute_means(self, indices: Ints, parameter: Floats) -> Floats:
        """Return the means (n,) of rows by a parameter, scaled to [0, 1]."""
        values = self.profile.design[indices] @ parameter
        return np.asarray(expit(values) if self.model == "logistic" else values)

    def predict(self, fit: Flags | bool = True, ask: Flags | bool = True) -> Floats:
        """Return the means (n,) that fits of some rows predict for others, by action; NaN: none."""
        predictions = np.full(self.profile.log.rows, np.nan)
        for _, rows in self.profile.by_action:
            fitted, predicted = self.get_fit_rows(rows, fit), self.get_fit_rows(rows, ask)
            if fitted.size and predicted.size:
                predictions[predicted] = self.compute_means(predicted, self.fit(fitted))
        return predictions


@dataclass(frozen=True, eq=False)
class Cost(Signal):
    """A cost with its limit."""

    limit: Limit

    @cached_property
    def threshold(self) -> float:
        """The limit, in its own units."""
        return get_threshold(self.limit)[0]

    @cached_property
    def at_least(self) -> bool:
        """Whether it is a lower limit."""
        return get_threshold(self.limit)[1]

    @cached_property
    def room(self) -> float:
        """The distance of the limit from the best possible mean."""
        return self.ends[1] - self.threshold if self.at_least else self.threshold - self.ends[0]

    def is_broken(self, rate: Rate) -> bool:
        """Say whether a whole interval is over the limit."""
        return rate.high < self.threshold if self.at_least else rate.low > self.threshold


def get_threshold(limit: Limit) -> tuple[float, bool]:
    """Return a limit's threshold in its own units, and whether it is a lower limit."""
    below, relative, value = parse_threshold(limit.value)
    return float(value * (limit.safe_bound or 0.0) if relative else value), below


def rank_known(column: Floats) -> Floats:
    """Return the ranks (n,) of a column in (0, 1); ½ if a value is missing."""
    known, ranks = np.isfinite(column), np.full(column.size, 0.5)
    ranks[known] = compute_ranks(column[known])
    return ranks


def assign_deciles(values: Floats) -> Ints:
    """Return the decile (n,) of every value, the lowest first."""
    cuts = np.quantile(values, np.linspace(0.0, 1.0, DECILES + 1)[1:-1])
    return np.asarray(np.searchsorted(cuts, values, side="right"))


@dataclass(frozen=True, eq=False)
class Split:
    """Selection rows, which a proposal is chosen from, the rule that chose them, and their share.

    The guarantee does not cover a problem that is chosen from the same rows that are learned: the choice depends on
    their noise. Holdout rows are as good as new ones.
    """

    selection: Flags
    rule: str
    fraction: float

    @classmethod
    def of(cls, rows: int, at: Floats | None, fraction: float) -> "Split":
        """Return a split with the earliest rows as the selection, or rows by a hash of their numbers without times."""
        if fraction == 1.0:
            return cls(np.ones(rows, dtype=bool), "all rows, without a holdout", 1.0)
        if at is None:
            rule = f"rows whose index has a hash below {fraction:g} (SplitMix64, launch/statistics.py)"
            return cls(np.asarray(uniform_hash(rows) < fraction), rule, fraction)
        first = np.zeros(rows, dtype=bool)
        first[np.argsort(at, kind="stable")[: max(round(fraction * rows), 1)]] = True
        return cls(first, f"the earliest {fraction:.0%} of the rows, by time", fraction)

    @property
    def holdout(self) -> Flags:
        """The rows to learn from; all rows if there is no split."""
        return np.ones(self.selection.size, dtype=bool) if self.fraction == 1.0 else ~self.selection

    def to_dict(self) -> dict[str, Any]:
        """Return the split as JSON values."""
        content = {"fraction": self.fraction, "rule": self.rule, "selection_rows": int(self.selection.sum())}
        return {**content, "holdout_rows": int(self.holdout.sum())}


def check_fraction(value: Any) -> float:
    """Return the share of selection rows; None: all rows."""
    if value is None:
        return 1.0
    fraction = check_number(value, "proposal_fraction", InvalidOutcome)
    if not 0.05 <= fraction <= 0.95:
        rule = "from 0.05 to 0.95, the share of rows that propose the problem, or None for no holdout"
        raise InvalidOutcome.must_be(ErrorCode.OUT_OF_RANGE, "proposal_fraction", fraction, rule)
    return fraction
