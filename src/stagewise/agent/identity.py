"""The identity of an agent: its seed and name, what derives from them, and the decisions of replicas that it knows.

An agent without a name uses Philox's key = its seed and run = 0, as simulations do. Every other decider derives both
from a digest of seed and names: 64 bits of key and 32 bits of the counter's run, which is never 0. So it never shares
the numbers of the unnamed agent, and two names share numbers with probability 2⁻⁹⁶.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stagewise.agent.decision_ids import SEPARATOR, DecisionIds, compute_digests, derive_digest
from stagewise.engine.random import to_signed_seed
from stagewise.problem.checks import check_integer, check_integer_at_least, check_mapping
from stagewise.problem.columns import is_unicode
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import decode_round_safe_action
from stagewise.records.decision import Decision, format_decision_id, parse_decision_id

MAX_NAME_LENGTH = 200  # characters of a name
MIN_CLEANUP_SIZE = 64  # ids of registered decisions
REQUIRED_FIELDS = ("id", "action", "action_index", "step_size")
INTEGER_TYPES = (int, np.integer)
NON_ROUND_TYPES = (bool, np.timedelta64)


def check_name(value: Any, what: str) -> str:
    """Return a name, which may be empty for an agent."""
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH:
        raise InvalidProblem.must_be(
            ErrorCode.INVALID_NAME, what, value, f"a text of at most {MAX_NAME_LENGTH} characters"
        )
    return str.__str__(value)


def derive_id_prefix(seed: int, *names: str) -> str:
    """Return the prefix of the ids of an agent or of one of its replicas."""
    first = derive_digest("mark", seed, names[0])[:8].hex()
    return first if len(names) == 1 else f"{first}.{derive_digest('mark', seed, *names)[:8].hex()}"


def derive_stream(seed: int, *names: str) -> tuple[int, int]:
    """Return the key and the run of the random numbers."""
    if names == ("",):
        return to_signed_seed(seed), 0
    digest = derive_digest("stream", seed, *names)
    return to_signed_seed(int.from_bytes(digest[:8], "big")), 1 + int.from_bytes(digest[8:12], "big") % (2**32 - 1)


class IntervalSet:
    """A set of integers, stored as intervals; many numbers with few gaps take little memory."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self.pairs = sorted((int(start), int(end)) for start, end in pairs)  # each without its end

    def _find(self, number: int) -> int:
        """Return the index of the last interval that starts at or before a number; −1: there is none."""
        return bisect_right(self.pairs, (number, 2**62)) - 1

    def __contains__(self, number: int) -> bool:
        i = self._find(number) if self.pairs else -1
        return i >= 0 and number < self.pairs[i][1]

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        i = self._find(number)
        start, end, first, last = number, number + 1, i + 1, i + 1
        if i >= 0 and self.pairs[i][1] == number:
            start, first = self.pairs[i][0], i
        if i + 1 < len(self.pairs) and self.pairs[i + 1][0] == number + 1:
            end, last = self.pairs[i + 1][1], i + 2
        self.pairs[first:last] = [(start, end)]


