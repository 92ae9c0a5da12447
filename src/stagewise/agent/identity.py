"""The identity of an agent, and the ids of decisions: who decided, the run, the user, and which are registered.

An agent without a name uses Philox's key = its seed and run = 0, as simulations do. Every other decider derives both
from a digest of seed and names: 64 bits of key and 32 bits of the counter's run, which is never 0. So it never shares
the numbers of the unnamed agent, and two names share numbers with probability 2⁻⁹⁶.

Decisions by an id of the caller: who decided, the run and the user; and which of them an agent has registered.

The random numbers of such a decision are a function of the agent's seed and the id: 128 bits of

    SHA-256(SHA-256(["ids", seed]) ‖ id)

So partitions, order and retries of a table do not change them, and no one without the seed can choose an id for its
draw. A registered id is kept as 64 of these bits.
"""

import base64
import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Ints
from stagewise.engine.random import to_signed_seed
from stagewise.problem.checks import check_integer, check_integer_at_least, check_mapping
from stagewise.problem.columns import convert_to_bits, extend_hashes, is_unicode
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.proposal import Proposal
from stagewise.problem.safe_action import decode_round_safe_action
from stagewise.records.decision import Decision, format_decision_id, parse_decision_id
from stagewise.records.random_key import RandomKey

SEPARATOR = ":"  # between who decided, the run and the user
LONGEST_ID = 200  # characters of a run or of a user's id


def derive_digest(purpose: str, seed: int, *names: str) -> bytes:
    """Return 32 bytes derived from a seed and names."""
    return hashlib.sha256(json.dumps([purpose, seed, *names]).encode()).digest()


def check_run(run: Any) -> str:
    if not isinstance(run, str) or not 0 < len(run) <= LONGEST_ID or SEPARATOR in run or not run.isprintable():
        rule = f"a short text without {SEPARATOR!r}, such as the date"
        raise InvalidOutcome.must_be(ErrorCode.INVALID_NAME, "run", run, rule)
    return run


def check_id(id_: Any) -> str:
    """Return the id that a caller gives to one decision: the run and the user."""
    run, separator, user = id_.partition(SEPARATOR) if isinstance(id_, str) else ("", "", "")
    if not separator or not 0 < len(user) <= LONGEST_ID or not is_unicode(user):
        rule = "a run and a user with a colon between them, such as '2026-11-19:101'"
        raise InvalidOutcome.must_be(ErrorCode.INVALID_NAME, "id", id_, rule)
    check_run(run)
    return str(id_)


def compute_digests(seed: int, ids: Iterable[str]) -> Ints:
    """Return 128 bits (n, 2) of each id."""
    key, sha256 = derive_digest("ids", seed), hashlib.sha256
    joined = b"".join([sha256(key + id_.encode()).digest() for id_ in ids])
    return np.frombuffer(joined, dtype=">i8").reshape(-1, 4)[:, :2].astype(np.int64)


def compute_draws(digests: Ints) -> Ints:
    """Return the seed, the run and the round (n, 3) of the random numbers of ids; their run is never 0."""
    bits = digests.view(np.uint64)
    words = [bits[:, 0] >> np.uint64(1), 1 + (bits[:, 1] >> np.uint64(32)) % np.uint64(2**32 - 1)]
    return np.column_stack([*words, bits[:, 1] & np.uint64(2**32 - 1)]).astype(np.int64)


def find_repeated(digests: Ints) -> Flags:
    """Return which digests (n,) stand in the array before."""
    repeated, ordered = np.zeros(digests.size, dtype=np.bool_), np.sort(digests)
    if (ordered[1:] == ordered[:-1]).any():
        repeated[:] = True
        repeated[np.unique(digests, return_index=True)[1]] = False
    return repeated


def mark_proposals(digests: Ints, proposal: Proposal) -> Ints:
    """Return 64 bits (n,) of ids with what was proposed for them, values (n, K)."""
    marks = extend_hashes(digests.view(np.uint64), np.full(len(digests), proposal.is_scores, dtype=np.uint64))
    for column in proposal.values.T:
        marks = extend_hashes(marks, convert_to_bits(column))
    return marks.view(np.int64)


class CallersId(NamedTuple):
    """What follows from the id that a caller gives to one decision."""

    id: str
    run: str
    digests: Ints
    """(2,)."""
    draw: RandomKey

    @classmethod
    def of(cls, seed: int, prefix: str, id_: Any) -> "CallersId":
        """Return it for a run and a user, of the decider with this prefix."""
        whole = f"{prefix}{SEPARATOR}{check_id(id_)}"
        digests = compute_digests(seed, [whole])
        return cls(whole, whole.split(SEPARATOR)[1], digests[0], RandomKey(*compute_draws(digests)[0].tolist()))


class Run(NamedTuple):
    """The decisions of one run."""

    first: int
    """The first of their rounds."""
    last: int
    version: int
    """The newest state that decided, as the number of its updates."""
    since: int
    """The first round that it decided."""
    proposed: int = 0
    """1: some were decided on a proposal."""


