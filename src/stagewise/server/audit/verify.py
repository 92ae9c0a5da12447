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
from stagewise.server.audit.log_reader import (
    EffectiveControls,
    Finding,
    FindingCode,
    read_effective_controls,
    read_versions,
)
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    GENESIS_HASH,
    GLOBAL,
    LOG,
    OUTCOME,
    PROBLEM,
    SECRET,
    Event,
    LogHead,
    compute_chain,
    compute_digest,
)
from stagewise.server.offline_log import DECODE_PART, OfflineLogPart, join_parts
from stagewise.server.snapshots import SEAL_BYTES
from stagewise.server.store.base import Store, get_secret_row_key
from stagewise.server.versions import ProblemVersion, build_version

FOLD_ROWS = 10_000  # rows folded at once


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
        try:
            experiment, row, chain = text.rsplit(":", 2)
            return cls(experiment, int(row), bytes.fromhex(chain).hex())
        except ValueError:
            raise InvalidFile.must_be(
                ErrorCode.INVALID_OPTION, "the receipt", text, "experiment:row:digest, as `verify` prints it"
            ) from None


class VerificationResult(NamedTuple):
    """The result for one log."""

    experiment: str
    rows: int
    decisions: int
    receipt: Receipt
    fault: Finding | None
    """The first fault; None if there is none."""


class LogFault(Exception):
    """A log is not intact; its argument is the finding."""

    def __init__(self, code: FindingCode, /, **details: Any) -> None:
        super().__init__(Finding(code, details))


def verify_store(store: Store, receipts: Sequence[Receipt] = ()) -> Iterator[VerificationResult]:
    """Verify every log of a store, including the global one."""
    names = sorted({GLOBAL, *store.experiments(), *store.logs()})
    for receipt in receipts:
        if receipt.experiment not in names:
            fault = Finding.of(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found="no log")
            yield VerificationResult(receipt.experiment, 0, 0, receipt, fault)
    for name in names:
        yield verify_log(store, name, {one.seq: one.chain for one in receipts if one.experiment == name})


def verify_log(store: Store, name: str, receipts: Mapping[int, str]) -> VerificationResult:
    """Verify one log against itself, receipts, and the other tables."""
    end = store.head(name)  # rows that a server appends meanwhile are beyond it and are not verified
    verifier = LogVerifier(name, receipts, read_effective_controls(store, name))
    fault: Finding | None = None
    try:
        for event in store.iter_events(name):
            if event.seq > end.seq and end.seq:
                break
            verifier.take(event)
        verifier.finish(end)
        grows = store.head(name).seq > end.seq
        if store.events(name, end.seq, 1) and not grows:
            raise LogFault(FindingCode.HEAD_DIFFERS, row=end.seq + 1, end=end.seq)
        if name == GLOBAL:
            check_secrets(store, verifier.secrets)
        else:
            check_answers(store, name, verifier.answers, grows)
            check_snapshots(store, name, end.seq)
    except LogFault as error:
        (fault,) = error.args
    head = verifier.head
    return VerificationResult(name, head.seq, head.decision_count, Receipt(name, head.seq, head.chain.hex()), fault)


