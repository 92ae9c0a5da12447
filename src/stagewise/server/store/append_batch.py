"""Decides which rows of a batch can be appended; the same for every store, without I/O.

A store locks the logs of a batch, reads what the batch needs into a `StoreState`, calls `resolve_batch` and writes the
result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    Event,
    LogHead,
    compute_digest,
    compute_link,
    encode_canonical,
)

GENERATED_PREFIX = "#"  # prefix of ids that the store assigns to decisions and outcomes

RowKey = tuple[str, str, str]
"""An experiment, a kind, and a key."""


@dataclass
class StoreState:
    """What a store has of the logs of a batch; resolving a batch adds to it."""

    heads: dict[str, LogHead]
    """Ends of the logs of `get_touched_experiments`."""
    rows: dict[RowKey, Event] = field(default_factory=dict)
    """The existing rows among those of `get_wanted_rows`."""
    answers: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """Reported signals of the decisions among them, by experiment and decision index."""
    ends: dict[str, int] = field(default_factory=dict)
    """The last row of every log, if the batch has a global request."""

    def add(self, rows: Iterable[Sequence[Any]], answers: Iterable[Sequence[Any]]) -> None:
        """Add rows and answers as a store returns them, each after the name of its experiment."""
        for experiment, *fields in rows:
            event = Event(*fields)
            self.rows[experiment, event.kind, event.key] = event
        for experiment, decision_index, signal, value in answers:
            self.answers.setdefault((experiment, decision_index), {})[signal] = value


class BatchResult(NamedTuple):
    """The results to return, and the rows to write."""

    results: list[AppendResult]
    rows: list[tuple[Any, ...]]
    """An experiment and the fields of an event."""
    answers: list[tuple[str, int, str, float, int]]
    """An experiment, the index of a decision, a signal, its value and the row of its outcome."""
    heads: dict[str, LogHead]
    """The changed ends of logs."""


def get_touched_experiments(requests: Iterable[AppendRequest]) -> set[str]:
    """Return the experiments whose heads a batch needs."""
    return {GLOBAL, *(request.experiment for request in requests)}


def get_wanted_rows(requests: Iterable[AppendRequest]) -> list[RowKey]:
    """Return the keys of the rows that a batch needs: its own, and the decisions of its outcomes."""
    own = {(request.experiment, str(request.kind), request.key) for request in requests if request.key}
    return sorted(own | get_outcome_decisions(requests))


def get_outcome_decisions(requests: Iterable[AppendRequest]) -> set[RowKey]:
    """Return the keys of the decisions of a batch's outcomes, whose answers it needs."""
    return {(request.experiment, DECISION, request.decision_id) for request in requests if request.kind == OUTCOME}


def has_global_request(requests: Iterable[AppendRequest]) -> bool:
    """Return whether a batch has a global request, which needs the ends of all logs."""
    return any(request.experiment == GLOBAL for request in requests)


def resolve_batch(requests: Sequence[AppendRequest], state: StoreState, now: int) -> BatchResult:
    """Resolve the requests of a batch in order; each sees the rows of those before it."""
    before, batch = dict(state.heads), BatchResult([], [], [], {})
    for request in requests:
        batch.results.append(resolve_request(request, state, batch, now))
    batch.heads.update({name: head for name, head in state.heads.items() if head is not before.get(name)})
    return batch