class Identity:
    """Seed and name, what derives from them, and the decisions of replicas that were registered."""

    def __init__(self, seed: int, name: Any, former_prefixes: Mapping[str, int] | None = None) -> None:
        self.seed, self.name = seed, check_name(name, "name")
        self.id_prefix = derive_id_prefix(seed, self.name)
        self.key, self.run = derive_stream(seed, self.name)
        self.former_prefixes = dict(former_prefixes or {})  # by former id prefix, the round at which it ended
        self.rounds_by_id: dict[str, int] = {}  # of registered decisions that are pending
        self.seen_rounds: dict[str, IntervalSet] = {}  # by id prefix, the rounds of all registered decisions
        self.registered_rounds = IntervalSet()  # their rounds in the order of this agent
        self.ids = DecisionIds()  # decisions with an id of the caller

    def clone(self) -> "Identity":
        """Return an independent copy."""
        other = Identity(self.seed, self.name, self.former_prefixes)
        other.restore(self.to_dict(), 2**62)
        return other

    def with_name(self, name: Any, round_: int) -> "Identity":
        """Return the identity under another name from a round on, with other ids and random numbers."""
        other = Identity(self.seed, name, self.former_prefixes | {self.id_prefix: round_})
        if other.id_prefix in self.former_prefixes:
            template = "name is {name}; this agent had that name before, so decision ids would repeat"
            raise InvalidProblem(ErrorCode.DUPLICATE_NAME, template, name=safe_repr(name))
        if other.id_prefix == self.id_prefix:
            return self
        other.restore(self.to_dict(), 2**62)
        return other

    def _prefix_at(self, round_: int) -> str:
        if not self.former_prefixes:
            return self.id_prefix
        return next((prefix for prefix, end in self.former_prefixes.items() if round_ < end), self.id_prefix)

    def id_at(self, round_: int) -> str:
        """Return the id of a pending decision."""
        own = format_decision_id(self._prefix_at(round_), round_)
        return next((id_ for id_, other in self.rounds_by_id.items() if other == round_), own)

    def find_round(self, decision: Any, end: int) -> int:
        """Return the round of a decision, given as itself, by its id or by its round."""
        round_ = -1
        if isinstance(decision, Decision):
            # the common case first; `_by` is empty for a decision that no agent made
            is_own = decision._by == self.id_prefix and not self.former_prefixes and not self.seen_rounds
            round_ = decision.round if is_own or not decision._by else self._find_by_id(decision.id)
        elif isinstance(decision, str):
            round_ = self._find_by_id(decision)
        elif isinstance(decision, INTEGER_TYPES) and not isinstance(decision, NON_ROUND_TYPES):
            round_ = int(decision)
        if 0 <= round_ < end:
            return round_
        what = decision.round if isinstance(decision, Decision) else decision
        is_round, shown = isinstance(what, INTEGER_TYPES), safe_repr(what)
        raise InvalidOutcome(
            ErrorCode.UNKNOWN_DECISION,
            "the outcome is for {what}, which this agent did not make; give a decision, its id or its round",
            what=f"round {shown}" if is_round else f"{shown}, a decision",
        )

    def _find_by_id(self, id_: str) -> int:
        """Return the round of an id; −1 if it is not an id."""
        parts = parse_decision_id(id_)
        if parts is not None and parts[0] == self.id_prefix and not self.seen_rounds and not self.former_prefixes:
            return parts[1]  # the common case
        if id_ in self.rounds_by_id:
            return self.rounds_by_id[id_]
        if SEPARATOR in id_:
            return self._find_callers_id(id_)
        if parts is None:
            return -1
        prefix, round_ = parts
        if prefix == self._prefix_at(round_) and round_ not in self.registered_rounds:
            return round_
        raise InvalidOutcome(
            ErrorCode.UNKNOWN_DECISION,
            "the outcome is for {id}; {why}",
            id=safe_repr(id_),
            why="its outcome was given already, and once is all it counts, or it was forgotten"
            if self._is_registered(id_)
            else "this agent did not make it, and has not registered it; register a decision before its outcome exists",
        )

    def _find_callers_id(self, id_: str) -> int:
        """Return the round of a decision with an id of the caller; −1: unknown."""
        round_ = self.ids.find_one(int(compute_digests(self.seed, [id_])[0, 0])) if is_unicode(id_) else -1
        run = id_.split(SEPARATOR)[1]
        if round_ < 0 and run in self.ids.over:
            template = "the outcome is for {id}; the decisions of the run {run!r} are complete"
            raise InvalidOutcome(ErrorCode.UNKNOWN_DECISION, template, id=safe_repr(id_), run=run)
        return round_

    def _is_registered(self, id_: str) -> bool:
        prefix, round_ = parse_decision_id(id_) or ("", 0)
        return prefix in self.seen_rounds and round_ in self.seen_rounds[prefix]

    def check_unregistered(self, decision: Decision) -> None:
        """Raise if no replica of this agent made the decision, or it is already registered."""
        prefix, _, replica = decision._by.partition(".")
        if not replica or (prefix != self.id_prefix and prefix not in self.former_prefixes):
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_DECISION, "the decision is {id!r}; no replica of this agent made it", id=decision.id
            )
        if self._is_registered(decision.id):
            template = "the decision is {id!r}; it is already registered, and a decision counts once"
            raise InvalidOutcome(ErrorCode.OUTCOME_ALREADY_KNOWN, template, id=decision.id)

    def register(self, id_: str, registered_round: int) -> None:
        """Store the round of a new decision."""
        prefix, round_ = parse_decision_id(id_) or ("", 0)
        self.seen_rounds.setdefault(prefix, IntervalSet()).add(round_)
        self.registered_rounds.add(registered_round)
        self.rounds_by_id[id_] = registered_round

    def forget_completed(self, is_open: Callable[[int], bool], open_count: int) -> None:
        """Drop the ids of rounds that are complete, once they are the majority."""
        if len(self.rounds_by_id) > 2 * open_count + MIN_CLEANUP_SIZE:
            self.rounds_by_id = {id_: round_ for id_, round_ in self.rounds_by_id.items() if is_open(round_)}

    def to_dict(self) -> dict[str, Any]:
        """Return the registered decisions as JSON holds them."""
        return {
            "rounds_by_id": dict(self.rounds_by_id),
            "seen_rounds": {prefix: list(rounds.pairs) for prefix, rounds in self.seen_rounds.items()},
            "registered_rounds": list(self.registered_rounds.pairs),
            "ids": self.ids.to_dict(),
        }

    def restore(self, content: Mapping[str, Any], end: int) -> None:
        """Restore the registered decisions that `to_dict` returned, of an agent before round `end`."""
        rounds = content["rounds_by_id"].items()
        self.rounds_by_id = {str(id_): check_integer(r, "round", "a round", 0, end - 1) for id_, r in rounds}
        self.seen_rounds = {str(prefix): IntervalSet(pairs) for prefix, pairs in content["seen_rounds"].items()}
        self.registered_rounds = IntervalSet(content["registered_rounds"])
        self.ids.restore(content["ids"], end)