class LogVerifier:
    """Verifies rows in order and stops at the first fault."""

    def __init__(self, name: str, receipts: Mapping[int, str], controls: EffectiveControls) -> None:
        self.name, self.receipts, self.controls = name, receipts, controls
        self.version: ProblemVersion | None = None
        self.secrets: dict[str, str] = {}  # digests by name
        self.head = LogHead(chain=GENESIS_HASH)
        self.keys: set[tuple[str, str]] = set()  # kinds and keys of rows that are not decisions
        self.decision_indices: dict[str, int] = {}  # by id
        self.parts: list[OfflineLogPart] = []  # parts of an offline log
        self.answers: list[dict[str, float]] = []  # by decision

    def take(self, event: Event) -> None:
        """Verify a row against all rows before it."""
        head, seq, kind, key = self.head, event.seq, event.kind, safe_repr(event.key)
        if seq != head.seq + 1:
            raise LogFault(FindingCode.ROW_MISSING, row=head.seq + 1, found=seq, before=head.seq)
        if compute_chain(head.chain, self.name, event) != event.chain:
            raise LogFault(FindingCode.ROW_CHANGED, row=seq, kind=kind, key=key)
        found = event.chain.hex()
        if self.receipts.get(seq, found) != found:
            receipt = Receipt(self.name, seq, self.receipts[seq])
            raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found=f"the digest {found}")
        if event.at < head.at:
            raise LogFault(FindingCode.ROW_OUT_OF_TIME, row=seq)
        if (kind, event.key) in self.keys or (kind == DECISION and event.key in self.decision_indices):
            raise LogFault(FindingCode.ROW_REPEATED, row=seq, kind=kind, key=key)
        if kind != DECISION:
            self.keys.add((kind, event.key))
        take = {DECISION: self._decision, OUTCOME: self._outcome, LOG: self._log_part, PROBLEM: self._problem}
        try:
            if kind in take:
                take[kind](event)
            elif kind == CONTROL:
                body = msgspec.json.decode(event.body)
                if body.get("what") == SECRET:
                    self.secrets[body["name"]] = body["digest"]
        except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError):
            raise LogFault(FindingCode.ROW_MALFORMED, row=seq, kind=kind) from None
        control = seq if kind in (CONTROL, PROBLEM) else head.control
        self.head = LogHead(seq, event.at, len(self.answers), control, event.chain)

    def _decision(self, event: Event) -> None:
        """Verify the index of a decision, and its version and controls."""
        error = self.controls.find_error(event)
        if error is not None:
            raise LogFault(error.code, **error.details)
        if event.decision_index != len(self.answers):
            raise LogFault(
                FindingCode.WRONG_NUMBER,
                row=event.seq,
                kind=DECISION,
                found=event.decision_index,
                expected=len(self.answers),
            )
        self.decision_indices[event.key] = event.decision_index
        self.answers.append({})

    def _problem(self, event: Event) -> None:
        """Verify that a version may follow the one before it."""
        number = 1 if self.version is None else self.version.number + 1
        if event.key != str(number):
            found = safe_repr(event.key)
            raise LogFault(FindingCode.WRONG_NUMBER, row=event.seq, kind=PROBLEM, found=found, expected=number)
        try:
            self.version = build_version(self.version, event)
        except StagewiseError as error:
            raise LogFault(FindingCode.VERSION_INVALID, row=event.seq, error=error) from None

    def _outcome(self, event: Event) -> None:
        """Verify that an outcome belongs to an earlier decision and reports each signal once."""
        body, index = msgspec.json.decode(event.body), event.decision_index
        id_ = body["decision_id"]
        if self.decision_indices.get(id_) != index:
            raise LogFault(
                FindingCode.OUTCOME_OF_OTHER_DECISION, row=event.seq, key=safe_repr(id_), found=event.decision_index
            )
        for signal, value in body["values"].items():
            if signal in self.answers[index]:
                raise LogFault(
                    FindingCode.OUTCOME_REPEATED, row=event.seq, signal=safe_repr(signal), key=safe_repr(id_)
                )
            self.answers[index][signal] = value

    def _log_part(self, event: Event) -> None:
        """Verify that an offline log comes before all decisions, with all parts and the right digest."""
        part = DECODE_PART(event.body)
        self.parts.append(part)
        first, number = self.parts[0], len(self.parts)
        is_next = (part.log, part.number, part.parts, part.rows) == (first.log, number, first.parts, first.rows)
        is_complete = number < part.parts or join_parts(self.parts).digest.hex() == part.log
        if self.answers or not is_next or not is_complete:
            raise LogFault(FindingCode.OFFLINE_LOG_INVALID, row=event.seq, part=number)

    def finish(self, end: LogHead) -> None:
        """Verify that the log ends where the store says, and that no receipt is beyond it."""
        if self.head != end:
            raise LogFault(FindingCode.HEAD_DIFFERS, row=self.head.seq, end=end.seq)
        if self.parts and len(self.parts) != self.parts[0].parts:
            raise LogFault(FindingCode.OFFLINE_LOG_INVALID, row=end.seq, part=len(self.parts))
        later = max((seq for seq in self.receipts if seq > end.seq), default=0)
        if later:
            receipt = Receipt(self.name, later, self.receipts[later])
            raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found=f"only {end.seq} rows")


def check_answers(store: Store, name: str, logged: Sequence[Mapping[str, float]], grows: bool) -> None:
    """Verify the stored outcomes of each decision; a growing log may have more."""
    for index, answers in enumerate(logged):
        stored = store.answers(name, index)
        if stored != answers and not (grows and answers.items() <= stored.items()):
            raise LogFault(
                FindingCode.ANSWERS_DIFFER, decision=index, found=safe_repr(stored), expected=safe_repr(answers)
            )


def check_secrets(store: Store, logged: Mapping[str, str]) -> None:
    """Verify every secret against its digest in the log."""
    stored = {name: compute_digest(content).hex() for name, content in store.secrets().items()}
    for name in {**logged, **stored}:
        if stored.get(name) != logged.get(name):
            if name not in logged and store.find(GLOBAL, CONTROL, get_secret_row_key(name)) is not None:
                continue  # it was created meanwhile
            found, expected = stored.get(name), logged.get(name)
            raise LogFault(FindingCode.SECRET_DIFFERS, name=safe_repr(name), found=found, expected=expected)


def check_snapshots(store: Store, name: str, end: int) -> None:
    """Verify the snapshots that a server would start from to the bit: each is built again from the first row."""
    stored, last = store.snapshots(name), store.head(name).seq
    if not stored:
        return
    if stored[-1].seq > last:
        raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=stored[-1].seq)
    from stagewise.server.snapshots import encode_snapshot  # these import the policies
    from stagewise.server.state_fold import StateFold

    versions = read_versions(store, name)
    version = versions[len(versions)]
    folds: dict[float | None, StateFold] = {}
    for one in stored:
        if one.problem != version.number or one.seq > end:
            continue
        try:
            state = one.learner_state[SEAL_BYTES:]
            feedback_timeout = msgspec.msgpack.decode(state)["feedback_timeout"] if state else None
        except (msgspec.DecodeError, KeyError, TypeError):
            raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=one.seq) from None
        if feedback_timeout not in folds:
            folds[feedback_timeout] = StateFold(version.problem, version.number, version.retired, feedback_timeout)
        fold = folds[feedback_timeout]
        while fold.seq < one.seq:
            fold.take(store.events(name, fold.seq, min(FOLD_ROWS, one.seq - fold.seq)))
        if (state and fold.encode() != state) or encode_snapshot(fold.build_snapshot()) != one.content[SEAL_BYTES:]:
            raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=one.seq)
