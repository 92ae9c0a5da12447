"""Rates by month with their bands, and the drift that they suggest (docs/theory/drift.md, "What is declared").

A drift is proposed as the spec of a limit needs it: twice the largest movement between two months that the log allows.
"""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from stagewise.launch.doctor.log_profile import Cost, LogProfile, Signal
from stagewise.launch.notes import format_number, round_up
from stagewise.problem.timing import DAY, Drift, parse_drift

MONTH = 30.0 * DAY
MAX_MONTHS = 60
MIN_ROWS = 100  # of an action in a month, from which its rate is compared with other months
LEVEL = 0.05  # error probability of a month's band, and of a movement between two months
SAFETY_FACTOR = 2.0  # half of the true slope costs the guarantee, twice it a part of the plays
EPOCHS = 1000.0  # about 1/share of the epoch that a decision relies on


class MonthlyRate(NamedTuple):
    """The rate of an action in one month of the log, or in one half of a log that is shorter than two months."""

    action: str
    start: float  # seconds since 1970
    end: float
    middle: float  # mean time of its rows
    rows: int
    mean: float
    low: float  # Wilson's interval at 95 %
    high: float


class Movement(NamedTuple):
    """How far the mean of an action moved between two months."""

    action: str
    days: float  # between the mean times of their rows
    least: float  # ends of its 95 % interval (Newcombe's), in the units of the outcomes
    most: float


@dataclass(frozen=True)
class DriftProposal:
    """The drift of one limit that a log suggests, and what it costs.

    Attributes:
        limit: The name of the limit.
        drift: The drift to declare, such as "0.006/30d".
        movement: The movement between two months that suggests it.
        is_shown: Whether the log shows that a mean moved, at level .05 over all pairs of months.
        action: The action with the least bound.
        least_bound: About the least bound that can ever be had with this drift, at the traffic of the log.
        value: The limit.
        is_learnable: Whether the least bound keeps the limit; if not, no action could be played alone.
    """

    limit: str
    drift: str
    movement: Movement
    is_shown: bool
    action: str
    least_bound: float
    value: float
    is_learnable: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as JSON values."""
        return asdict(self) | {"movement": self.movement._asdict()}

    @property
    def reason(self) -> str:
        """Why this drift is proposed, as a sentence."""
        one = self.movement
        ends = f"{format_number(one.least)} to {format_number(one.most)}"
        return (
            f"the mean of {one.action!r} moved fastest, by {ends} (95 %) in {one.days:.0f} days; twice the upper "
            "end is declared"
        )

    @property
    def message(self) -> str:
        bound, value = format_number(self.least_bound), format_number(self.value)
        found = f"with drift = {self.drift!r} the bound can come to about {bound} (of {self.action!r})"
        if self.is_learnable:
            return f"{found}, and the limit is {value}; {self.reason}"
        remedy = "then only the safe action could be played: collect more rows, or declare drift = 'jumps'"
        return f"{found}, beyond the limit {value}: {remedy}; {self.reason}"


@dataclass(frozen=True, eq=False)
class MonthlyRates:
    """The rates of a signal by action and month."""

    signal: Signal

    @cached_property
    def rates(self) -> list[MonthlyRate]:
        """The rates of all actions in all months with rows, actions in order; empty if the log has no times."""
        at = self.signal.profile.log.at
        observed = self.signal.observed if at is None else self.signal.observed & np.isfinite(at)
        if at is None or not observed.any() or not at[observed].max() > at[observed].min():
            return []
        first, span = float(at[observed].min()), float(at[observed].max() - at[observed].min())
        count = min(max(round(span / MONTH), 2), MAX_MONTHS)
        months = np.where(observed, np.minimum((np.nan_to_num(at) - first) / span * count, count - 1), -1).astype(int)
        rates, (low, high) = [], self.signal.ends
        for action, of_action in self.signal.profile.by_action:
            for month in range(count):
                rows = of_action & (months == month)
                size = int(rows.sum())
                if size:
                    mean = float(self.signal.scaled[rows].mean())
                    values = (low + (high - low) * one for one in (mean, *compute_wilson_interval(size, mean, LEVEL)))
                    begin = first + span * month / count
                    rates.append(
                        MonthlyRate(action, begin, begin + span / count, float(at[rows].mean()), size, *values)
                    )
        return rates

    def list_movements(self, level: float = LEVEL) -> list[Movement]:
        """Return the movement of every action between every two months that have enough rows."""
        movements, (low, high) = [], self.signal.ends
        factor = float(ndtri(1.0 - level / 2.0) / ndtri(1.0 - LEVEL / 2.0))
        for one, two in combinations(self.rates, 2):
            if one.action == two.action and min(one.rows, two.rows) >= MIN_ROWS:
                less, more = sorted((one, two), key=lambda rate: rate.mean)
                change = more.mean - less.mean
                above = factor * math.hypot(more.high - more.mean, less.mean - less.low)
                below = factor * math.hypot(more.mean - more.low, less.high - less.mean)
                ends = max(change - below, 0.0), min(change + above, high - low)
                movements.append(Movement(one.action, abs(two.middle - one.middle) / DAY, *ends))
        return [one for one in movements if one.days > 0.0]


def compute_wilson_interval(count: int, mean: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a mean in [0, 1] of `count` outcomes."""
    z = float(ndtri(1.0 - level / 2.0))
    centre = mean + z * z / (2.0 * count)
    half = z * math.sqrt(mean * (1.0 - mean) / count + z * z / (4.0 * count * count))
    return (centre - half) / (1.0 + z * z / count), (centre + half) / (1.0 + z * z / count)


