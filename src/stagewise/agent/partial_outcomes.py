"""Partial outcomes: which signals of an outcome are accepted, and why others are rejected."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from stagewise.agent.deadlines import Deadlines
from stagewise.agent.outcome_queue import OutcomeQueue
from stagewise.agent.outcome_values import ABSENT, check_action, parse_values
from stagewise.policies.policy import BasePolicy
from stagewise.problem.checks import copy_value
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome


class PartialOutcome(NamedTuple):
    """The accepted part of an outcome."""

    played: Any
    given: Sequence[int]  # the signals that came in time
    late: Sequence[int]  # those that did not


def parse_outcome(
    policy: BasePolicy | None, names: Sequence[str], reward: Any, cost: Any, signals: Any
) -> tuple[Any, Any]:
    """Return the values of an outcome and the given signals; a policy of your own has one value."""
    if policy is not None:
        return parse_values(policy, names, reward, cost, signals)
    if signals or reward is ABSENT:
        raise InvalidOutcome(
            ErrorCode.UNSUPPORTED,
            "this policy has only start, decide and learn, so its outcomes have no names; give reward= and cost=",
        )
    return copy_outcome(reward, None if cost is ABSENT else cost), [0]


def select_on_time(
    outcome_queue: OutcomeQueue, deadlines: Deadlines | None, decision: Any, round_: int, given: Sequence[int]
) -> PartialOutcome:
    """Return the given signals that are missing and in time, or raise."""
    late = [] if deadlines is None else [k for k in given if deadlines.is_late(round_, k)]
    given = [k for k in given if k not in late and outcome_queue.is_missing(round_, k)] if late else given
    if late and not given and deadlines is not None:
        deadlines.reject_late(late, round_, outcome_queue.names)
    played = outcome_queue.played(round_)
    again = [outcome_queue.names[k] for k in given if not outcome_queue.is_missing(round_, k)]
    if played is None or len(again) == len(outcome_queue.names):
        raise InvalidOutcome(
            ErrorCode.OUTCOME_ALREADY_KNOWN,
            "the outcome is for round {round}, whose outcome is already known or was forgotten; an outcome counts once",
            round=round_,
        )
    if isinstance(decision, Decision):
        check_action(decision, played)
    if again:
        raise InvalidOutcome(
            ErrorCode.OUTCOME_ALREADY_KNOWN,
            "the outcome is for round {round}, whose {again!r} is already known or expired; an outcome counts once",
            round=round_,
            again=again[0],
        )
    return PartialOutcome(played, given, late)


def copy_outcome(reward: Any, cost: Any) -> Outcome:
    """Return an outcome that does not share lists with the caller."""
    return Outcome(copy_value(reward), copy_value(cost))


def ignore_signals(signals: Any) -> None:
    """Return None: outcomes of a policy of your own have no names."""
