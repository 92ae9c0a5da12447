"""Decides which rows of a batch can be appended; the same for every store, without I/O.

A store reads what a batch needs into a `StoreState`, draws numbers, calls `resolve_batch` and writes the result.
Batches that change what decisions depend on are alone meanwhile; all others run beside each other.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    WriterChain,
    compute_digest,
    encode_canonical,
)

GENERATED_PREFIX = "#"  # prefix of ids that the store assigns to decisions and outcomes

RowKey = tuple[str, str, str]
"""An experiment, a kind, and a key."""


@dataclass
class StoreState:
    """What a store has of the logs of a batch; resolving a batch adds to it."""

    chain: WriterChain
    """The chain of the writer."""
    numbers: Iterator[int]
    """Numbers that were drawn for this batch, one for each request at most."""
    seen: int = 0
    """The highest number that was visible before they were drawn."""
    controls: dict[str, int] = field(default_factory=dict)
    """The number of the last control or problem row, by experiment."""
    decided: set[str] = field(default_factory=set)
    """The experiments with a decision, among those of offline logs."""
    rows: dict[RowKey, Event] = field(default_factory=dict)
    """The existing rows among those of `get_wanted_rows`."""
    answers: dict[int, dict[str, float]] = field(default_factory=dict)
    """Reported signals of the decisions among them, by the number of the decision."""
    floor: int = 0
    """Decisions that have seen lower numbers only may depend on rows that are gone."""

    def add(self, rows: Iterable[Sequence[Any]], answers: Iterable[Sequence[Any]]) -> None:
        """Add rows as a store returns them, each before the name of its experiment, and answers."""
        for *fields, experiment in rows:
            event = Event(*fields)
            self.rows[experiment, event.kind, event.key] = event
        for decision, signal, value in answers:
            self.answers.setdefault(decision, {})[signal] = value


class BatchResult(NamedTuple):
    """The results to return, and the rows to write."""

    results: list[AppendResult]
    rows: list[tuple[str, Event]]
    """Each with its experiment."""
    answers: list[tuple[int, str, float, int]]
    """The number of a decision, a signal, its value and the number of its outcome."""
    encoded: list[bytes]
    """The rows as codes and seals cover them."""

    @property
    def records(self) -> list[tuple[Any, ...]]:
        """The rows as tables hold them: the fields of an event without its place in the order, and an experiment."""
        return [(*event[:-1], experiment) for experiment, event in self.rows]


def get_touched_experiments(requests: Iterable[AppendRequest]) -> set[str]:
    """Return the experiments whose controls a batch needs."""
    return {GLOBAL, *(request.experiment for request in requests if request.kind == DECISION)}


def get_wanted_rows(requests: Iterable[AppendRequest], *, generated: bool = True) -> list[RowKey]:
    """Return the keys of the rows that a batch needs: its own, and the decisions of its outcomes.

    `generated`: also of decisions whose ids the server made. They are new; otherwise an index rejects them.
    """
    own = {
        (request.experiment, str(request.kind), request.key)
        for request in requests
        if request.key and (generated or request.kind != DECISION or request.request_digest)
    }
    return sorted(own | get_outcome_decisions(requests))


def get_outcome_decisions(requests: Iterable[AppendRequest]) -> set[RowKey]:
    """Return the keys of the decisions of a batch's outcomes, whose answers it needs."""
    return {(request.experiment, DECISION, request.decision_id) for request in requests if request.kind == OUTCOME}


def get_offline_logs(requests: Iterable[AppendRequest]) -> set[str]:
    """Return the experiments of the offline logs of a batch: they must come before all decisions."""
    return {request.experiment for request in requests if request.kind == LOG}


def is_change(requests: Iterable[AppendRequest]) -> bool:
    """Return whether a batch changes what decisions depend on, and must be written while nothing else is."""
    return any(request.kind in (CONTROL, PROBLEM, LOG) for request in requests)


def resolve_batch(requests: Sequence[AppendRequest], state: StoreState, now: int) -> BatchResult:
    """Resolve the requests of a batch in order; each sees the rows of those before it."""
    batch = BatchResult([], [], [], [])
    for request in requests:
        batch.results.append(resolve_request(request, state, batch, now))
    return batch


