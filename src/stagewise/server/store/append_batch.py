"""Decides which rows of a batch can be appended; the same for every store, without I/O.

A store locks the logs of a batch, reads the rows that the batch needs, calls `resolve_batch` and writes the result.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import (
    CONFLICT,
    CONTROL,
    DECISION,
    DUPLICATE,
    GLOBAL,
    LOG,
    NEW,
    OUTCOME,
    PROBLEM,
    SHOWN,
    STALE,
    UNKNOWN,
    AppendRequest,
    AppendResult,
    AppendStatus,
    Event,
    LogHead,
    compute_link,
    encode_canonical,
)

MAX_NAME_LENGTH = 256  # maximum length of a name or an id, as in the messages
GENERATED_PREFIX = "#"  # prefix of ids that the store assigns to decisions and outcomes
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate cannot be encoded as UTF-8

RowKey = tuple[str, str, str]
"""An experiment, a kind, and a key."""


class LogRow(NamedTuple):
    """A row of a log."""

    experiment: str
    event: Event


class SignalValue(NamedTuple):
    """The value of one signal of a decision."""

    experiment: str
    decision_index: int
    signal: str
    value: float
    seq: int
    """The row of its outcome."""


@dataclass
class StoreState:
    """What a store has of the logs of a batch; resolving a batch adds to it."""

    heads: dict[str, LogHead]
    """Ends of logs, for all of `get_touched_experiments`."""
    rows: dict[RowKey, LogRow] = field(default_factory=dict)
    """The existing rows among those of `get_wanted_rows`."""
    answers: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """Reported signals of the decisions among them, by experiment and decision index."""
    ends: dict[str, int] = field(default_factory=dict)
    """The last row of every log, if the batch has a global request."""


class BatchResult(NamedTuple):
    """The rows to write, and the results to return."""

    results: list[AppendResult]
    rows: list[LogRow]
    answers: list[SignalValue]
    heads: dict[str, LogHead]
    """The changed ends of logs."""


def get_touched_experiments(requests: Iterable[AppendRequest]) -> set[str]:
    """Return the experiments whose heads a batch needs."""
    return {GLOBAL} | set(filter(is_storable, {request.experiment for request in requests}))


def get_wanted_rows(requests: Iterable[AppendRequest]) -> set[RowKey]:
    """Return the keys of the rows that a batch needs: its own, and the decisions of its outcomes."""
    named = {(request.experiment, str(request.kind), request.key) for request in requests if request.key}
    named |= {(request.experiment, DECISION, request.decision_id) for request in requests if request.kind == OUTCOME}
    return {name for name in named if is_storable(name[0]) and is_storable(name[2])}


def resolve_batch(requests: Sequence[AppendRequest], state: StoreState, now: int) -> BatchResult:
    """Resolve the requests of a batch in order; each sees the rows of those before it."""
    before, batch = dict(state.heads), BatchResult([], [], [], {})
    for request in requests:
        batch.results.append(resolve_request(request, state, batch, now))
    batch.heads.update({name: head for name, head in state.heads.items() if head is not before.get(name)})
    return batch


def resolve_request(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    """Resolve one request and add its rows to the batch."""
    error = validate_request(request)
    if error:
        return AppendResult(CONFLICT, message=error)
    existing = state.rows.get((request.experiment, request.kind, request.key)) if request.key else None
    if existing is not None:
        return resolve_duplicate(request, existing, state)
    if request.kind == OUTCOME:
        return resolve_outcome(request, state, batch, now)
    if request.kind == DECISION and is_stale(request, state):
        return AppendResult(
            STALE, message=f"the controls changed while decision {safe_repr(request.key)} was made; decide again"
        )
    if request.kind == LOG and not is_next_log_part(request, state):
        return AppendResult(CONFLICT, message=f"{safe_repr(request.experiment)} has decisions, or another offline log")
    decision_index = state.heads[request.experiment].decision_count if request.kind == DECISION else -1
    return AppendResult(NEW, append_row(request, request.body, decision_index, state, batch, now))


def resolve_duplicate(request: AppendRequest, existing: LogRow, state: StoreState) -> AppendResult:
    """Resolve a request whose key exists; the answer is rebuilt from the row and its decision."""
    if existing.event.request_digest != get_request_digest(request):
        message = f"{request.kind} {safe_repr(request.key)} is in the log with other content; an id cannot be reused"
        return AppendResult(CONFLICT, existing.event, message)
    if request.kind != OUTCOME:
        return AppendResult(DUPLICATE, existing.event)
    accepted = msgspec.json.decode(existing.event.body)["values"]
    duplicate = tuple(sorted(request.values.keys() - accepted))
    decided_at = state.rows[request.experiment, DECISION, request.decision_id].event.at
    return AppendResult(
        DUPLICATE, existing.event, accepted=tuple(sorted(accepted)), duplicate=duplicate, decided_at=decided_at
    )


def is_stale(request: AppendRequest, state: StoreState) -> bool:
    """Return whether a decision was made with outdated controls."""
    own_row, global_row = request.control
    return 0 <= own_row < state.heads[request.experiment].control or 0 <= global_row < state.heads[GLOBAL].control


def is_next_log_part(request: AppendRequest, state: StoreState) -> bool:
    """Return whether a part of an offline log comes before all decisions and after its previous part."""
    before = state.rows.get((request.experiment, LOG, str(int(request.key) - 1)))
    return not state.heads[request.experiment].decision_count and (
        request.key == "1" if before is None else before.event.request_digest == request.request_digest
    )


def resolve_outcome(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    """Resolve an outcome: each signal counts once, and a different value rejects the outcome."""
    decision = state.rows.get((request.experiment, DECISION, request.decision_id))
    if decision is None:
        return AppendResult(
            UNKNOWN,
            message=f"no decision {safe_repr(request.decision_id)} is in the log of {safe_repr(request.experiment)}",
        )
    decision_index = decision.event.decision_index
    answers = state.answers.setdefault((request.experiment, decision_index), {})
    signals = sorted(request.values)
    for signal in signals:
        if answers.get(signal, request.values[signal]) != request.values[signal]:
            values = f"{answers[signal]} in the log, not {request.values[signal]}"
            message = f"{signal} of decision {safe_repr(request.decision_id)} is {values}; a reported value is final"
            return AppendResult(CONFLICT, message=message)
    combined = {**answers, **request.values}
    if combined.get(SHOWN) == 0.0 and len(combined) > 1:
        message = f"decision {safe_repr(request.decision_id)} cannot have both an outcome and shown: false"
        return AppendResult(CONFLICT, message=f"{message}; the first report is final")
    accepted = tuple([signal for signal in signals if signal not in answers])
    duplicate = tuple([signal for signal in signals if signal in answers])
    if not accepted and not request.key:
        return AppendResult(DUPLICATE, duplicate=duplicate)
    event = append_row(request, drop_signals(request.body, duplicate), decision_index, state, batch, now)
    for signal in accepted:
        answers[signal] = float(request.values[signal])
        batch.answers.append(SignalValue(request.experiment, decision_index, signal, answers[signal], event.seq))
    # An id that adds nothing is stored too: it cannot be reused with other content.
    status: AppendStatus = NEW if accepted else DUPLICATE
    return AppendResult(status, event, accepted=accepted, duplicate=duplicate, decided_at=decision.event.at)


def append_row(
    request: AppendRequest, body: bytes, decision_index: int, state: StoreState, batch: BatchResult, now: int
) -> Event:
    """Append a row to its log and return it."""
    head = state.heads[request.experiment]
    seq, at = head.seq + 1, max(now, head.at, request.at)
    key = request.key or (f"{GENERATED_PREFIX}{seq}" if request.kind in (DECISION, OUTCOME) else str(seq))
    if request.experiment == GLOBAL:
        body = add_log_ends(body, state)
    request_digest = get_request_digest(request)
    chain = compute_link(
        head.chain, [request.experiment, seq, at, request.kind, key, decision_index, request_digest.hex()], body
    )
    event = Event(seq, at, request.kind, key, decision_index, body, chain, request_digest)
    row = LogRow(request.experiment, event)
    batch.rows.append(row)
    state.rows[request.experiment, request.kind, key] = row
    decision_count = head.decision_count + (request.kind == DECISION)
    control = seq if request.kind in (CONTROL, PROBLEM) else head.control
    state.heads[request.experiment] = LogHead(seq, at, decision_count, control, chain)
    return event


def drop_signals(body: bytes, duplicate: Sequence[str]) -> bytes:
    """Return an outcome's body without signals that are already in the log."""
    if not duplicate:
        return body
    content = msgspec.json.decode(body)
    content["values"] = {signal: value for signal, value in content["values"].items() if signal not in duplicate}
    return encode_canonical(content)