def parse_decision(decision: Any) -> Decision:
    """Return a decision, given as itself or as `to_dict` wrote it."""
    if isinstance(decision, Decision):
        return decision
    content = check_mapping(decision, "the decision", InvalidOutcome) if isinstance(decision, Mapping) else {}
    if not all(name in content for name in REQUIRED_FIELDS):
        rule = f"a Decision, or the result of its to_dict(), with {', '.join(REQUIRED_FIELDS)}"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the decision", decision, rule)
    parts = parse_decision_id(content["id"]) if isinstance(content["id"], str) else None
    if parts is None:
        raise InvalidOutcome.must_be(ErrorCode.UNKNOWN_DECISION, "the id", content["id"], "the id of a Decision")
    prefix, round_ = parts
    index, nothing = content["action_index"], np.empty(0)
    if index is not None:
        check_integer_at_least(index, "the index", 0, InvalidOutcome)
    played = content.get("row", content["action"]), index, content["step_size"]
    parsed = Decision(*played, None, 0.0, nothing, nothing, None, round_)._with_mark(prefix)
    safe = content.get("safe")
    try:
        parsed._safe = decode_round_safe_action(safe)
    except (TypeError, ValueError):
        raise InvalidOutcome.must_be(
            ErrorCode.WRONG_TYPE, "the decision's safe action", safe, "as to_dict() wrote it"
        ) from None
    offered = content.get("offered")
    return parsed if offered is None else parsed._with(None, offered, True)
