"""The rows of a log for a forecast, scaled as policies learn them, and how their means moved from month to month.

    d̂_k = w_k (m_k − m),   w_k = τ²/(τ² + v_k),   τ² = (Σ_k (m_k − m)² − Σ_k v_k (1 − n_k/n))₊/(M − 1)

for the mean m_k of n_k outcomes in month k of M, v_k = m(1 − m)/n_k, and m of all. A run draws each deviation from
N(d̂_k, w_k v_k), so a mean that does not visibly move stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import numpy as np

from stagewise.agent.frames import read_rows
from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log, select_learnable
from stagewise.launch.notes import Note
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_positive
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.worlds.moving_world import MOST_LAG, Move, MovingWorld
from stagewise.worlds.noisy_world import get_signal_names
from stagewise.worlds.user_table_world import UserTableWorld

DAY = 86400.0


class WarmStart(StrEnum):
    """What the policy of a forecast starts from."""

    ALL = "all"
    """All complete rows of the log."""
    LATER_HALF = "half"
    """The later half of the log."""
    NONE = "nothing"
    """Nothing."""
    OTHER_LOG = "log"
    """A separate log."""


@dataclass(frozen=True, eq=False)
class ForecastLog:
    """The rows of a log that can be learned."""

    log: Log  # complete rows, in the order of time
    users: Floats  # (n, 1 + features + divisions): 1, the features of a context, segment codes
    values: Floats  # (n, 1 + m) the reward and the costs, scaled to [0, 1], in their declared direction
    notes: tuple[Note, ...]  # on rows left out or filled in
    times: Floats | None  # of all users, also those with open windows

    @classmethod
    def of(cls, source: Any, problem: Problem, columns: Mapping[str, str] | None = None, as_of: Any = None) -> Self:
        """Read a log at the time `as_of`; reject one without complete rows."""
        all_rows = source if isinstance(source, Log) else Log.of(source, problem, columns=columns)
        times = None if all_rows.at is None else all_rows.at[all_rows.actions != UNKNOWN_ACTION]
        log, notes = select_learnable(all_rows, as_of)
        ordered = log.take(log.order)
        policy = problem.policy()
        rows = read_rows(policy, ordered.frame())
        assert rows is not None  # there is a complete row
        rows = rows.require_all()
        signs = np.append(1.0, policy.thresholds.signs)
        users = np.asarray(rows.actions, dtype=np.float64)[:, 1 : -1 if problem.needs_times else None]  # without time
        return cls(ordered, users, rows.values * signs, tuple(notes), times)

    @property
    def actions(self) -> Ints:
        """The index (n,) of the action."""
        return self.log.actions

    @cached_property
    def users_per_day(self) -> float:
        at = self.times
        if at is None:
            text = "the log has no column of times; give the number of users a day, such as users_per_day=1000"
            raise InvalidProblem(ErrorCode.COLUMN_MISSING, text)
        span = float(np.nanmax(at) - np.nanmin(at)) if np.isfinite(at).any() else 0.0
        if not span >= DAY:
            template = (
                "the log's times span {span:g} seconds, less than a day; numbers in a time column are "
                "seconds, so convert them or give the users a day, such as users_per_day=1000"
            )
            raise InvalidProblem(ErrorCode.LOG_TOO_SHORT, template, span=span)
        return len(at) / (span / DAY)

    def warm_start(
        self, warm_start: Any, columns: Mapping[str, str] | None = None, as_of: Any = None
    ) -> tuple["ForecastLog | None", WarmStart]:
        """Return the rows that the policy starts from; None: it starts from nothing."""
        if not isinstance(warm_start, str):
            return ForecastLog.of(warm_start, self.log.problem, columns, as_of), WarmStart.OTHER_LOG
        if warm_start not in (WarmStart.ALL, WarmStart.LATER_HALF, WarmStart.NONE):
            rule = "'all', 'half', 'nothing', or a separate log"
            raise InvalidProblem.must_be(ErrorCode.INVALID_CHOICE, "warm_start", warm_start, rule)
        if warm_start != WarmStart.LATER_HALF:
            return (self if warm_start == WarmStart.ALL else None), WarmStart(warm_start)
        if self.log.at is None:
            raise InvalidProblem(
                ErrorCode.COLUMN_MISSING,
                "warm_start is 'half', the later half by time, and the log has no column of times; give "
                "the rows to learn from as a separate log",
            )
        later = np.arange(self.log.rows) >= round(self.log.rows / 2)
        half = replace(self, log=self.log.take(later), users=self.users[later], values=self.values[later])
        return half, WarmStart.LATER_HALF


def get_users_per_day(given: Any, log_rows: ForecastLog) -> int:
    """Return the number of users per day: as given, or as in the log."""
    number = log_rows.users_per_day if given is None else check_positive(given, "users_per_day")
    if not 0.5 <= number <= 10_000_000:
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "users_per_day", number, "from 1 to 10,000,000")
    return max(round(number), 1)


MONTH = 30.0 * DAY
MOST_MONTHS = 60


@dataclass(frozen=True, eq=False)
class LogMovement:
    """The deviation of every mean from its average, by month; from the last month of the log back to its first."""

    centres: Floats  # (1 + m, K, M)
    scales: Floats  # (1 + m, K, M)
    length: float  # of a month, in seconds
    start: float  # of the forecast: the end of the log
    users_per_day: int
    lag: int  # rounds until outcomes are learned: the longest window

    @classmethod
    def of(cls, log_rows: ForecastLog, users_per_day: int) -> "LogMovement":
        at, problem = log_rows.log.at, log_rows.log.problem
        if at is None or not np.isfinite(at).any():
            text = "a limit has a drift, and the log has no column of times, by which a forecast knows how means moved"
            raise InvalidProblem(ErrorCode.COLUMN_MISSING, text)
        first, last = float(np.nanmin(at)), float(np.nanmax(at))
        months = min(max(round((last - first) / MONTH), 2), MOST_MONTHS)
        length = max((last - first) / months, 1.0)
        since = np.clip((last - np.where(np.isfinite(at), at, last)) / length, 0, months - 1).astype(int)
        cells = log_rows.actions * months + since
        shape = log_rows.values.shape[1], len(problem.action_names), months
        centres, scales = np.zeros(shape), np.zeros(shape)
        for index in range(shape[0]):
            counts = np.bincount(cells, minlength=shape[1] * months).reshape(shape[1:]).astype(float)
            sums = np.bincount(cells, log_rows.values[:, index], shape[1] * months).reshape(shape[1:])
            centres[index], scales[index] = estimate_deviations(counts, sums)
        windows = [one.outcome_window.seconds for one in problem.signals.values() if one.outcome_window is not None]
        lag = round(max(windows, default=0.0) * users_per_day / DAY)
        return cls(centres, scales, length, last, users_per_day, min(lag, MOST_LAG))

    @property
    def sample_size(self) -> int:
        """The number of normal variates of a draw."""
        return int(self.centres.size)

    def move(self, world: UserTableWorld, normal: Floats) -> MovingWorld:
        """Return a world that moves: from the last month of the log back to its first, and forth again."""
        deviations = self.centres + self.scales * normal.reshape(self.centres.shape)
        names, moves = get_signal_names(world.costs, world.names), []
        for index, action in np.argwhere(np.any(deviations != 0.0, axis=2)).tolist():
            values, start = deviations[index, action].tolist(), -0.5 * self.length
            values.insert(0, values[0])  # mirrored at the end of the log, which is half a month after its last mean
            path = Move(kind="path", signal=names[index], action=action, start=start, length=self.length, values=values)
            moves.append(path)
        return MovingWorld(world, moves=moves, per_day=self.users_per_day, lag=self.lag, start=self.start)

    @property
    def digest(self) -> str:
        """A SHA-256 of the movement."""
        numbers = np.array([self.length, self.start, self.users_per_day, self.lag])
        return sha256(b"".join(each.tobytes() for each in (self.centres, self.scales, numbers))).hexdigest()


def estimate_deviations(counts: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """Return the deviations of means (K, M) by month from those of all months, shrunk, and their standard errors."""
    rows, months = counts.sum(axis=1, keepdims=True), counts.shape[1]
    means = (sums.sum(axis=1, keepdims=True) + 0.5) / (rows + 1.0)
    known = counts > 0.0
    deviations = np.where(known, sums / np.maximum(counts, 1.0) - means, 0.0)
    errors = means * (1.0 - means) / np.maximum(counts, 1.0)
    noise = np.where(known, errors * (1.0 - counts / np.maximum(rows, 1.0)), 0.0).sum(axis=1, keepdims=True)
    between = np.maximum(np.square(deviations).sum(axis=1, keepdims=True) - noise, 0.0) / (months - 1)
    weights = between / (between + errors)
    return weights * deviations, np.sqrt(np.where(known, weights * errors, between))