def propose_drift(cost: Cost) -> DriftProposal | None:
    """Return the drift of a limit on rates that its log suggests; None: too few rows, no times, or another model."""
    if cost.is_per_user:
        return None
    rates = MonthlyRates(cost)
    movements = rates.list_movements()
    if not movements:
        return None
    largest = max(movements, key=lambda one: one.most / one.days)
    amount = round_up(SAFETY_FACTOR * largest.most / largest.days * 30.0)
    drift = f"{amount:g}/30d"
    modulus = parse_drift(drift, cost.name)
    bounds = {} if modulus is None else compute_least_bounds(cost, modulus.scaled(cost.ends[1] - cost.ends[0]))
    if not bounds:
        return None
    sign = -1.0 if cost.at_least else 1.0
    action, least = min(bounds.items(), key=lambda one: sign * one[1])
    level = LEVEL / (len(movements) * len(cost.profile.costs))
    is_shown = any(one.least > 0.0 for one in rates.list_movements(level))
    is_learnable = sign * least <= sign * cost.threshold
    return DriftProposal(cost.name, drift, largest, is_shown, action, least, cost.threshold, is_learnable)


def compute_least_bounds(signal: Signal, modulus: Drift, per_second: float | None = None) -> dict[str, float]:
    """Return by action about the least bound that can ever be had of a limit's mean, at a traffic or that of the log.

    The safe action has none, since its cost is declared. All bounds are in the units of the outcomes; the drift is that
    of outcomes scaled to [0, 1].
    """
    profile, problem = signal.profile, signal.profile.log.problem
    limit, per_second = problem.limits[signal.name], per_second or measure_traffic(profile)
    if per_second is None:
        return {}
    lag = 0.0 if limit.outcome_window is None else limit.outcome_window.seconds
    confidence = math.log(len(problem.action_names) * len(problem.limits) / (0.8 * problem.delta)) + math.log(EPOCHS)
    bounds, (low, high) = {}, signal.ends
    for action, of_action in profile.by_action:
        rows = signal.observed & of_action
        if action != problem.safe_name and rows.any():
            mean = float(signal.scaled[rows].mean())
            cost = 1.0 - mean if limit.at_least else mean
            least = modulus.compute_least_bound(cost, per_second, lag, confidence)
            bounds[action] = high - (high - low) * least if limit.at_least else low + (high - low) * least
    return bounds


def measure_traffic(profile: LogProfile) -> float | None:
    """Return the rows of a log per second; None if it has no times, or only one."""
    at = profile.log.at
    known = np.empty(0) if at is None else at[~np.isnan(at)]
    if not known.size or known.max() <= known.min():
        return None
    return known.size / float(known.max() - known.min())
