"""An offline log: rows of another policy that an experiment learns before its first decision.

They are rows of the chained log, so a replay learns them too. The log is one batch, in any order
(docs/theory/order.md): it is written in one transaction, in parts of bounded size, and learned when the last part is
read. An experiment has at most one. Its digest depends neither on the file's name nor on the order of rows.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from stagewise.agent.frames import LogRows, read_rows
from stagewise.policies.context_encoder import TIME
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import format_count, safe_repr
from stagewise.server.event_log import LOG, AppendRequest, encode_canonical
from stagewise.server.messages import Text

PART_ROWS = 1_000  # rows of one part
MAX_LOG_ROWS = 1_000_000  # maximum rows of a log


@dataclass(frozen=True)
class OfflineLog:
    """Complete rows by the names of a problem, in its units."""

    actions: list[str]
    """The action of each row (n,)."""
    context: dict[str, list[Any]]
    """Context: numbers, and segments as text."""
    values: dict[str, list[float]]
    """The reward and the costs."""
    at: list[float | None] | None = None
    """Seconds since 1970, if the log has times."""
    notes: tuple[str, ...] = ()
    """Sentences about what was left out."""

    @cached_property
    def digest(self) -> bytes:
        """The digest of the rows, independent of the order of rows and columns.

        >>> one = OfflineLog(["a", "b"], {"age": [1.0, 2.0]}, {"click": [0.0, 1.0]})
        >>> one.digest == OfflineLog(["b", "a"], {"age": [2.0, 1.0]}, {"click": [1.0, 0.0]}).digest
        True
        """
        columns = sorted([*self.context.items(), *self.values.items()])
        rows = zip(self.actions, *(column for _, column in columns), strict=True)
        digests = sorted(hashlib.sha256(encode_canonical(row)).digest() for row in rows)
        return hashlib.sha256(encode_canonical([name for name, _ in columns]) + b"".join(digests)).digest()


class OfflineLogPart(msgspec.Struct):
    """The body of an offline log row."""

    log: str
    """The digest of the complete log, in hexadecimal."""
    number: int
    """1, 2, 3, …"""
    parts: int
    rows: int
    """Number of rows of the complete log."""
    action: list[str]
    context: dict[str, list[Any]]
    values: dict[str, list[float]]
    at: list[float | None] | None = None
    """Seconds since 1970, if the log has times."""

    def read(self, policy: Any) -> LogRows:
        rows = read_rows(policy, build_columns(policy, self.action, self))
        if rows is None:
            raise InvalidOutcome(ErrorCode.LOG_EMPTY, "part {number} of an offline log has no rows", number=self.number)
        return rows.require_all()


class OfflineLogSize(msgspec.Struct):
    """The number of rows of a log, from any of its rows."""

    rows: int


DECODE_PART = msgspec.json.Decoder(OfflineLogPart).decode
DECODE_SIZE = msgspec.json.Decoder(OfflineLogSize).decode

LogReader = Callable[[Problem, Any, Mapping[str, str], Sequence[str], Any], OfflineLog]
"""Reads and checks a log for a problem: columns, column mapping, accepted checks, time of reading."""


class OfflineLogResponse(msgspec.Struct):
    """The result of sending an offline log."""

    rows: int
    """Number of learned rows."""
    digest: str
    """Digest of the rows, independent of their order, in hexadecimal."""
    row: int
    """The number of the row with which they are learned."""
    new: bool
    """False if the experiment already had this log."""
    notes: list[str]
    """Sentences about what was left out."""


class OfflineLogRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request to learn an offline log."""

    columns: dict[str, list[bool | float | str | None]]
    """Columns by name, one value per row: `action`, the problem's names, and times (`at`) if there are some."""
    reason: Text
    names: dict[str, str] = {}
    """Column mapping: the column of each name of the problem."""
    accept: list[str] = []
    """Checks of the doctor to report without failing."""
    now: float | None = None
    """When the log was read, in seconds since 1970; default: at its last row."""


def build_columns(policy: Any, actions: list[str], log: OfflineLog | OfflineLogPart) -> dict[str, list[Any]]:
    columns = {"action": actions, **log.context, **log.values}
    return {**columns, TIME: log.at} if policy.needs_times and log.at is not None else columns


def check_rows(problem: Problem, log: OfflineLog) -> None:
    """Reject rows that cannot be learned; once written they would block all learning."""
    count = len(log.actions)
    if not 0 < count <= MAX_LOG_ROWS:
        raise InvalidOutcome.must_be(ErrorCode.OUT_OF_RANGE, "the number of rows", count, f"1 to {MAX_LOG_ROWS:,}")
    policy = problem.policy()
    rows = read_rows(policy, build_columns(policy, log.actions, log))
    if rows is not None:
        rows.require_all()


def build_append_requests(name: str, log: OfflineLog, actor: str, reason: str) -> tuple[bytes, list[AppendRequest]]:
    count = len(log.actions)
    digest, parts = log.digest, -(-count // PART_ROWS)
    requests = []
    for part in range(parts):
        some = slice(part * PART_ROWS, (part + 1) * PART_ROWS)
        body = {
            "log": digest.hex(), "number": part + 1, "parts": parts, "rows": count, "actor": actor, "reason": reason,
            "action": log.actions[some],
            "context": {name: column[some] for name, column in log.context.items()},
            "values": {name: column[some] for name, column in log.values.items()},
            "at": None if log.at is None else log.at[some],
        }  # fmt: skip
        requests.append(AppendRequest(name, LOG, str(part + 1), msgspec.json.encode(body), digest))
    return digest, requests


def join_parts(parts: Sequence[OfflineLogPart]) -> OfflineLog:
    return OfflineLog(
        [one for part in parts for one in part.action],
        {name: [one for part in parts for one in part.context[name]] for name in parts[0].context},
        {name: [one for part in parts for one in part.values[name]] for name in parts[0].values},
    )


def describe_log_conflict(name: str, rows: int, existing: bytes | None) -> str:
    """Return why a log is rejected: another log exists, or a decision does."""
    if existing is None:
        return (
            f"{safe_repr(name)} has decisions, and an offline log is learned before the first one; serve an experiment "
            "of another name with this log"
        )
    return (
        f"{safe_repr(name)} has learned another log of {format_count(DECODE_SIZE(existing).rows, 'row')}, "
        f"and this one has {rows:,}; an experiment learns one log, because rows in both would count twice: "
        "leave it out, or serve an experiment of another name with all rows"
    )