class DecisionIds:
    """The registered ids, with their rounds; the ids of a run are kept until the run is over."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}  # with decisions that are not complete
        self.over: dict[str, None] = {}  # runs whose ids are forgotten
        self.levels: list[tuple[Ints, Ints]] = []  # digests, sorted, and rounds; each level is larger than the next
        self.recent: dict[int, int] = {}  # single decisions
        self.oldest = 0  # nothing before it is to be forgotten

    def check_open(self, run: str) -> None:
        """Raise if all decisions of a run are complete and its ids forgotten."""
        if run in self.over:
            template = "run is {run!r}, whose decisions are complete; give another run, such as the date"
            raise InvalidOutcome(ErrorCode.CONFLICT, template, run=run)

    def find(self, digests: Ints) -> Ints:
        """Return the rounds (n,) of digests; −1: not registered."""
        self._merge_recent()
        rounds = np.full(digests.shape, -1)
        order = np.argsort(digests) if self.levels else digests  # neighbours in a level are found fastest
        for known, their_rounds in self.levels:
            at = np.minimum(np.searchsorted(known, digests[order]), known.size - 1)
            is_known = known[at] == digests[order]
            rounds[order[is_known]] = their_rounds[at[is_known]]
        return rounds

    def find_one(self, digest: int) -> int:
        """Return the round of one digest; −1: not registered."""
        if digest in self.recent:
            return self.recent[digest]
        for known, rounds in self.levels:
            at = int(np.searchsorted(known, digest))
            if at < known.size and known[at] == digest:
                return int(rounds[at])
        return -1

    def add(self, run: str, digests: Ints, rounds: Ints, version: int, marks: Ints | None = None) -> None:
        """Register digests that are not registered, with their rounds; `marks` are those of `mark_proposals`."""
        if not digests.size:
            return
        start = int(rounds.min())
        first, last, newest, since, proposed = self.runs.get(run, Run(start, -1, version, start))
        newest, since = (version, start) if version > newest else (newest, since)
        self.runs[run] = Run(first, max(int(rounds.max()), last), newest, since, int(proposed or marks is not None))
        if marks is not None:
            digests, rounds = np.concatenate([digests, marks]), np.concatenate([rounds, rounds])
        if digests.size == 1:
            self.recent[int(digests[0])] = int(rounds[0])
        else:
            self._add_level(digests, rounds)

    def _merge_recent(self) -> None:
        if self.recent:
            self._add_level(np.array(list(self.recent)), np.array(list(self.recent.values())))
            self.recent = {}

    def _add_level(self, digests: Ints, rounds: Ints) -> None:
        order = np.argsort(digests)
        levels = [*self.levels, (digests[order], rounds[order])]
        while len(levels) > 1 and levels[-2][0].size <= 2 * levels[-1][0].size:
            one, two = levels.pop(), levels.pop()
            digests, rounds = (np.concatenate(columns) for columns in zip(two, one, strict=True))
            order = np.argsort(digests, kind="stable")  # merges what is sorted
            levels.append((digests[order], rounds[order]))
        self.levels = levels

    def forget(self, oldest: int) -> None:
        """Forget the ids of runs whose decisions are all before a round."""
        if oldest == self.oldest:
            return
        self.oldest = oldest
        done = [name for name, run in self.runs.items() if run.last < oldest]
        if not done:
            return
        self._merge_recent()
        for run in done:
            del self.runs[run]
            self.over[run] = None
        first = min((run.first for run in self.runs.values()), default=2**62)
        levels = [(digests[rounds >= first], rounds[rounds >= first]) for digests, rounds in self.levels]
        self.levels = [level for level in levels if level[0].size]

    def to_dict(self) -> dict[str, Any]:
        self._merge_recent()
        levels = [np.concatenate(columns) for columns in zip(*self.levels, strict=True)] or [np.empty(0, np.int64)] * 2
        digests, rounds = (base64.b64encode(np.asarray(one, dtype="<i8").data) for one in levels)
        return {
            "runs": {name: list(run) for name, run in self.runs.items()},
            "over": list(self.over),
            "digests": digests,
            "rounds": rounds,
        }

    def restore(self, content: Mapping[str, Any], end: int) -> None:
        """Restore the ids that `to_dict` returned, of an agent before round `end`."""
        self.runs = {str(name): Run(*map(int, run)) for name, run in content["runs"].items()}
        self.over = dict.fromkeys(map(str, content["over"]))
        digests, rounds = (
            np.frombuffer(base64.b64decode(content[name], validate=True), dtype="<i8").astype(np.int64)
            for name in ("digests", "rounds")
        )
        if digests.size != rounds.size or (rounds.size and not 0 <= rounds.min() <= rounds.max() < end):
            raise InvalidFile(ErrorCode.FILE_CORRUPT, "the stored ids do not match their rounds")
        self.levels, self.recent = [], {}
        if digests.size:
            self._add_level(digests, rounds)


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
