"""An offline log: rows that another policy collected, which an experiment learns before its first decision.

They are rows of the chained log like all else, so that whoever replays it learns them too. A log is one batch, in
whatever order its rows stand (docs/theory/order.md): it is written in one transaction, in parts of bounded size, and
learned when its last part is there. An experiment has one, known by a digest of its rows that depends neither on the
name of a file nor on the order of the rows.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from stagewise.policies.agent.frames import Asked, Rows, rows_in
from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import several, shown
from stagewise.service.messages import Words
from stagewise.service.records import LOG, Ask, Event, canonical

AS_NAMED = Asked(None, None, None, None, None)  # columns have the names of the problem
PART = 1_000  # rows of a part
LARGEST_LOG = 1_000_000  # rows


@dataclass(frozen=True)
class OfflineLog:
    """Whole rows by the names of a problem, in its own units."""

    actions: list[str]
    """What was done (n,)."""
    context: dict[str, list[Any]]
    """What was known of the users: numbers, and segments as text."""
    values: dict[str, list[float]]
    """The reward and the costs."""
    at: list[float | None] | None = None
    """When, in seconds since 1970, where the log says."""
    notes: tuple[str, ...] = ()
    """What was left out of it, in words."""

    @cached_property
    def digest(self) -> bytes:
        """The digest of the rows, in whatever order they and their columns stand.

        >>> one = OfflineLog(["a", "b"], {"age": [1.0, 2.0]}, {"click": [0.0, 1.0]})
        >>> one.digest == OfflineLog(["b", "a"], {"age": [2.0, 1.0]}, {"click": [1.0, 0.0]}).digest
        True
        """
        named = sorted([*self.context.items(), *self.values.items()])
        rows = zip(self.actions, *(column for _, column in named), strict=True)
        found = sorted(hashlib.sha256(canonical(row)).digest() for row in rows)
        return hashlib.sha256(canonical([name for name, _ in named]) + b"".join(found)).digest()


class Part(msgspec.Struct):
    """What the row of a part says."""

    log: str
    """The digest of the whole log, in hexadecimal digits."""
    part: int
    """1, 2, 3, …"""
    parts: int
    rows: int
    """How many rows the whole log has."""
    action: list[str]
    context: dict[str, list[Any]]
    values: dict[str, list[float]]

    def read(self, policy: Any) -> Rows:
        """Return what it says as a policy learns it."""
        found = rows_in(policy, frame_of(self.action, self.context, self.values), AS_NAMED)
        if found is None:
            raise InvalidOutcome(f"part {self.part} of an offline log has no rows")
        return found


class Size(msgspec.Struct):
    """How many rows a log has."""

    rows: int


DECODE_PART = msgspec.json.Decoder(Part).decode
DECODE_SIZE = msgspec.json.Decoder(Size).decode

ReadLog = Callable[[Problem, Any, Mapping[str, str], Sequence[str], Any], OfflineLog]
"""Reads a log for a problem, or refuses it: columns, their other names, checks that are accepted, when it was read."""


class Loaded(msgspec.Struct):
    """What became of an offline log."""

    rows: int
    """How many rows of it are learned."""
    digest: str
    """Of the rows, in whatever order, in hexadecimal digits."""
    row: int
    """The row of the experiment's log after which they are learned."""
    new: bool
    """False: it was there already, and counts once."""
    notes: list[str]
    """What was left out, in words."""


class LearnLog(msgspec.Struct, forbid_unknown_fields=True):
    """An offline log that is sent."""

    columns: dict[str, list[bool | float | str | None]]
    """By name, each with a value a row: the action, what the problem names, and maybe times (`at`)."""
    reason: Words
    names: dict[str, str] = {}
    """Which columns hold what the problem has another name for."""
    accept: list[str] = []
    """Checks of the doctor whose contradictions are noted only."""
    now: float | None = None
    """When the log was read, in seconds since 1970; left out: at its last row."""


def check_rows(problem: Problem, log: OfflineLog) -> None:
    """Refuse rows that could not be learned: once they are written, nothing could be learned any more."""
    count = len(log.actions)
    if not 0 < count <= LARGEST_LOG:
        raise InvalidOutcome(f"the log has {several(count, 'row')}; an experiment learns 1 to {LARGEST_LOG:,} of them")
    rows_in(problem.policy(), frame_of(log.actions, log.context, log.values), AS_NAMED)


def frame_of(actions: Any, context: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns as `agent.learn_frame` takes them."""
    return {"action": actions, **context, **values}


def asks_of(name: str, log: OfflineLog, actor: str, reason: str) -> tuple[bytes, list[Ask]]:
    """Return the digest of a log, and the rows to be written for it."""
    count = len(log.actions)
    digest, parts = log.digest, -(-count // PART)
    asks = []
    for part in range(parts):
        some = slice(part * PART, (part + 1) * PART)
        body = {
            "log": digest.hex(), "part": part + 1, "parts": parts, "rows": count, "actor": actor, "reason": reason,
            "action": log.actions[some],
            "context": {name: column[some] for name, column in log.context.items()},
            "values": {name: column[some] for name, column in log.values.items()},
            "at": None if log.at is None else log.at[some],
        }  # fmt: skip
        asks.append(Ask(name, LOG, str(part + 1), msgspec.json.encode(body), digest))
    return digest, asks


def joined(parts: Sequence[Part]) -> OfflineLog:
    """Return the log that parts are of."""
    return OfflineLog(
        [one for part in parts for one in part.action],
        {name: [one for part in parts for one in part.context[name]] for name in parts[0].context},
        {name: [one for part in parts for one in part.values[name]] for name in parts[0].values},
    )


def known_digest(first: Event) -> bytes:
    """Return the digest of a log by its first part."""
    return bytes.fromhex(DECODE_PART(first.body).log)


def why_not(name: str, rows: int, there: bytes | None) -> str:
    """Say why a log is not taken: another one is there, or a decision."""
    if there is None:
        return (
            f"{shown(name)} has made decisions, and a log is learned before the first one: what is learned later comes "
            "from its own decisions, in their order; serve an experiment of another name with this log"
        )
    return (
        f"{shown(name)} has learned another log, of {several(DECODE_SIZE(there).rows, 'row')}, and this one has "
        f"{rows:,}; rows that stand in both would count twice, so an experiment has one log: leave it out, or serve an "
        "experiment of another name with all rows"
    )
