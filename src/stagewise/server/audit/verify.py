"""Verifies a store: seals, writers' chains, unique ids, decisions made with the controls in effect.

Stored outcomes, snapshots and digests of secrets are compared with the log. What is and what is not evident:

- A sealed row that was changed, removed, exchanged or put into a gap is evident by its seal. Who can write everything
  can seal everything anew; a receipt of a seal that is kept elsewhere makes that evident too.
- A row without a seal yet is evident by its writer's chain: if it was changed, or removed while a later row of its
  writer is there. Writers' keys are derived from a secret of the store; who has it can make such a row.
- Not evident: that the last unsealed rows of a writer were removed, until somebody shows the receipt of an answer; that
  a row was added before it was sealed by somebody with the secret; that an outcome was never reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, Fault, InvalidFile, SentenceCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.log_reader import (
    EffectiveControls,
    FindingCode,
    read_effective_controls,
    read_versions,
)
from stagewise.server.controls import RESTORED, ProblemVersion, build_version
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    GLOBAL,
    LOG,
    OUTCOME,
    PROBLEM,
    SECRET,
    Event,
    Seal,
    SealPart,
    WriterChain,
    compute_digest,
    compute_leaf,
    compute_root,
    compute_seal_hash,
    decode_numbers,
    derive_writer_key,
)
from stagewise.server.offline_log import DECODE_PART, OfflineLogPart, join_parts
from stagewise.server.retention import compute_kept_digest, iter_kept
from stagewise.server.snapshots import SIGNATURE_BYTES, LogEnd, Removal, begin_fold, read_checkpoint, read_removal
from stagewise.server.store.base import Store, StoreUnavailable, get_secret_row_key
from stagewise.server.user_keys import open_rows

FOLD_ROWS = 10_000  # rows folded at once
ALL_ROWS = 10**9


class Receipt(NamedTuple):
    """A seal with its hash, as text `seal:17:9f…`, or a row with its code, `1042:03…`, as an answer has it."""

    number: int
    digest: str
    is_seal: bool = False

    def __str__(self) -> str:
        return f"{'seal:' * self.is_seal}{self.number}:{self.digest}"

    @classmethod
    def of(cls, text: str) -> "Receipt":
        """Parse a receipt.

        >>> Receipt.of("seal:3:00ff"), str(Receipt.of("1042:00ff"))
        (Receipt(number=3, digest='00ff', is_seal=True), '1042:00ff')
        """
        try:
            number, digest = text.removeprefix("seal:").split(":")
            return cls(int(number), bytes.fromhex(digest).hex(), text.startswith("seal:"))
        except ValueError:
            raise InvalidFile.must_be(
                ErrorCode.INVALID_OPTION, "the receipt", text, "seal:number:hash, as `verify` prints it, or number:code"
            ) from None


class VerificationResult(NamedTuple):
    """The result for one log."""

    experiment: str
    rows: int
    decisions: int
    fault: Fault | None
    """The first fault; None if there is none."""


class StoreVerification(NamedTuple):
    """The result for a store."""

    logs: list[VerificationResult]
    seals: int
    unsealed: int
    """Rows that no seal has yet."""
    receipt: Receipt
    """Of the last seal."""
    fault: Fault | None
    """The first fault of the seals or of a receipt; None if there is none."""
    removed: int = 0
    """The rows of all seals up to this one were removed."""

    @property
    def faults(self) -> list[Fault]:
        return [fault for fault in (*(one.fault for one in self.logs), self.fault) if fault is not None]


class LogFault(Exception):
    """A log is not intact; its argument is the finding."""

    def __init__(self, code: SentenceCode, /, **details: object) -> None:
        super().__init__(Fault(code, details))


def verify_store(store: Store, receipts: Sequence[Receipt] = ()) -> StoreVerification:
    """Verify the seals and every log of a store, including the global one."""
    return StoreVerifier(store, receipts).run()


class StoreVerifier:
    """Verifies the rows of a store in the order of the seals, then those that have none.

    Rows that a server writes meanwhile are not verified.
    """

    def __init__(self, store: Store, receipts: Sequence[Receipt]) -> None:
        self.store, self.end = store, store.last_seal()
        self.receipts = {one.number: one for one in receipts if one.is_seal}
        self.row_receipts = {one.number: one for one in receipts if not one.is_seal}
        self.secrets = store.read_writers_secrets()
        self.chains: dict[str, WriterChain] = {}
        self.seal = Seal()
        self.sealed = 0  # rows
        self.logs: dict[str, LogVerifier] = {}
        self.faults: dict[str, Fault] = {}
        self.fault: Fault | None = None
        self.is_broken = False  # a row was changed or is missing, so that its seal does not match either
        self.removal: Removal | None = None
        for name in sorted({GLOBAL, *store.experiments(), *store.logs()}):
            self._get_log(name)

    def run(self) -> StoreVerification:
        """Verify everything; of each log, the first fault is found."""
        unsealed = list[tuple[str, Event]]()
        try:
            self._take_removal()
            for seal, parts in self._iter_seals(self.seal.seal):
                self._take_seal(seal, parts)
            has_others = bool(self.store.parts_of_seals(self.end.seal, 2**62)) and self.store.last_seal() == self.end
            if self.seal != self.end or has_others:
                raise LogFault(FindingCode.SEAL_DIFFERS, seal=self.seal.seal + 1)
            unsealed = self._read_unsealed()
            self._check_receipts()
        except LogFault as error:
            (self.fault,) = error.args
        for name, event in unsealed:
            self._take(name, event)
        for name in self.logs:
            self._finish(name)
        if self.fault is None and not self.is_broken:
            try:
                self._check_count()
            except LogFault as error:
                (self.fault,) = error.args
        logs = [
            VerificationResult(name, log.rows, log.decisions, self.faults.get(name)) for name, log in self.logs.items()
        ]
        receipt = Receipt(self.seal.seal, self.seal.hash.hex(), True)
        removed = 0 if self.removal is None else self.removal.seal
        return StoreVerification(logs, self.seal.seal, len(unsealed), receipt, self.fault, removed)

    def _get_log(self, name: str) -> "LogVerifier":
        if name not in self.logs:
            self.logs[name] = LogVerifier(name, read_effective_controls(self.store, name))
        return self.logs[name]

    def _take_removal(self) -> None:
        """Verify the chain of seals whose rows were removed, and the changes of controls and problems that stay."""
        try:
            removal = self.removal = read_removal(self.store)
            for name in self.logs:
                read_checkpoint(self.store, name) if name != GLOBAL else None
        except StoreUnavailable as error:
            raise LogFault(FindingCode.CHECKPOINT_DIFFERS, name=error.details["name"]) from None
        if removal is None:
            return
        while self.seal.seal < removal.seal and (seals := self.store.seals(self.seal.seal, 1000)):
            for seal in seals[: removal.seal - self.seal.seal]:
                if seal.seal != self.seal.seal + 1 or seal.hash != compute_seal_hash(self.seal.hash, seal):
                    raise LogFault(FindingCode.SEAL_DIFFERS, seal=seal.seal)
                self._check_seal_receipt(seal)
                self.seal = seal
        if (self.seal.seal, self.seal.hash) != (removal.seal, removal.hash):
            raise LogFault(FindingCode.SEAL_DIFFERS, seal=removal.seal)
        if compute_kept_digest(iter_kept(self.store, removal)) != removal.kept:
            raise LogFault(FindingCode.KEPT_ROWS_DIFFER, seal=removal.seal)
        for name, row in iter_kept(self.store, removal):
            self._get_log(name).take(row)
        for name, end in removal.ends.items():
            self._get_log(name).begin(end, removal.high)
        for writer, (link, mac) in removal.writers.items():
            self.chains[writer] = WriterChain(writer, b"", link, mac)

    def _iter_seals(self, after: int) -> Iterator[tuple[Seal, list[SealPart]]]:
        while after < self.end.seal and (seals := self.store.seals(after, 100)):
            parts: dict[int, list[SealPart]] = {}
            for part in self.store.parts_of_seals(after, seals[-1].seal):
                parts.setdefault(part.seal, []).append(part)
            for seal in seals:
                if seal.seal <= self.end.seal:
                    yield seal, parts.get(seal.seal, [])
            after = seals[-1].seal

    def _take_seal(self, seal: Seal, parts: list[SealPart]) -> None:
        """Verify a seal and its rows."""
        before, leaves = self.seal, list[tuple[int, bytes]]()
        may_come, rows = set(before.open_numbers), list[tuple[int, str, Event]]()
        for part in parts:
            log, numbers = self._get_log(part.experiment), decode_numbers(part.numbers)
            found = self.store.read_numbers(part.experiment, numbers)
            for seq, number in enumerate(numbers, part.first):
                row = found.get(number)
                if row is None:
                    self._note(part.experiment, Fault.of(FindingCode.ROW_MISSING, row=number, seal=seal.seal))
                    self.is_broken = True
                    continue
                rows.append((number, part.experiment, Event._make((*row, seq))))
                if number <= before.high and number not in may_come:
                    raise LogFault(FindingCode.SEAL_DIFFERS, seal=seal.seal)
            expected = log.position + 1, log.position + len(numbers), sorted(set(numbers))
            if (part.first, part.last, numbers) != expected:
                raise LogFault(FindingCode.SEAL_DIFFERS, seal=seal.seal)
            log.position = part.last
        for number, name, event in sorted(rows):
            self._take(name, event)
            leaves.append((number, compute_leaf(event.mac, event.encode(name))))
        for part in parts:
            log = self._get_log(part.experiment)
            if (part.decisions, part.at, part.highest) != (log.decisions, log.at, log.highest) and not self.is_broken:
                raise LogFault(FindingCode.SEAL_DIFFERS, seal=seal.seal)
        root = compute_root([leaf for _, leaf in leaves]) if leaves else b""
        is_next = seal.seal == before.seal + 1 and seal.size == len(leaves) and seal.term >= before.term
        is_hashed = seal.hash == compute_seal_hash(before.hash, seal)
        high = max([before.high, *(number for number, _, _ in rows)])
        if not (is_next and is_hashed and seal.root == root and seal.high == high) and not self.is_broken:
            raise LogFault(FindingCode.SEAL_DIFFERS, seal=seal.seal)
        self._check_seal_receipt(seal)
        low = 0 if self.removal is None else self.removal.high
        self.seal, self.sealed = seal, self.sealed + sum(number > low for number, _ in leaves)

    def _check_seal_receipt(self, seal: Seal) -> None:
        receipt = self.receipts.pop(seal.seal, None)
        if receipt is not None and receipt.digest != seal.hash.hex():
            raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found=f"the hash {seal.hash.hex()}")

    def _read_unsealed(self) -> list[tuple[str, Event]]:
        """Return the rows that no seal has, by number; open ones are read last, so that no chain has a hole."""
        rows = self.store.rows(self.end.high, ALL_ROWS)
        for number in self.end.open_numbers:
            rows += [row for row in self.store.rows(number - 1, 1) if row[1].number == number]
        return sorted(rows, key=lambda row: row[1].number)

    def _take(self, name: str, event: Event) -> None:
        """Verify a row: its code, and what it says."""
        chain = self.chains.get(event.writer, WriterChain(event.writer, b""))
        chain = chain._replace(key=self._get_key(event.writer, event.number))
        kind, key = event.kind, safe_repr(event.key)
        try:
            if event.link != chain.link + 1:
                raise LogFault(
                    FindingCode.LINK_MISSING,
                    row=event.number,
                    writer=event.writer,
                    link=chain.link + 1,
                    found=event.link,
                )
            if chain.compute_mac(event.encode(name)) != event.mac:
                raise LogFault(FindingCode.ROW_CHANGED, row=event.number, kind=kind, key=key)
            receipt = self.row_receipts.pop(event.number, None)
            if receipt is not None and receipt.digest != event.mac.hex():
                raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found=f"the code {event.mac.hex()}")
            if event.seen >= event.number:
                raise LogFault(FindingCode.NUMBERED_BEFORE_CHOSEN, row=event.number, seen=event.seen)
        except LogFault as error:
            self._note(name, error.args[0])
            self.is_broken = True
        log = self._get_log(name)
        log.count(event)
        try:
            if name not in self.faults:
                log.take(event)
        except LogFault as error:
            self._note(name, error.args[0])
        self.chains[event.writer] = chain._replace(link=event.link, mac=event.mac)

    def _get_key(self, writer: str, number: int) -> bytes:
        """Return the key of a writer at a row; one that was rotated before does not count."""
        current = [secret for first, secret in self.secrets if first < number]
        return derive_writer_key(current[-1] if current else self.secrets[0][1], writer)

    def _note(self, name: str, fault: Fault) -> None:
        self.faults.setdefault(name, fault)

    def _finish(self, name: str) -> None:
        """Compare the other tables with a log."""
        log = self.logs[name]
        if name in self.faults or self.fault is not None:
            return
        try:
            log.finish()
            if name == GLOBAL:
                check_secrets(self.store, log.secrets)
            else:
                check_answers(self.store, log.answers, log.highest)
                check_snapshots(self.store, name, log.position)
        except LogFault as error:
            self._note(name, error.args[0])

    def _check_receipts(self) -> None:
        """Verify that no receipt is of a row or seal that is not there."""
        for receipt in self.receipts.values():
            raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found=f"only {self.seal.seal} seals")
        for number, receipt in self.row_receipts.items():
            if self.removal is not None and number <= self.removal.high and number not in self.removal.open:
                raise LogFault(FindingCode.RECEIPT_REMOVED, receipt=receipt, seal=self.removal.seal)
            if not any(
                row.number == number and row.mac.hex() == receipt.digest for _, row in self.store.rows(number - 1, 1)
            ):
                for row in self.store.iter_events_of_kind(GLOBAL, CONTROL):
                    body = msgspec.json.decode(row.body)
                    if body.get("what") == RESTORED and body["last"] < number < row.number:
                        raise LogFault(FindingCode.RECEIPT_LOST, receipt=receipt, row=row.number)
                raise LogFault(FindingCode.RECEIPT_DIFFERS, receipt=receipt, found="no such row")
        self.row_receipts = {}

    def _check_count(self) -> None:
        """Verify that no row was put into a gap."""
        may_come, low = len(self.end.open_numbers), 0 if self.removal is None else self.removal.high
        if self.store.count_rows(self.end.high) - self.store.count_rows(low) <= self.sealed + may_come:
            return
        sealed, after = set(self.end.open_numbers), low
        for _, parts in self._iter_seals(0 if self.removal is None else self.removal.seal):
            sealed.update(number for part in parts for number in decode_numbers(part.numbers))
        while page := self.store.rows(after):
            for _, event in page:
                if event.number <= self.end.high and event.number not in sealed:
                    raise LogFault(
                        FindingCode.ROW_INSERTED, row=event.number, kind=event.kind, key=safe_repr(event.key)
                    )
            after = page[-1][1].number


class LogVerifier:
    """Verifies what the rows of one log say, in order."""

    def __init__(self, name: str, controls: EffectiveControls) -> None:
        self.name, self.controls = name, controls
        self.version: ProblemVersion | None = None
        self.secrets: dict[str, str] = {}  # digests by name
        self.position = self.rows = self.decisions = self.at = self.highest = 0
        self.keys: set[tuple[str, str]] = set()  # kinds and keys of rows that are not decisions
        self.ids: dict[str, int] = {}  # numbers of decisions by id
        self.parts: list[OfflineLogPart] = []  # parts of an offline log
        self.removed = 0  # rows up to this number were removed
        self.answers: dict[int, dict[str, float]] = {}  # by the number of a decision

    def begin(self, end: LogEnd, removed: int) -> None:
        """Begin at the end of what was removed."""
        self.position, self.decisions, self.at, self.highest = end.seq, end.decisions, end.at, end.highest
        self.removed = removed

    def count(self, event: Event) -> None:
        self.rows, self.decisions = self.rows + 1, self.decisions + (event.kind == DECISION)
        self.at, self.highest = max(self.at, event.at), max(self.highest, event.number)

    def take(self, event: Event) -> None:
        """Verify a row against all rows before it."""
        number, kind, key = event.number, event.kind, safe_repr(event.key)
        if (kind, event.key) in self.keys or (kind == DECISION and event.key in self.ids):
            raise LogFault(FindingCode.ROW_REPEATED, row=number, kind=kind, key=key)
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
            raise LogFault(FindingCode.ROW_MALFORMED, row=number, kind=kind) from None

    def _decision(self, event: Event) -> None:
        """Verify the version and the controls of a decision."""
        error = self.controls.find_error(event)
        if error is not None:
            raise LogFault(error.code, **error.details)
        self.ids[event.key] = event.number
        self.answers[event.number] = {}

    def _problem(self, event: Event) -> None:
        """Verify that a version may follow the one before it."""
        number = 1 if self.version is None else self.version.number + 1
        if event.key != str(number):
            found = safe_repr(event.key)
            raise LogFault(FindingCode.WRONG_NUMBER, row=event.number, kind=PROBLEM, found=found, expected=number)
        try:
            self.version = build_version(self.version, event)
        except StagewiseError as error:
            raise LogFault(FindingCode.VERSION_INVALID, row=event.number, error=error) from None

    def _outcome(self, event: Event) -> None:
        """Verify that an outcome belongs to an earlier decision and reports each signal once."""
        body = msgspec.json.decode(event.body)
        id_ = body["decision_id"]
        if id_ not in self.ids and 0 <= event.decision <= self.removed:
            return  # of a decision that was removed
        if self.ids.get(id_) != event.decision:
            raise LogFault(
                FindingCode.OUTCOME_OF_OTHER_DECISION, row=event.number, key=safe_repr(id_), found=event.decision
            )
        answers = self.answers[event.decision]
        for signal, value in body["values"].items():
            if signal in answers:
                raise LogFault(
                    FindingCode.OUTCOME_REPEATED, row=event.number, signal=safe_repr(signal), key=safe_repr(id_)
                )
            answers[signal] = value

    def _log_part(self, event: Event) -> None:
        """Verify that an offline log comes before all decisions, with all parts and the right digest."""
        part = DECODE_PART(event.body)
        self.parts.append(part)
        first, number = self.parts[0], len(self.parts)
        is_next = (part.log, part.number, part.parts, part.rows) == (first.log, number, first.parts, first.rows)
        is_complete = number < part.parts or join_parts(self.parts).digest.hex() == part.log
        if self.answers or not is_next or not is_complete:
            raise LogFault(FindingCode.OFFLINE_LOG_INVALID, row=event.number, part=number)

    def finish(self) -> None:
        """Verify that an offline log has all parts."""
        if self.parts and len(self.parts) != self.parts[0].parts:
            raise LogFault(FindingCode.OFFLINE_LOG_INVALID, row=self.highest, part=len(self.parts))


def check_answers(store: Store, logged: Mapping[int, Mapping[str, float]], highest: int) -> None:
    """Verify the stored outcomes of each decision; a growing log may have more."""
    for decision, answers in logged.items():
        stored = store.answers(decision)
        if stored != answers and store.answers(decision, highest) != answers:
            raise LogFault(
                FindingCode.ANSWERS_DIFFER, decision=decision, found=safe_repr(stored), expected=safe_repr(answers)
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
    stored, last = store.snapshots(name), store.head(name).sealed
    if not stored:
        return
    if stored[-1].seq > last:
        raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=stored[-1].seq)
    from stagewise.server.snapshots import encode_snapshot  # these import the policies

    versions = read_versions(store, name)
    version = versions[len(versions)]
    folds: dict[float | None, Any] = {}
    for one in stored:
        if one.problem != version.number or one.seq > end:
            continue
        try:
            state = one.learner_state[SIGNATURE_BYTES:]
            feedback_timeout = msgspec.msgpack.decode(state)["feedback_timeout"] if state else None
        except (msgspec.DecodeError, KeyError, TypeError):
            raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=one.seq) from None
        if feedback_timeout not in folds:
            folds[feedback_timeout] = begin_fold(store, name, version, feedback_timeout)
        fold = folds[feedback_timeout]
        while fold.seq < one.seq:
            fold.take(open_rows(store, store.events(name, fold.seq, min(FOLD_ROWS, one.seq - fold.seq))))
        if (state and fold.encode() != state) or encode_snapshot(fold.build_snapshot()) != one.content[
            SIGNATURE_BYTES:
        ]:
            raise LogFault(FindingCode.SNAPSHOT_DIFFERS, row=one.seq)
