"""Makes every decision again from the log and compares it to the bit.

A decision row names its snapshot and its control rows. The state is folded from the log up to that snapshot and
decides with the same random numbers; the body must be equal.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import Reason
from stagewise.server.audit.effective_controls import decode_basis, read_effective_controls
from stagewise.server.audit.log_reader import check_experiment, read_controls, read_versions
from stagewise.server.controls import Controls
from stagewise.server.decide import DecisionRecord, PolicySnapshot, build_safe_record, decide, decode_decision
from stagewise.server.event_log import DECISION, GLOBAL, Event, encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.versions import ProblemVersion


class DecisionOrigin(NamedTuple):
    """What a decision was made with, and its row."""

    version: int
    snapshot: int
    seq: int


class ReplayResult(NamedTuple):
    """The result of a replay."""

    decisions: int
    matching: int
    failed: int
    """Decisions that failed inside the server and served the safe action."""
    states: int
    """Number of different snapshots."""
    first_difference: str | None
    """The first difference as a sentence."""


BATCH_SIZE = 10_000  # rows folded at once


class Replay:
    """An experiment's log with its versions, controls and key."""

    def __init__(self, store: Store, experiment: str) -> None:
        self.store, self.name = store, check_experiment(store, experiment)
        self.versions = read_versions(store, experiment)
        self.controls, self.everywhere = read_controls(store, experiment), read_controls(store, GLOBAL)
        self.effective_controls = read_effective_controls(store, experiment)
        self.key = store.secret(f"draws of {experiment}", b"")

    def run(self, after: int = 0, last: int | None = None) -> ReplayResult:
        """Replay the decisions after row `after`, up to row `last`."""
        origins = sorted(self.iter_origins(after, last))
        decisions = matching = failed = states = 0
        differences: list[tuple[int, str]] = []
        for snapshot, group in self.iter_snapshots(origins):
            states += 1
            for one in group:
                event = self.store.events(self.name, one.seq - 1, 1)[0]
                decisions += 1
                difference = self.find_difference(snapshot, event)
                if difference is not None:
                    differences.append((event.seq, difference))
                    continue
                matching += 1
                failed += msgspec.json.decode(event.body).get("reason") == Reason.FAILED
        first = min(differences, default=(0, None))
        return ReplayResult(decisions, matching, failed, states, first[1])

    def iter_origins(self, after: int, last: int | None) -> Iterator[DecisionOrigin]:
        """Yield what each decision was made with."""
        for event in self.store.iter_events_of_kind(self.name, DECISION, after):
            if last is not None and event.seq > last:
                return
            basis = decode_basis(event.body)
            yield DecisionOrigin(basis.problem, basis.snapshot, event.seq)

    def iter_snapshots(
        self, origins: Sequence[DecisionOrigin]
    ) -> Iterator[tuple[PolicySnapshot | None, list[DecisionOrigin]]]:
        """Yield each snapshot with the decisions that used it, in order."""
        for number, of_version in groupby(origins, key=lambda one: one.version):
            version = self.versions.get(number)
            fold = None if version is None else StateFold(version.problem, version.number, version.retired)
            for state, group in groupby(of_version, key=lambda one: one.snapshot):
                rows = list(group)
                usable = version is not None and fold is not None and state < min(one.seq for one in rows)
                yield (self.state_at(version, fold, state) if version and fold and usable else None), rows

    def state_at(self, version: ProblemVersion, fold: StateFold, snapshot: int) -> PolicySnapshot:
        """Return the snapshot of a version after a row."""
        if snapshot == 0:
            return build_initial_snapshot(version.problem, version.number, version.retired)
        while fold.seq < snapshot:
            portion = self.store.events(self.name, fold.seq, min(BATCH_SIZE, snapshot - fold.seq))
            if not portion:
                raise StoreUnavailable(
                    ErrorCode.STORE_CORRUPT,
                    "row {seq} of {name} is missing; run `stagewise audit verify`",
                    seq=fold.seq + 1,
                    name=safe_repr(self.name),
                )
            fold.take(portion)
        return fold.build_snapshot()

    def find_difference(self, snapshot: PolicySnapshot | None, event: Event) -> str | None:
        """Replay a decision; return the difference as a sentence, or None."""
        body = msgspec.json.decode(event.body)
        where = f"row {event.seq}, decision {safe_repr(event.key)}"
        if snapshot is None:
            return f"{where}: version {body['problem']} and snapshot {body['snapshot']} did not exist when it was made"
        first, second = body["control"]
        controls, everywhere = self.controls.get(first), self.everywhere.get(second)
        if controls is None or everywhere is None:
            return f"{where}: it names controls {body['control']}, which are not rows of controls"
        error = self.effective_controls.find_error(event.seq, decode_basis(event.body))
        if error is not None:
            return f"{where}: {error}"
        replayed = self.replay_decision(snapshot, controls, everywhere, event)
        if isinstance(replayed, DecisionRecord):
            encoded = encode_canonical(replayed)
            if encoded == event.body:
                return None
            now = msgspec.json.decode(encoded)
            names = [
                name
                for name in sorted({*now, *body})
                if encode_canonical(now.get(name)) != encode_canonical(body.get(name))
            ]
            name = (names or ["body"])[0]
            return f"{where}: {name} is {safe_repr(body.get(name))} in the log and {safe_repr(now.get(name))} by replay"
        return f"{where}: the request is invalid by replay: {replayed}"

    def replay_decision(
        self, snapshot: PolicySnapshot, controls: Controls, everywhere: Controls, event: Event
    ) -> DecisionRecord | Exception:
        """Decide again; what failed or was missing at the time is taken from the log."""
        logged = decode_decision(event.body)
        request = msgspec.convert(logged.request, DecisionRequest)
        (replayed,) = decide(snapshot, controls, everywhere, self.key, [(event.key, request)])
        cause = logged.cause
        if cause is None or cause.reason not in (Reason.FAILED, Reason.SERVER_NOT_READY):
            return replayed
        if isinstance(replayed, Exception) or replayed.reason == cause.reason:
            return replayed
        safe = build_safe_record(snapshot, cause)
        safe.control, safe.mode, safe.problem = replayed.control, replayed.mode, replayed.problem
        safe.request, safe.snapshot = replayed.request, replayed.snapshot
        return safe
