"""Makes every decision again from the log and compares it to the bit, and explains one decision.

A decision row names its snapshot and its control rows. The state is folded from the log up to that snapshot and
decides with the same random numbers; the body must be equal.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, Fault
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import FallbackReason
from stagewise.server.audit.log_reader import (
    DecisionBasis,
    FindingCode,
    check_experiment,
    decode_basis,
    find_decision,
    read_controls,
    read_effective_controls,
    read_versions,
)
from stagewise.server.controls import ProblemVersion
from stagewise.server.decide import (
    DecisionRecord,
    PolicySnapshot,
    build_proposal_result,
    build_safe_record,
    compute_draw,
    decide,
    decode_decision,
    derive_draws_key,
    describe_decision,
    encode_context,
    format_time,
)
from stagewise.server.event_log import DECISION, GLOBAL, SHOWN, Event, encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.snapshots import begin_fold, build_initial_snapshot, read_removal
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.user_keys import is_erased, open_rows

FOLD_ROWS = 10_000  # rows folded at once

Origin = tuple[int, int, int]
"""The version and the snapshot that a decision was made with, and its place in the order."""


class ReplayResult(NamedTuple):
    """The result of a replay."""

    decisions: int
    matching: int
    failed: int
    """Decisions that failed inside the server and served the safe action."""
    states: int
    """Number of different snapshots."""
    first_difference: Fault | None
    missing: int = 0
    """Decisions that cannot be made again: the rows before a checkpoint, from which they follow, are gone."""
    erased: int = 0
    """Decisions of users who were erased."""


class Replay:
    """An experiment's log with its versions, controls and key."""

    def __init__(self, store: Store, experiment: str) -> None:
        self.store, self.name = store, check_experiment(store, experiment)
        self.versions = read_versions(store, experiment)
        self.controls, self.everywhere = read_controls(store, experiment), read_controls(store, GLOBAL)
        self.effective_controls = read_effective_controls(store, experiment)
        self.key = store.secret(f"draws of {experiment}", b"")

    def run(self, after: int = 0, last: int | None = None) -> ReplayResult:
        """Replay the sealed decisions after the first `after` rows, up to row `last`."""
        origins: list[Origin] = []
        differences: dict[int, Fault] = {}
        count = 0
        for event in self.store.iter_events(self.name, after):
            if last is not None and event.seq > last:
                break
            if event.kind != DECISION:
                continue
            count, error = count + 1, self.effective_controls.find_error(event)
            if error is not None:
                differences[event.seq] = error  # its snapshot may not exist
                continue
            basis = decode_basis(event.body)
            origins.append((basis.problem, basis.snapshot, event.seq))
        matching = failed = states = missing = erased = 0
        for snapshot, rows in self.iter_snapshots(sorted(origins)):
            states += snapshot is not None
            for seq in rows:
                (event,) = open_rows(self.store, self.store.events(self.name, seq - 1, 1))
                if is_erased(event):
                    erased += 1
                    continue
                if snapshot is None:
                    missing += 1
                    continue
                difference = self.find_difference(snapshot, event)
                if difference is not None:
                    differences[seq] = difference
                else:
                    matching += 1
                    failed += msgspec.json.decode(event.body).get("reason") == FallbackReason.DECISION_FAILED
        first = differences[min(differences)] if differences else None
        return ReplayResult(count, matching, failed, states, first, missing, erased)

    def iter_snapshots(self, origins: Sequence[Origin]) -> Iterator[tuple[PolicySnapshot | None, list[int]]]:
        """Yield each snapshot with the rows of the decisions that used it; None: it cannot be made again."""
        for number, of_version in groupby(origins, key=lambda one: one[0]):
            version = self.versions[number]
            fold: StateFold | None = StateFold(version.problem, version.number, version.retired)
            if read_removal(self.store) is not None:
                fold = self.begin_fold(version)
            for state, group in groupby(of_version, key=lambda one: one[1]):
                rows, snapshot = [row for _, _, row in group], None
                if state == 0:
                    snapshot = build_initial_snapshot(version.problem, version.number, version.retired)
                elif state < min(rows):
                    if fold is not None and fold.seq <= state and not self.advance(fold, state):
                        fold = self.begin_fold(version)  # rows of an erased user are before the checkpoint
                    if fold is not None and fold.seq <= state and self.advance(fold, state):
                        snapshot = fold.build_snapshot()
                yield snapshot, rows

    def begin_fold(self, version: ProblemVersion) -> StateFold | None:
        """Return the fold of a version at the checkpoint; None if its rows are gone."""
        try:
            return begin_fold(self.store, self.name, version)
        except StoreUnavailable as error:
            if error.code is not ErrorCode.UNSUPPORTED:
                raise
            return None

    def advance(self, fold: StateFold, row: int) -> bool:
        """Fold up to a row; return False if the context of a decision before it was erased."""
        while fold.seq < row:
            portion = open_rows(self.store, self.store.events(self.name, fold.seq, min(FOLD_ROWS, row - fold.seq)))
            if not portion:
                template = "row {seq} of {name} is missing; run `stagewise audit verify`"
                raise StoreUnavailable(ErrorCode.STORE_CORRUPT, template, seq=fold.seq + 1, name=safe_repr(self.name))
            readable = list(takewhile(lambda event: not is_erased(event), portion))
            if readable:
                fold.take(readable)
            if len(readable) < len(portion):
                return False
        return True

    def find_difference(self, snapshot: PolicySnapshot | None, event: Event) -> Fault | None:
        """Replay a decision and return the first difference."""
        error = self.effective_controls.find_error(event)
        if error is not None or snapshot is None:
            return error
        logged = decode_decision(event.body)
        controls, everywhere = self.controls[logged.control[0]], self.everywhere[logged.control[1]]
        request = msgspec.convert(logged.request, DecisionRequest)
        (record,) = decide(snapshot, controls, everywhere, self.key, [(event.key, request)], logged.time)
        cause = logged.cause
        missing = (
            FallbackReason.DECISION_FAILED,
            FallbackReason.SERVER_NOT_READY,
        )  # what failed or was missing there need not be here
        was_missing = cause is not None and cause.reason in missing
        if isinstance(record, DecisionRecord) and cause is not None and was_missing and record.reason != cause.reason:
            safe = build_safe_record(snapshot, cause)
            safe.control, safe.mode, safe.problem = record.control, record.mode, record.problem
            safe.request, safe.snapshot = record.request, record.snapshot
            safe.proposal = build_proposal_result(snapshot, safe, encode_context(snapshot, request, logged.time))
            safe.decided_at = record.decided_at
            record = safe
        encoded = encode_canonical(record if isinstance(record, DecisionRecord) else {"request": str(record)})
        if encoded == event.body:
            return None
        body, replayed = msgspec.json.decode(event.body), msgspec.json.decode(encoded)
        field = next((name for name in sorted({*replayed, *body}) if replayed.get(name) != body.get(name)), "body")
        found, again = safe_repr(body.get(field)), safe_repr(replayed.get(field))
        return Fault.of(
            FindingCode.NOT_REPRODUCED,
            row=event.seq,
            key=safe_repr(event.key),
            field=field,
            found=found,
            replayed=again,
        )