def resolve_request(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    """Resolve one request and add its rows to the batch."""
    is_generated = request.key.startswith(GENERATED_PREFIX) and request.kind in (DECISION, OUTCOME)
    if is_generated or (request.key.isdecimal() and request.kind == CONTROL):
        message = f"the id {safe_repr(request.key)} is reserved for the store; choose another"
        return AppendResult(CONFLICT, message=message)
    existing = state.rows.get((request.experiment, request.kind, request.key)) if request.key else None
    if existing is not None:
        return resolve_duplicate(request, existing, state)
    if request.kind == OUTCOME:
        return resolve_outcome(request, state, batch, now)
    head = state.heads[request.experiment]
    if request.kind == DECISION:
        own_row, global_row = request.control
        if 0 <= own_row < head.control or 0 <= global_row < state.heads[GLOBAL].control:
            message = f"the controls changed while decision {safe_repr(request.key)} was made; decide again"
            return AppendResult(STALE, message=message)
    if request.kind == LOG and not is_next_log_part(request, state):
        return AppendResult(CONFLICT, message=f"{safe_repr(request.experiment)} has decisions, or another offline log")
    decision_index = head.decision_count if request.kind == DECISION else -1
    return AppendResult(NEW, append_row(request, request.body, decision_index, state, batch, now))


def resolve_duplicate(request: AppendRequest, existing: Event, state: StoreState) -> AppendResult:
    """Resolve a request whose key exists; the answer is rebuilt from the row and its decision."""
    if existing.request_digest != get_request_digest(request):
        message = f"{request.kind} {safe_repr(request.key)} is in the log with other content; an id cannot be reused"
        return AppendResult(CONFLICT, existing, message)
    if request.kind != OUTCOME:
        return AppendResult(DUPLICATE, existing)
    accepted = msgspec.json.decode(existing.body)["values"]
    duplicate = tuple(sorted(request.values.keys() - accepted))
    decided_at = state.rows[request.experiment, DECISION, request.decision_id].at
    return AppendResult(
        DUPLICATE, existing, accepted=tuple(sorted(accepted)), duplicate=duplicate, decided_at=decided_at
    )


def is_next_log_part(request: AppendRequest, state: StoreState) -> bool:
    """Return whether a part of an offline log comes before all decisions and after its previous part."""
    before = state.rows.get((request.experiment, LOG, str(int(request.key) - 1)))
    return not state.heads[request.experiment].decision_count and (
        request.key == "1" if before is None else before.request_digest == request.request_digest
    )


def resolve_outcome(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    """Resolve an outcome: each signal counts once, and a different value rejects the outcome."""
    id_, decision = safe_repr(request.decision_id), state.rows.get((request.experiment, DECISION, request.decision_id))
    if decision is None:
        return AppendResult(UNKNOWN, message=f"no decision {id_} is in the log of {safe_repr(request.experiment)}")
    answers = state.answers.setdefault((request.experiment, decision.decision_index), {})
    signals = sorted(request.values)
    for signal in signals:
        if answers.get(signal, request.values[signal]) != request.values[signal]:
            values = f"{answers[signal]} in the log, not {request.values[signal]}"
            message = f"{signal} of decision {id_} is {values}; a reported value is final"
            return AppendResult(CONFLICT, message=message)
    combined = {**answers, **request.values}
    if combined.get(SHOWN) == 0.0 and len(combined) > 1:
        message = f"decision {id_} cannot have both an outcome and shown: false; the first report is final"
        return AppendResult(CONFLICT, message=message)
    accepted = tuple(signal for signal in signals if signal not in answers)
    duplicate = tuple(signal for signal in signals if signal in answers)
    if not accepted and not request.key:
        return AppendResult(DUPLICATE, duplicate=duplicate)
    body = drop_signals(request.body, duplicate) if duplicate else request.body
    event = append_row(request, body, decision.decision_index, state, batch, now)
    for signal in accepted:
        answers[signal] = float(request.values[signal])
        batch.answers.append((request.experiment, decision.decision_index, signal, answers[signal], event.seq))
    # An id that adds nothing is stored too: it cannot be reused with other content.
    return AppendResult(
        NEW if accepted else DUPLICATE, event, accepted=accepted, duplicate=duplicate, decided_at=decision.at
    )


def append_row(
    request: AppendRequest, body: bytes, decision_index: int, state: StoreState, batch: BatchResult, now: int
) -> Event:
    """Append a row to its log and return it."""
    experiment, kind, head = request.experiment, request.kind, state.heads[request.experiment]
    seq, at = head.seq + 1, max(now, head.at, request.at)
    key = request.key or (f"{GENERATED_PREFIX}{seq}" if kind in (DECISION, OUTCOME) else str(seq))
    if experiment == GLOBAL:  # a global control has the last row of each log, which fixes their order
        ends = state.ends | {name: head.seq for name, head in state.heads.items() if name != GLOBAL}
        ends = {name: end for name, end in ends.items() if end}
        body = encode_canonical({**msgspec.json.decode(body), "ends": ends})
    request_digest = get_request_digest(request)
    chain = compute_link(head.chain, [experiment, seq, at, kind, key, decision_index, request_digest.hex()], body)
    event = state.rows[experiment, kind, key] = Event(seq, at, kind, key, decision_index, body, chain, request_digest)
    batch.rows.append((experiment, *event))
    control = seq if kind in (CONTROL, PROBLEM) else head.control
    state.heads[experiment] = LogHead(seq, at, head.decision_count + (kind == DECISION), control, chain)
    return event


def drop_signals(body: bytes, duplicate: Sequence[str]) -> bytes:
    """Return an outcome's body without signals that are already in the log."""
    content = msgspec.json.decode(body)
    content["values"] = {signal: value for signal, value in content["values"].items() if signal not in duplicate}
    return encode_canonical(content)


def get_request_digest(request: AppendRequest) -> bytes:
    """Return the digest of the client's request, or of the body if there is none."""
    return request.request_digest or compute_digest(request.body)
