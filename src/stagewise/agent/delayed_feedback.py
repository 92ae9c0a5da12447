"""Delayed feedback: pending outcomes, and how to expire, forget and cancel them."""

from typing import Any

import numpy as np

from stagewise.agent.base_agent import BaseAgent
from stagewise.agent.pending_summary import build_pending
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr
from stagewise.records.decision import Decision
from stagewise.records.pending import Pending


class DelayedFeedbackAgent(BaseAgent):
    """An agent whose outcomes may be late or never arrive."""

    def pending_summary(self) -> Pending:
        """Return, for each signal, how many outcomes are missing and buffered, since which decision, and why.

        Returns:
            One line for each signal; `print` shows a table, `to_dict` is for JSON.
        """
        with self._lock:
            return build_pending(self._queue, self._deadlines, lambda r: self._identity.id_at(r, self._registered))

    def expire_pending(self, now: Any = None) -> int:
        """Close the windows that have ended. Every call that knows the time does so too.

        Args:
            now: The time, if the clock is not to be used.

        Returns:
            The number of decisions that are complete because of it.

        Raises:
            InvalidOutcome: `now` is not a time.
        """
        with self._lock:
            before = self.pending_count
            self._advance_time(now)
            return before - self.pending_count

    def drop_pending(self, before: int) -> int:
        """Give up the missing outcomes of all rounds below `before`; outcomes buffered behind them are learned.

        The bounds stay valid only if neither the outcome nor later ones decide whether it is given up: go by age.

        Args:
            before: The first round that is kept.

        Returns:
            The number of decisions that are given up.

        Raises:
            InvalidOutcome: `before` is not a round, or the agent has windows, which `expire` closes.
        """
        if isinstance(before, bool) or not isinstance(before, int | np.integer) or not 0 <= before <= self.round:
            raise InvalidOutcome(
                ErrorCode.OUT_OF_RANGE,
                "before is {before}; it must be a round from 0 to {round}, the next round",
                before=safe_repr(before),
                round=self.round,
            )
        if self._deadlines is not None:
            raise InvalidOutcome(
                ErrorCode.UNSUPPORTED,
                "this agent has windows, so it cannot forget; forgetting keeps only reported outcomes "
                "and biases the estimates, so use expire, which closes windows by age",
            )
        with self._lock:
            if self._observed_costs is not None and self._observed_costs.give_up(self._queue, int(before)):
                self._observed_costs.record_alerts(self.policy, self._statistics)
            given_up = self._queue.give_up(int(before))
            self._learn_due()
        return given_up

    def cancel(self, decision: Decision | int | str) -> None:
        """Cancel a decision that was not carried out: nothing is learned from it, and reports do not count it.

        A message that could not be sent has no outcome; if it stayed pending, it would count as unanswered. This is
        valid if the reason for not carrying it out does not depend on what its outcome would have been.

        Args:
            decision: The decision, its id or its round.

        Raises:
            InvalidOutcome: The decision is unknown, already complete, or part of its outcome is known.
        """
        with self._lock:
            round_ = self._identity.find_round(decision, self._registered, self.round)
            played = self._queue.cancel(round_)
            if played is None:
                raise InvalidOutcome(
                    ErrorCode.OUTCOME_ALREADY_KNOWN,
                    "the decision of round {round} cannot be cancelled; its outcome is partly known, or it "
                    "is already closed",
                    round=round_,
                )
            if self._observed_costs is not None and self._observed_costs.drop(round_, self._cost_signals):
                self._observed_costs.record_alerts(self.policy, self._statistics)
            if round_ not in self._registered.registered_rounds:
                known = played if self._base_policy is None else decision if isinstance(decision, Decision) else None
                self._statistics.cancel_play(round_, played.ray if known is None else known.action_index)
            self._learn_due()