def explain_logged_decision(store: Store, experiment: str, id_: str) -> str:
    """Explain a decision in sentences: request, bounds of each action, sample and outcomes.

    The bounds are computed again from the log.
    """
    replay = Replay(store, experiment)
    event = find_decision(store, experiment, id_)
    (event,) = open_rows(store, [event._replace(seq=store.find_place(experiment, event.number))])
    body, basis = msgspec.json.decode(event.body), decode_basis(event.body)
    snapshot = None
    if replay.effective_controls.find_error(event) is None:  # else its snapshot may not exist
        snapshot = next(
            one for one, _ in replay.iter_snapshots([(basis.problem, basis.snapshot, event.seq or basis.snapshot + 1)])
        )
    problem, request = replay.versions[basis.problem].problem, body["request"]
    context = ", ".join(f"{name} = {value!r}" for name, value in request["context"].items())
    if is_erased(event):
        return "\n".join([*describe_decision(problem, event), "Its context was erased with its user."])
    only = request.get("only")
    offer = "all actions available" if only is None else f"available: {', '.join(map(repr, only))} and the safe action"
    lines = describe_decision(problem, event, format_snapshot_time(store, experiment, basis))
    lines.append(f"Request: {context or 'no context'}; {offer}.")
    if snapshot is not None:
        asked = msgspec.convert(request, DecisionRequest)
        key = derive_draws_key(replay.key, basis.control[1])
        offered = encode_context(snapshot, asked, decode_decision(event.body).time)
        decision = snapshot.policy.choose(snapshot.learned.state, offered, compute_draw(key, id_))
        lines.append("Estimates, bounds and probability of each action:")
        lines += [f"  {line}" for line in decision.explain().splitlines()[1:]]
    difference = replay.find_difference(snapshot, event)
    if difference is None:
        is_gone = snapshot is None
        lines.append("Replay: the rows from which it follows were removed." if is_gone else "Replay: identical.")
    else:
        lines.append(f"Replay: {difference}.")
    return "\n".join([*lines, *describe_outcomes(store, experiment, event, problem)])


def format_snapshot_time(store: Store, experiment: str, basis: DecisionBasis) -> str:
    """Format the time of the last learned row."""
    rows = store.events(experiment, basis.snapshot - 1, 1) if basis.snapshot else []
    return f" ({format_time(rows[0].at)})" if rows else ""


def describe_outcomes(store: Store, experiment: str, event: Event, problem: Problem) -> Iterator[str]:
    """Yield reported and missing outcomes."""
    reported: set[str] = set()
    for row in store.outcomes(experiment, event.number):
        values = msgspec.json.decode(row.body)["values"]
        reported |= set(values)
        body = ", ".join("it was not shown" if n == SHOWN and not v else f"{n} = {v:g}" for n, v in values.items())
        yield f"Outcome (number {row.number}, {format_time(row.at)}, {(row.at - event.at) / 1e6:.1f} s later): {body}."
        if values.get(SHOWN) == 0.0:
            yield "Nothing is learned from it."
            return
    if msgspec.json.decode(event.body)["request"].get("deferred") and SHOWN not in reported:
        yield "It is deferred and was not reported as shown: nothing is learned from it."
        return
    age = store.head(experiment).at - event.at
    for name in problem.reported:
        window = problem.windows.get(name)
        if name in reported:
            continue
        if window is None:
            yield f"No {name} was reported; it has no window and stays pending."
        elif age < window.seconds * 1e6:
            closes = format_time(event.at + round(window.seconds * 1e6))
            yield f"No {name} was reported yet; its window closes at {closes}."
        else:
            yield f"No {name} was reported; {window.description}."
