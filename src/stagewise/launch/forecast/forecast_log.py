"""The rows of a log for a forecast: complete, in the order of time, scaled as policies learn them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import numpy as np

from stagewise.agent.frames import read_rows
from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log, select_learnable
from stagewise.launch.notes import Note
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_positive
from stagewise.problem.errors import ErrorCode, InvalidProblem

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
