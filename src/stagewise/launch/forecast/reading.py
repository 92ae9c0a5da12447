"""A log as a forecast takes it: whole rows in the order of time, scaled as policies learn, and what was left out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.learnable import learnable
from stagewise.launch.log import NOTHING, Log
from stagewise.policies.agent.frames import Asked, rows_in
from stagewise.policies.problem import Problem
from stagewise.problem.checks import positive
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import several, shown

DAY = 86400.0
LATER, ALL, NONE = "half", "all", "nothing"


@dataclass(frozen=True, eq=False)
class Reading:
    """The rows of a log that can be learned from."""

    log: Log  # whole rows, in the order of time
    users: Floats  # (n, 1 + numbers + divisions): 1, the numbers scaled to [−1, 1], the numbers of segments
    values: Floats  # (n, 1 + m) the reward and the costs, each scaled to [0, 1], in the user's own direction
    notes: tuple[str, ...]  # what was left out, or filled in
    times: Floats | None  # when every user came, also those of whom nothing is known yet

    @classmethod
    def of(cls, source: Any, problem: Problem, names: Mapping[str, str] | None = None, now: Any = None) -> Self:
        """Return what a log, read at the time `now`, tells, or refuse one that tells nothing of use."""
        given = source if isinstance(source, Log) else Log.of(source, problem, names=names)
        times = None if given.at is None else given.at[given.actions != NOTHING]
        log, notes = learnable(given, now)
        kept = log.taken(log.order)
        policy = problem.policy()
        rows = rows_in(policy, kept.frame(), Asked(None, None, None, None, None))
        assert rows is not None  # there is a whole one
        signs = np.append(1.0, policy.thresholds.signs)
        users = np.asarray(rows.actions, dtype=np.float64)[:, 1:]
        return cls(kept, users, rows.values * signs, tuple(notes), times)

    @property
    def actions(self) -> Ints:
        """What was done (n,), by number."""
        return self.log.actions

    @cached_property
    def users_a_day(self) -> float:
        """How many rows a day there were, by the log's own times."""
        at = self.times
        if at is None:
            raise InvalidProblem("the log has no column of times; say how many users a day there will be: users=1000")
        span = float(np.nanmax(at) - np.nanmin(at)) if np.isfinite(at).any() else 0.0
        if not span >= DAY:
            raise InvalidProblem(
                f"the log's times span {span:g} seconds, which is less than a day; say how many users a day there will "
                "be: users=1000 (numbers in a column of times are seconds)"
            )
        return len(at) / (span / DAY)

    def learned(
        self, learn: Any, names: Mapping[str, str] | None = None, now: Any = None
    ) -> tuple["Reading | None", str]:
        """Return the rows that the policy starts from, and in words; None: it starts from nothing."""
        if not isinstance(learn, str):
            other = Reading.of(learn, self.log.problem, names, now)
            return other, f"{several(other.log.rows, 'row')} that were given to learn from"
        if learn == ALL:
            return self, f"all {several(self.log.rows, 'whole row')} of the log"
        if learn == NONE:
            return None, "nothing"
        if learn != LATER:
            raise InvalidProblem(f"learn is {shown(learn)}; it must be 'all', 'half', 'nothing', or a log of its own")
        if self.log.at is None:
            raise InvalidProblem(
                "learn is 'half', the later half by time, and the log has no column of times; give the rows to learn "
                "from as a log of their own"
            )
        later = np.arange(self.log.rows) >= round(self.log.rows / 2)
        part = replace(self, log=self.log.taken(later), users=self.users[later], values=self.values[later])
        return part, f"the later half of the log, {several(part.log.rows, 'row')}"


def rate_of(users: Any, reading: Reading) -> int:
    """Return how many users a day there will be: as said, or as in the log."""
    given = reading.users_a_day if users is None else positive(users, "users")
    if not 0.5 <= given <= 10_000_000:
        raise InvalidProblem(f"users is {given:g} a day; it must be from 1 to 10,000,000")
    return max(round(given), 1)
