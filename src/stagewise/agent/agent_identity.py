"""The identity of an agent: its id prefixes, its random stream, and the rounds of its ids."""

from typing import Any

import numpy as np

from stagewise.agent.registered import RegisteredDecisions
from stagewise.agent.seeding import check_name, derive_id_prefix, derive_stream
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.records.decision import Decision
from stagewise.records.decision_id import DIGITS, format_decision_id, parse_decision_id

INTEGER_TYPES = (int, np.integer)
NON_ROUND_TYPES = (bool, np.timedelta64)


class Identity:
    """Seed and name, and what derives from them."""

    def __init__(self, seed: int, name: Any, former_prefixes: dict[str, int] | None = None) -> None:
        self.seed, self.name = seed, check_name(name, "name")
        self.id_prefix = derive_id_prefix(seed, self.name)
        self.key, self.run = derive_stream(seed, self.name)
        self.former_prefixes = former_prefixes or {}  # marks of earlier lives, and the round at which each ended
        self.has_single_prefix, self.round_start = (
            not self.former_prefixes,
            len(self.id_prefix) + 1,
        )  # an id is the mark, "-", and the round

    def clone(self) -> "Identity":
        """Return an independent copy."""
        return Identity(self.seed, self.name, dict(self.former_prefixes))

    def with_name(self, name: Any, round_: int) -> "Identity":
        """Return the identity under another name from a round on, with other ids and random numbers."""
        other = Identity(self.seed, name, self.former_prefixes | {self.id_prefix: round_})
        if other.id_prefix in self.former_prefixes:
            raise InvalidProblem(
                ErrorCode.DUPLICATE_NAME,
                "name is {name}; this agent had that name before, so decision ids would repeat",
                name=safe_repr(name),
            )
        return self if other.id_prefix == self.id_prefix else other

    def owns_prefix(self, id_prefix: str) -> bool:
        """Return whether an id prefix is or was its own."""
        return id_prefix == self.id_prefix or id_prefix in self.former_prefixes

    def prefix_at(self, round_: int) -> str:
        """Return the id prefix of a round."""
        return next((prefix for prefix, end in self.former_prefixes.items() if round_ < end), self.id_prefix)

    def id_at(self, round_: int, registered: RegisteredDecisions) -> str:
        """Return the id of a pending decision."""
        return registered.id_at(round_) or format_decision_id(self.prefix_at(round_), round_)

    def find_round(self, decision: Any, registered: RegisteredDecisions, end: int) -> int:
        """Return the round of a decision, given as itself, by its id or by its round."""
        if type(decision) is str and self.has_single_prefix and not registered.seen_rounds:
            round_ = decision[self.round_start :]
            if (
                len(round_) == DIGITS
                and decision.startswith(self.id_prefix)
                and round_.isascii()
                and round_.isdecimal()
            ):
                index = int(round_)
                if index < end and decision[self.round_start - 1] == "-":
                    return index
        index = -1
        if isinstance(decision, INTEGER_TYPES) and not isinstance(decision, NON_ROUND_TYPES):
            index = int(decision)
        elif isinstance(decision, Decision):
            index = self.find_round_by_id(decision.id, registered) if decision._by else decision.round
        elif isinstance(decision, str):
            index = self.find_round_by_id(decision, registered)
        if not 0 <= index < end:
            what = decision.round if isinstance(decision, Decision) else decision
            if not isinstance(what, INTEGER_TYPES):
                raise InvalidOutcome(
                    ErrorCode.UNKNOWN_DECISION,
                    "the outcome is for {what}, a decision that this agent did not make; give a decision, "
                    "its id or its round",
                    what=safe_repr(what),
                )
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_DECISION,
                "the outcome is for round {what}; this agent did not make it",
                what=safe_repr(what),
            )
        return index

    def find_round_by_id(self, id_: str, registered: RegisteredDecisions) -> int:
        """Return the round of an id; −1 if it is not an id."""
        parts = parse_decision_id(id_)
        if parts is None:
            return -1
        if id_ in registered.rounds_by_id:
            return registered.rounds_by_id[id_]
        prefix, round_ = parts
        if prefix == self.prefix_at(round_) and round_ not in registered.registered_rounds:
            return round_
        why = (
            "its outcome was given already, and once is all it counts, or it was forgotten"
            if registered.is_registered(id_)
            else "this agent did not make it, and has not adopted it; decisions are adopted before they are answered"
        )
        raise InvalidOutcome(ErrorCode.UNKNOWN_DECISION, "the outcome is for {id}; {why}", id=safe_repr(id_), why=why)