def add_log_ends(body: bytes, state: StoreState) -> bytes:
    """Add the last row of each log to a global control, which fixes their order."""
    ends = state.ends | {name: head.seq for name, head in state.heads.items() if name != GLOBAL}
    return encode_canonical({**msgspec.json.decode(body), "ends": {name: seq for name, seq in ends.items() if seq}})


def has_global_request(requests: Iterable[AppendRequest]) -> bool:
    """Return whether a batch has a global request, which needs the ends of all logs."""
    return any(request.experiment == GLOBAL for request in requests)


def get_request_digest(request: AppendRequest) -> bytes:
    """Return the digest of the client's request, or of the body if there is none."""
    return request.request_digest or hashlib.sha256(request.body).digest()


def is_storable(text: str) -> bool:
    """Return whether every store can hold a name or an id in its columns and indices."""
    return len(text) <= MAX_NAME_LENGTH and "\0" not in text and (text.isascii() or LONE_SURROGATE.search(text) is None)


def validate_request(request: AppendRequest) -> str:
    """Return why a request cannot be stored; empty if it can."""
    for name in (request.experiment, request.key, *request.values):
        if not is_storable(name):
            rule = f"it has at most {MAX_NAME_LENGTH} characters, no NUL and no lone surrogate"
            return f"{safe_repr(name)} is not a valid name or id; {rule}"
    for signal, value in request.values.items():
        if not math.isfinite(value):
            return f"{signal} is {value}; a signal must be a finite number"
    if (
        request.key.startswith(GENERATED_PREFIX)
        if request.kind in (DECISION, OUTCOME)
        else request.kind not in (PROBLEM, LOG) and request.key.isdecimal()
    ):
        return f"the id {safe_repr(request.key)} is reserved for the store; choose another"
    if request.experiment == GLOBAL and request.kind != CONTROL:
        return f"a {request.kind} belongs to an experiment; the global log has only controls"
    return ""
