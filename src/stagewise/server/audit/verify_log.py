"""Verifies a log: hash chain without gaps, unique ids, decisions made with the controls in effect.

Stored outcomes, snapshots and digests of secrets are compared with the log. Anyone who can write to a store can
rebuild the complete chain. A receipt (experiment, row, digest) that is kept elsewhere proves that the log up to its
row is unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.effective_controls import EffectiveControls, decode_basis, read_effective_controls
from stagewise.server.audit.log_reader import read_versions
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    GENESIS_HASH,
    GLOBAL,
    LOG,
    OUTCOME,
    PROBLEM,
    SECRET,
    TICK,
    Event,
    LogHead,
    compute_chain,
    compute_digest,
)
from stagewise.server.offline_log import DECODE_PART, OfflineLogPart, join_parts
from stagewise.server.store.base import Store, get_secret_row_key
from stagewise.server.versions import ProblemVersion, build_version

KINDS = (PROBLEM, DECISION, OUTCOME, CONTROL, TICK, LOG)


class Receipt(NamedTuple):
    """A row with its chain digest; as text `messages:1042:9f…`, for the global log `:7:03…`."""

    experiment: str
    seq: int
    chain: str

    def __str__(self) -> str:
        return f"{self.experiment}:{self.seq}:{self.chain}"

    @classmethod
    def of(cls, text: str) -> "Receipt":
        """Parse a receipt.

        >>> Receipt.of("a:b:3:00ff").experiment
        'a:b'
        """
        experiment, _, rest = text.rpartition(":")[0].rpartition(":")
        chain = text.rpartition(":")[2]
        try:
            return cls(experiment, int(rest), bytes.fromhex(chain).hex())
        except ValueError:
            raise InvalidFile(
                ErrorCode.INVALID_OPTION,
                "the receipt is {text}; it must be experiment:row:digest, as `verify` prints it",
                text=safe_repr(text),
            ) from None


class VerificationResult(NamedTuple):
    """The result for one log."""

    experiment: str
    rows: int
    decisions: int
    receipt: Receipt
    fault: str | None
    """The first fault with its row; None if there is none."""


class LogFault(Exception):
    """A fault of a log."""


def verify_store(store: Store, receipts: Sequence[Receipt] = ()) -> Iterator[VerificationResult]:
    """Verify every log of a store, including the global one."""
    names = sorted({GLOBAL, *store.experiments(), *store.logs()})
    for receipt in receipts:
        if receipt.experiment not in names:
            why = f"receipt {receipt} is of {safe_repr(receipt.experiment)}, which is not in the store"
            yield VerificationResult(receipt.experiment, 0, 0, receipt, why)
    for name in names:
        chains = {receipt.seq: receipt.chain for receipt in receipts if receipt.experiment == name}
        yield verify_log(store, name, chains)


def verify_log(store: Store, name: str, receipts: Mapping[int, str]) -> VerificationResult:
    """Verify one log against itself, receipts, and the other tables."""
    # Rows that a server appends meanwhile are beyond this end and are not verified.
    end = store.head(name)
    verifier = LogVerifier(name, receipts, read_effective_controls(store, name))
    fault: str | None = None
    try:
        for event in store.iter_events(name):
            if event.seq > end.seq and end.seq:
                break
            verifier.take(event)
        verifier.finish(end)
        if store.events(name, end.seq, 1) and store.head(name).seq <= end.seq:
            raise LogFault(f"row {end.seq + 1} exists, and the store says that the log ends with row {end.seq}")
        if name != GLOBAL:
            check_answers(store, name, verifier, store.head(name).seq > end.seq)
            check_snapshots(store, name, end.seq)
        else:
            check_secrets(store, verifier)
    except LogFault as error:
        fault = str(error)
    head = verifier.head
    return VerificationResult(name, head.seq, head.decision_count, Receipt(name, head.seq, head.chain.hex()), fault)


class LogVerifier:
    """Verifies rows in order and stops at the first fault."""

    def __init__(self, name: str, receipts: Mapping[int, str], controls: EffectiveControls) -> None:
        self.name, self.receipts, self.controls = name, receipts, controls
        self.version: ProblemVersion | None = None
        self.secrets: dict[str, str] = {}  # digests by name
        self.head = LogHead(chain=GENESIS_HASH)
        self.keys: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self.decision_indices: dict[str, int] = {}  # decision indices by id
        self.parts: list[OfflineLogPart] = []  # parts of an offline log
        self.answers: list[dict[str, float] | None] = []  # by decision; None: nothing was reported

    def take(self, event: Event) -> None:
        """Verify a row against all rows before it."""
        head, label = self.head, f"row {event.seq}"
        if event.seq != head.seq + 1:
            raise LogFault(f"row {head.seq + 1} is missing: row {event.seq} follows row {head.seq}")
        if compute_chain(head.chain, self.name, event) != event.chain:
            raise LogFault(f"{label} ({event.kind} {safe_repr(event.key)}) was changed or moved")
        if event.seq in self.receipts and event.chain.hex() != self.receipts[event.seq]:
            raise LogFault(
                f"{label} has the digest {event.chain.hex()}, and its receipt has {self.receipts[event.seq]}"
            )
        if event.at < head.at:
            raise LogFault(f"{label} is older than the row before it")
        if event.kind not in KINDS or (self.name == GLOBAL and event.kind != CONTROL):
            raise LogFault(f"{label} is of kind {safe_repr(event.kind)}, which this log cannot have")
        if event.key in (self.decision_indices if event.kind == DECISION else self.keys[event.kind]):
            raise LogFault(f"{label} repeats {event.kind} {safe_repr(event.key)}")
        body = decode_row(event, label)
        if event.kind == DECISION:
            self.decision(event, label)
        else:
            self.keys[event.kind].add(event.key)
        if event.kind == OUTCOME:
            self.outcome(event, body, label)
        elif event.kind == LOG:
            self.log_part(event, label)
        elif event.kind == PROBLEM:
            self.problem(event, label)
        elif event.kind == CONTROL and body.get("what") == SECRET:
            self.secrets[body.get("name", "")] = body.get("digest", "")
        control = event.seq if event.kind in (CONTROL, PROBLEM) else head.control
        self.head = LogHead(event.seq, event.at, len(self.answers), control, event.chain)

    def decision(self, event: Event, label: str) -> None:
        """Verify the index of a decision, and its version and controls."""
        try:
            basis = decode_basis(event.body)
        except msgspec.DecodeError:
            raise LogFault(f"{label} does not name its version, snapshot and controls") from None
        error = self.controls.find_error(event.seq, basis)
        if error is not None:
            raise LogFault(f"{label} is decision {safe_repr(event.key)}: {error}")
        if event.decision_index != len(self.answers):
            raise LogFault(f"{label} is decision number {event.decision_index}; the next is {len(self.answers)}")
        self.decision_indices[event.key] = event.decision_index
        self.answers.append(None)

    def problem(self, event: Event, label: str) -> None:
        """Verify that a version may follow the one before it."""
        number = 1 if self.version is None else self.version.number + 1
        if event.key != str(number):
            raise LogFault(f"{label} is version {safe_repr(event.key)} of the problem; the next is {number}")
        try:
            self.version = build_version(self.version, event)
        except (StagewiseError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise LogFault(f"{label} is not a valid version {number} of the problem: {error}") from None

    def outcome(self, event: Event, body: Any, label: str) -> None:
        """Verify that an outcome belongs to an earlier decision and reports each signal once."""
        if self.decision_indices.get(body.get("decision_id")) != event.decision_index:
            raise LogFault(
                f"{label} is an outcome of {safe_repr(body.get('decision_id'))}, "
                f"which is not decision number {event.decision_index}"
            )
        reported = self.answers[event.decision_index] or {}
        repeated = next((signal for signal in body["values"] if signal in reported), None)
        if repeated is not None:
            raise LogFault(f"{label} repeats {safe_repr(repeated)} of {safe_repr(body['decision_id'])}")
        self.answers[event.decision_index] = reported | body["values"]

    def log_part(self, event: Event, label: str) -> None:
        """Verify that an offline log comes before all decisions, with all parts and the right digest."""
        try:
            part = DECODE_PART(event.body)
        except msgspec.ValidationError:
            raise LogFault(f"{label} is not a part of an offline log") from None
        self.parts.append(part)
        first, number = self.parts[0], len(self.parts)
        if self.answers:
            raise LogFault(f"{label} is of an offline log and comes after decisions")
        if (part.log, part.number, part.parts, part.rows) != (first.log, number, first.parts, first.rows):
            raise LogFault(f"{label} is not part {number} of the offline log that begins with part 1")
        if number == part.parts and compute_parts_digest(self.parts) != part.log:
            raise LogFault(f"{label} ends an offline log with another digest than its rows have")

    def finish(self, end: LogHead) -> None:
        """Verify that the log ends where the store says, and that no receipt is beyond it."""
        if self.head != end:
            raise LogFault(f"the log ends with row {self.head.seq}, and the store says row {end.seq}")
        if self.parts and len(self.parts) != self.parts[0].parts:
            raise LogFault(f"the offline log has {len(self.parts)} of its {self.parts[0].parts} parts")
        later = [seq for seq in self.receipts if seq > end.seq]
        if later:
            raise LogFault(f"there is a receipt of row {max(later)}, and the log ends with row {end.seq}")


def compute_parts_digest(parts: Sequence[OfflineLogPart]) -> str | None:
    """Return the digest of an offline log; None if its columns differ in length or names."""
    try:
        return join_parts(parts).digest.hex()
    except (KeyError, ValueError):
        return None


def check_answers(store: Store, name: str, verifier: LogVerifier, grows: bool) -> None:
    """Verify the stored outcomes of each decision; a growing log may have more."""
    for index, answers in enumerate(verifier.answers):
        logged = answers or {}
        stored = store.answers(name, index)
        if stored != logged and not (grows and logged.items() <= stored.items()):
            raise LogFault(
                f"decision number {index} has the outcomes {safe_repr(stored)}, and the log says {safe_repr(logged)}"
            )


def check_secrets(store: Store, verifier: LogVerifier) -> None:
    """Verify every secret against its digest in the log; a secret created meanwhile is in neither."""
    stored = {name: compute_digest(content).hex() for name, content in store.secrets().items()}
    for name, digest in verifier.secrets.items():
        if stored.get(name) != digest:
            fault = "was replaced" if name in stored else "is missing"
            raise LogFault(f"the secret {safe_repr(name)} {fault}: its digest in the log is {digest}")
    unknown = next((name for name in stored if name not in verifier.secrets), None)
    if unknown is not None and store.find(GLOBAL, CONTROL, get_secret_row_key(unknown)) is None:
        raise LogFault(f"the secret {safe_repr(unknown)} exists, and the log does not have its digest")


def check_snapshots(store: Store, name: str, end: int) -> None:
    """Verify the snapshots that a server would start from, to the bit."""
    versions = read_versions(store, name)
    stored = [one for one in store.snapshots(name) if one.problem == len(versions) and one.seq <= end]
    later = next((one.seq for one in store.snapshots(name) if one.seq > store.head(name).seq), None)
    if later is not None:
        raise LogFault(f"there is a snapshot of row {later}, and the log ends before it")
    if stored:
        from stagewise.server.audit.snapshot_check import find_wrong_snapshot  # folding imports the policies

        error = find_wrong_snapshot(store, name, versions[len(versions)], stored)
        if error is not None:
            raise LogFault(error)


def decode_row(event: Event, label: str) -> Any:
    """Decode the body of a row."""
    try:
        body = msgspec.json.decode(event.body)
    except msgspec.DecodeError:
        raise LogFault(f"{label} is not JSON") from None
    if not isinstance(body, dict):
        raise LogFault(f"{label} is not an object")
    if event.kind == OUTCOME and not isinstance(body.get("values"), dict):
        raise LogFault(f"{label} is an outcome without values")
    return body