def resolve_request(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    is_generated = request.key.startswith(GENERATED_PREFIX) and request.kind in (DECISION, OUTCOME)
    if is_generated or (request.key.isdecimal() and request.kind == CONTROL):
        message = f"the id {safe_repr(request.key)} is reserved for the store; choose another"
        return AppendResult(CONFLICT, message=message)
    existing = state.rows.get((request.experiment, request.kind, request.key)) if request.key else None
    if existing is not None:
        return resolve_duplicate(request, existing, state)
    if request.kind == OUTCOME:
        return resolve_outcome(request, state, batch, now)
    if request.kind == DECISION:
        own_row, global_row = request.control
        own_last, global_last = (state.controls.get(name, 0) for name in (request.experiment, GLOBAL))
        if 0 <= own_row < own_last or 0 <= global_row < global_last or 0 <= request.seen < state.floor:
            message = f"the controls changed while decision {safe_repr(request.key)} was made; decide again"
            return AppendResult(STALE, message=message)
    if request.kind == LOG and not is_next_log_part(request, state):
        return AppendResult(CONFLICT, message=f"{safe_repr(request.experiment)} has decisions, or another offline log")
    return AppendResult(NEW, append_row(request, request.body, -1, state, batch, now))


def resolve_duplicate(request: AppendRequest, existing: Event, state: StoreState) -> AppendResult:
    """Resolve a request whose key exists; the answer is rebuilt from the row and its decision."""
    if existing.request_digest != get_request_digest(request):
        message = f"{request.kind} {safe_repr(request.key)} is in the log with other content; an id cannot be reused"
        return AppendResult(CONFLICT, existing, message)
    if request.kind != OUTCOME:
        return AppendResult(DUPLICATE, existing)
    accepted = msgspec.json.decode(existing.body)["values"]
    duplicate = tuple(sorted(request.values.keys() - accepted))
    decision = state.rows.get((request.experiment, DECISION, request.decision_id))  # None: it was removed since
    decided_at = existing.at if decision is None else decision.at
    return AppendResult(
        DUPLICATE, existing, accepted=tuple(sorted(accepted)), duplicate=duplicate, decided_at=decided_at
    )


def is_next_log_part(request: AppendRequest, state: StoreState) -> bool:
    """Return whether a part of an offline log comes before all decisions and after its previous part."""
    before = state.rows.get((request.experiment, LOG, str(int(request.key) - 1)))
    return request.experiment not in state.decided and (
        request.key == "1" if before is None else before.request_digest == request.request_digest
    )


def resolve_outcome(request: AppendRequest, state: StoreState, batch: BatchResult, now: int) -> AppendResult:
    """Resolve an outcome: each signal counts once, and a different value rejects the outcome."""
    decision = state.rows.get((request.experiment, DECISION, request.decision_id))
    if decision is None:
        message = f"no decision {safe_repr(request.decision_id)} is in the log of {safe_repr(request.experiment)}"
        return AppendResult(UNKNOWN, message=message)
    answers = state.answers.setdefault(decision.number, {})
    signals = sorted(request.values)
    for signal in signals:
        if answers.get(signal, request.values[signal]) != request.values[signal]:
            values = f"{answers[signal]} in the log, not {request.values[signal]}"
            message = f"{signal} of decision {safe_repr(request.decision_id)} is {values}; a reported value is final"
            return AppendResult(CONFLICT, message=message)
    combined = {**answers, **request.values}
    if combined.get(SHOWN) == 0.0 and len(combined) > 1:
        rule = "cannot have both an outcome and shown: false; the first report is final"
        return AppendResult(CONFLICT, message=f"decision {safe_repr(request.decision_id)} {rule}")
    accepted = tuple([signal for signal in signals if signal not in answers])
    duplicate = tuple([signal for signal in signals if signal in answers])
    if not accepted and not request.key:
        return AppendResult(DUPLICATE, duplicate=duplicate)
    body = drop_signals(request.body, duplicate) if duplicate else request.body
    event = append_row(request, body, decision.number, state, batch, now)
    for signal in accepted:
        answers[signal] = float(request.values[signal])
        batch.answers.append((decision.number, signal, answers[signal], event.number))
    # An id that adds nothing is stored too: it cannot be reused with other content.
    return AppendResult(
        NEW if accepted else DUPLICATE, event, accepted=accepted, duplicate=duplicate, decided_at=decision.at
    )


def append_row(
    request: AppendRequest, body: bytes, decision: int, state: StoreState, batch: BatchResult, now: int
) -> Event:
    experiment, kind, number = request.experiment, request.kind, next(state.numbers)
    key = request.key or (f"{GENERATED_PREFIX}{number}" if kind in (DECISION, OUTCOME) else str(number))
    seen = state.seen if request.seen < 0 else request.seen
    event = Event(number, now, kind, key, decision, body, b"", get_request_digest(request), seen)
    state.chain, event, row = state.chain.sign(experiment, event)
    state.rows[experiment, kind, key] = event
    batch.rows.append((experiment, event))
    batch.encoded.append(row)
    if kind in (CONTROL, PROBLEM):
        state.controls[experiment] = number
    elif kind == DECISION:
        state.decided.add(experiment)
    return event


def drop_signals(body: bytes, duplicate: Sequence[str]) -> bytes:
    """Return an outcome's body without signals that are already in the log."""
    content = msgspec.json.decode(body)
    content["values"] = {signal: value for signal, value in content["values"].items() if signal not in duplicate}
    return encode_canonical(content)


def get_request_digest(request: AppendRequest) -> bytes:
    """Return the digest of the client's request, or of the body if there is none."""
    return request.request_digest or compute_digest(request.body)
