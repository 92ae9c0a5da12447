"""How the means of a log moved from month to month, so that forecasts play worlds that move as it did.

    d̂_k = w_k (m_k − m),   w_k = τ²/(τ² + v_k),   τ² = (Σ_k (m_k − m)² − Σ_k v_k (1 − n_k/n))₊/(M − 1)

for the mean m_k of n_k outcomes in month k of M, v_k = m(1 − m)/n_k, and m of all. A run draws each deviation from
N(d̂_k, w_k v_k), so a mean that does not visibly move stays.
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.forecast.forecast_log import DAY, ForecastLog
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.worlds.moving_world import MOST_LAG, Move, MovingWorld
from stagewise.worlds.noisy_world import get_signal_names
from stagewise.worlds.user_table_world import UserTableWorld

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
