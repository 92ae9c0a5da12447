"""Outcomes that have not come: what is waited for and why, and how waiting ends without them."""

from typing import Any

import numpy as np

from stagewise.policies.agent.pending import pending_in
from stagewise.policies.agent.rounds import Rounds
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidOutcome
from stagewise.records.decision import Decision
from stagewise.records.pending import Pending


class Overdue(Rounds):
    """Rounds whose outcomes may be late, or never come."""

    def pending(self) -> Pending:
        """Say for each signal how many outcomes are missing and held back, since which decision, and why."""
        with self._alone:
            return pending_in(self._ledger, self._deadlines, lambda r: self._who.id_at(r, self._adopted))

    def expire(self, now: Any = None) -> int:
        """Close the windows that have ended by now, and return how many decisions are answered by that.

        Every call that tells the time does so; this one is for times when there is none.
        """
        with self._alone:
            before = self.waiting
            self._pass(now)
            return before - self.waiting

    def forget(self, before: int) -> int:
        """Give up waiting for the outcomes of all rounds below `before`, and return how many there were.

        What was held behind them is learned. That leaves the bounds valid only where neither the outcome nor later ones
        decide whether it is given up: go by age.
        """
        if isinstance(before, bool) or not isinstance(before, int | np.integer) or not 0 <= before <= self.round:
            raise InvalidOutcome(
                f"before is {shown(before)}; it must be a round from 0 to {self.round}, which is the next"
            )
        if self._deadlines is not None:
            raise InvalidOutcome(
                "this agent has windows, and forgetting would drop what was not reported and keep what was; windows "
                "close what is missing by age (expire)"
            )
        with self._alone:
            if self._told is not None and self._told.give_up(self._ledger, int(before)):
                self._told.note(self.policy, self._notes)
            given_up = self._ledger.give_up(int(before))
            self._learn_due()
        return given_up

    def withdraw(self, decision: Decision | int | str) -> None:
        """Take back a decision that was not carried out: nothing is learned of it, and reports do not count it.

        A message that could not be sent has no outcome; waited for, it would count as one that nobody answered. Valid
        where what keeps a decision from being carried out does not depend on what would have come of it.
        """
        with self._alone:
            round_ = self._who.place_of(decision, self._adopted, self.round)
            played = self._ledger.withdraw(round_)
            if played is None:
                raise InvalidOutcome(
                    f"the decision of round {round_} cannot be withdrawn; an outcome of it is known, or it was given up"
                )
            if self._told is not None and self._told.drop(round_, self._costs):
                self._told.note(self.policy, self._notes)
            if round_ not in self._adopted.taken:
                told = played if self._ours is None else decision if isinstance(decision, Decision) else None
                self._notes.take_back(round_, played.ray if told is None else told.index)
            self._learn_due()
