"""Decisions by an id of the caller: who decided, the run and the user; and which of them an agent has registered.

The random numbers of such a decision are a function of the agent's seed and the id: 128 bits of

    SHA-256(SHA-256(["ids", seed]) ‖ id)

So partitions, order and retries of a table do not change them, and no one without the seed can choose an id for its
draw. A registered id is kept as 64 of these bits.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Ints
from stagewise.problem.columns import convert_to_bits, extend_hashes, is_unicode
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome
from stagewise.problem.proposal import Proposal
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
