"""Decisions of replicas: their rounds in the agent's order; each is registered once."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stagewise.problem.checks import check_mapping
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import decode_round_safe_action
from stagewise.records.decision import Decision
from stagewise.records.decision_id import parse_decision_id

MIN_CLEANUP_SIZE = 64
REQUIRED_FIELDS = ("id", "action", "action_index", "step_size")


class IntervalSet:
    """A set of integers, stored as intervals; many numbers with few gaps take little memory.

    >>> numbers = IntervalSet()
    >>> for number in (0, 1, 2, 5, 3): numbers.add(number)
    >>> numbers.pairs, 3 in numbers, 4 in numbers
    ([(0, 4), (5, 6)], True, False)
    """

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        ordered = sorted((int(start), int(end)) for start, end in pairs)
        self.starts, self.ends = [start for start, _ in ordered], [end for _, end in ordered]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The intervals as pairs of start and end, without the end."""
        return list(zip(self.starts, self.ends, strict=True))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.starts, number) - 1
        return at >= 0 and number < self.ends[at]

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        at = bisect_right(self.starts, number)
        follows, leads = at > 0 and self.ends[at - 1] == number, at < len(self.starts) and self.starts[at] == number + 1
        if follows and leads:
            self.ends[at - 1] = self.ends.pop(at)
            del self.starts[at]
        elif follows:
            self.ends[at - 1] = number + 1
        elif leads:
            self.starts[at] = number
        else:
            self.starts.insert(at, number)
            self.ends.insert(at, number + 1)


class RegisteredDecisions:
    """The rounds of pending registered decisions by id, and all rounds of each replica that were registered."""

    def __init__(self) -> None:
        self.rounds_by_id: dict[str, int] = {}
        self.seen_rounds: dict[str, IntervalSet] = {}  # by mark
        self.registered_rounds = IntervalSet()  # the places of all of them

    def clone(self) -> "RegisteredDecisions":
        """Return an independent copy."""
        other = RegisteredDecisions()
        other.rounds_by_id = dict(self.rounds_by_id)
        other.seen_rounds = {prefix: IntervalSet(rounds.pairs) for prefix, rounds in self.seen_rounds.items()}
        other.registered_rounds = IntervalSet(self.registered_rounds.pairs)
        return other

    def is_registered(self, id_: str) -> bool:
        """Return whether this decision is registered."""
        parts = parse_decision_id(id_)
        return parts is not None and parts[0] in self.seen_rounds and parts[1] in self.seen_rounds[parts[0]]

    def add(self, id_: str, registered_round: int) -> None:
        """Store the round of a new decision."""
        prefix, round_ = parse_decision_id(id_) or ("", 0)
        self.seen_rounds.setdefault(prefix, IntervalSet()).add(round_)
        self.registered_rounds.add(registered_round)
        self.rounds_by_id[id_] = registered_round

    def id_at(self, round_: int) -> str | None:
        """Return the id of the registered decision of a round, or None."""
        return next((id_ for id_, other in self.rounds_by_id.items() if other == round_), None)

    def discard_completed(self, played: Callable[[int], Any], pending_count: int) -> None:
        """Drop the rounds that are complete, once they are the majority."""
        if len(self.rounds_by_id) > 2 * pending_count + MIN_CLEANUP_SIZE:
            self.rounds_by_id = {id_: round_ for id_, round_ in self.rounds_by_id.items() if played(round_) is not None}


def parse_decision(decision: Any) -> Decision:
    """Return a decision, given as itself or as `to_dict` wrote it."""
    if isinstance(decision, Decision):
        return decision
    content = check_mapping(decision, "the decision", InvalidOutcome) if isinstance(decision, Mapping) else {}
    if not all(name in content for name in REQUIRED_FIELDS):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "the decision is {decision}; it must be a Decision, or the result of its to_dict(), with {required_fields}",
            decision=safe_repr(decision),
            required_fields=", ".join(REQUIRED_FIELDS),
        )
    parts = parse_decision_id(content["id"]) if isinstance(content["id"], str) else None
    if parts is None:
        raise InvalidOutcome(
            ErrorCode.UNKNOWN_DECISION, "the id is {id}; it must be the id of a Decision", id=safe_repr(content["id"])
        )
    prefix, round_ = parts
    played, nothing = (content["action"], content["action_index"], content["step_size"]), np.empty(0)
    parsed = Decision(*played, None, 0.0, nothing, nothing, None, round_)._with_mark(prefix)
    safe = content.get("safe")
    try:
        parsed._safe = decode_round_safe_action(safe)
    except (TypeError, ValueError):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "the decision's safe action is {safe}; it must be as to_dict() wrote it",
            safe=safe_repr(safe),
        ) from None
    offered = content.get("offered")
    return parsed if offered is None else parsed._with(None, offered, True)


def check_unregistered(decision: Decision, who: Any, registered: RegisteredDecisions) -> None:
    """Raise if no replica of this agent made the decision, or it is already registered."""
    prefix, _, replica = decision._by.partition(".")
    if not replica or not who.owns_prefix(prefix):
        raise InvalidOutcome(
            ErrorCode.UNKNOWN_DECISION, "the decision is {id!r}; no replica of this agent made it", id=decision.id
        )
    if registered.is_registered(decision.id):
        raise InvalidOutcome(
            ErrorCode.OUTCOME_ALREADY_KNOWN,
            "the decision is {id!r}; it is already registered, and a decision counts once",
            id=decision.id,
        )
