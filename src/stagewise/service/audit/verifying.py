"""Whether a log is whole: chained without a gap, every id once, every decision made by what held when it was written.

What is kept beside the log is held against it: outcomes by decision, snapshots, which are folded from the log once
more, secrets, by their digests. Whoever can write to a store can make the whole chain anew. A receipt (an experiment, a
row, its digest) that is kept elsewhere proves afterwards that the log up to there is the one that it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.words import shown
from stagewise.service.audit.in_force import BASIS, InForce, in_force
from stagewise.service.audit.reading import versions_of
from stagewise.service.offline import DECODE_PART, Part, joined
from stagewise.service.records import (
    CONTROL,
    DECISION,
    EVERYWHERE,
    LOG,
    ORIGIN,
    OUTCOME,
    PROBLEM,
    SECRET,
    TICK,
    Event,
    Head,
    chained,
    digest,
)
from stagewise.service.store.store import Store, secret_key
from stagewise.service.versions import Version, begun

KINDS = (PROBLEM, DECISION, OUTCOME, CONTROL, TICK, LOG)


class Receipt(NamedTuple):
    """A row and the digest of all up to it: as text, `messages:1042:9f…`; of what holds everywhere, `:7:03…`."""

    experiment: str
    seq: int
    chain: str

    def __str__(self) -> str:
        return f"{self.experiment}:{self.seq}:{self.chain}"

    @classmethod
    def of(cls, text: str) -> "Receipt":
        """Return the receipt that a text is.

        >>> Receipt.of("a:b:3:00ff").experiment
        'a:b'
        """
        experiment, _, rest = text.rpartition(":")[0].rpartition(":")
        chain = text.rpartition(":")[2]
        try:
            return cls(experiment, int(rest), bytes.fromhex(chain).hex())
        except ValueError:
            raise InvalidFile(
                f"the receipt is {shown(text)}; it must be experiment:row:digest, as verify printed it"
            ) from None


class Verified(NamedTuple):
    """What was found in one log."""

    experiment: str
    rows: int
    decisions: int
    receipt: Receipt
    fault: str | None
    """The first thing that is wrong, with its row; None: nothing is."""


class Fault(Exception):
    """Something is wrong with a log."""


def verify(store: Store, receipts: Sequence[Receipt] = ()) -> Iterator[Verified]:
    """Verify every log of a store, and what holds everywhere."""
    names = sorted({EVERYWHERE, *store.experiments(), *store.logs()})
    for receipt in receipts:
        if receipt.experiment not in names:
            why = f"receipt {receipt} is of {shown(receipt.experiment)}, which is not in the store"
            yield Verified(receipt.experiment, 0, 0, receipt, why)
    for name in names:
        expected = {receipt.seq: receipt.chain for receipt in receipts if receipt.experiment == name}
        yield verified(store, name, expected)


def verified(store: Store, name: str, expected: Mapping[int, str]) -> Verified:
    """Verify one log against itself, against receipts, and against what is kept beside it."""
    # What a desk writes meanwhile is above this end, and its answers are asked for only up to it.
    end = store.head(name)
    walk = Walk(name, expected, in_force(store, name))
    fault: str | None = None
    try:
        for event in store.all_events(name):
            if event.seq > end.seq and end.seq:
                break
            walk.take(event)
        walk.finish(end)
        if store.events(name, end.seq, 1) and store.head(name).seq <= end.seq:
            raise Fault(f"row {end.seq + 1} is there, and the store says that the log ends with row {end.seq}")
        if name != EVERYWHERE:
            check_answers(store, name, walk, store.head(name).seq > end.seq)
            check_snapshots(store, name, end.seq)
        else:
            check_secrets(store, walk)
    except Fault as error:
        fault = str(error)
    head = walk.head
    return Verified(name, head.seq, head.places, Receipt(name, head.seq, head.chain.hex()), fault)


class Walk:
    """A walk along a log that stops at the first row that is wrong."""

    def __init__(self, name: str, expected: Mapping[int, str], held: InForce) -> None:
        self.name, self.expected, self.held = name, expected, held
        self.version: Version | None = None
        self.secrets: dict[str, str] = {}  # digests by name
        self.head = Head(chain=ORIGIN)
        self.keys: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self.places: dict[str, int] = {}  # of decisions by their ids
        self.parts: list[Part] = []  # of an offline log
        self.answers: list[dict[str, float] | None] = []  # of decisions by their places; None: nothing was told

    def take(self, event: Event) -> None:
        """Check a row against all before it."""
        head, where = self.head, f"row {event.seq}"
        if event.seq != head.seq + 1:
            raise Fault(f"row {head.seq + 1} is missing: row {event.seq} follows row {head.seq}")
        if chained(head.chain, self.name, event) != event.chain:
            raise Fault(f"{where} ({event.kind} {shown(event.key)}) is not what was written, or not in its place")
        if event.seq in self.expected and event.chain.hex() != self.expected[event.seq]:
            raise Fault(f"{where} has the digest {event.chain.hex()}, and its receipt has {self.expected[event.seq]}")
        if event.at < head.at:
            raise Fault(f"{where} is older than the row before it")
        if event.kind not in KINDS or (self.name == EVERYWHERE and event.kind != CONTROL):
            raise Fault(f"{where} is of kind {shown(event.kind)}, which does not belong there")
        if event.key in (self.places if event.kind == DECISION else self.keys[event.kind]):
            raise Fault(f"{where} is {event.kind} {shown(event.key)} once more")
        said = decoded(event, where)
        if event.kind == DECISION:
            self.decision(event, where)
        else:
            self.keys[event.kind].add(event.key)
        if event.kind == OUTCOME:
            self.outcome(event, said, where)
        elif event.kind == LOG:
            self.logged(event, where)
        elif event.kind == PROBLEM:
            self.problem(event, where)
        elif event.kind == CONTROL and said.get("what") == SECRET:
            self.secrets[said.get("name", "")] = said.get("digest", "")
        control = event.seq if event.kind in (CONTROL, PROBLEM) else head.control
        self.head = Head(event.seq, event.at, len(self.answers), control, event.chain)

    def decision(self, event: Event, where: str) -> None:
        """Check a decision's number, and that it was made by what held when it was written."""
        try:
            basis = BASIS(event.body)
        except msgspec.DecodeError:
            raise Fault(f"{where} does not say by which version, state and controls it was decided") from None
        wrong = self.held.wrong(event.seq, basis)
        if wrong is not None:
            raise Fault(f"{where} is decision {shown(event.key)}: {wrong}")
        if event.place != len(self.answers):
            raise Fault(f"{where} is decision number {event.place}; the next is {len(self.answers)}")
        self.places[event.key] = event.place
        self.answers.append(None)

    def problem(self, event: Event, where: str) -> None:
        """Check that a version may follow the one before it."""
        number = 1 if self.version is None else self.version.number + 1
        if event.key != str(number):
            raise Fault(f"{where} is version {shown(event.key)} of the problem; the next is {number}")
        try:
            self.version = begun(self.version, event)
        except (StagewiseError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise Fault(f"{where} is no version {number} of the problem: {error}") from None

    def outcome(self, event: Event, said: Any, where: str) -> None:
        """Check that an outcome belongs to a decision before it, and tells each signal once."""
        if self.places.get(said.get("of")) != event.place:
            raise Fault(f"{where} tells of {shown(said.get('of'))}, which is not decision number {event.place}")
        known = self.answers[event.place] or {}
        twice = next((signal for signal in said["values"] if signal in known), None)
        if twice is not None:
            raise Fault(f"{where} tells {shown(twice)} of {shown(said['of'])} once more")
        self.answers[event.place] = known | said["values"]

    def logged(self, event: Event, where: str) -> None:
        """Check that an offline log comes before all decisions, part by part, and has the digest that it says."""
        try:
            part = DECODE_PART(event.body)
        except msgspec.ValidationError:
            raise Fault(f"{where} is no part of an offline log") from None
        self.parts.append(part)
        first, number = self.parts[0], len(self.parts)
        if self.answers:
            raise Fault(f"{where} is of an offline log, and decisions come before it")
        if (part.log, part.part, part.parts, part.rows) != (first.log, number, first.parts, first.rows):
            raise Fault(f"{where} is not part {number} of the offline log that begins with part 1")
        if number == part.parts and digest_of(self.parts) != part.log:
            raise Fault(f"{where} ends an offline log with another digest than its rows have")

    def finish(self, end: Head) -> None:
        """Check that the log ends where the store says it does, and that no receipt is of a row beyond."""
        if self.head != end:
            raise Fault(f"the log ends with row {self.head.seq}, and the store says that it ends with row {end.seq}")
        if self.parts and len(self.parts) != self.parts[0].parts:
            raise Fault(f"the offline log has {len(self.parts)} of its {self.parts[0].parts} parts")
        beyond = [seq for seq in self.expected if seq > end.seq]
        if beyond:
            raise Fault(f"there is a receipt of row {max(beyond)}, and the log ends with row {end.seq}")


def digest_of(parts: Sequence[Part]) -> str | None:
    """Return the digest of an offline log; None: its columns have several lengths, or not the same names."""
    try:
        return joined(parts).digest.hex()
    except (KeyError, ValueError):
        return None


def check_answers(store: Store, name: str, walk: Walk, grows: bool) -> None:
    """Check that what is kept of each decision's outcomes is what the log tells; a growing log may know more."""
    for place, answers in enumerate(walk.answers):
        told = answers or {}
        kept = store.answers(name, place)
        if kept != told and not (grows and told.items() <= kept.items()):
            raise Fault(f"decision number {place} has the outcomes {shown(kept)}, and the log says {shown(told)}")


def check_secrets(store: Store, walk: Walk) -> None:
    """Check every secret against the digest in the log; one that was made while the log is read is in neither."""
    kept = {name: digest(content).hex() for name, content in store.secrets().items()}
    for name, told in walk.secrets.items():
        if kept.get(name) != told:
            raise Fault(
                f"the secret {shown(name)} is {'another one' if name in kept else 'gone'}: its digest is {told}"
            )
    unknown = next((name for name in kept if name not in walk.secrets), None)
    if unknown is not None and store.find(EVERYWHERE, CONTROL, secret_key(unknown)) is None:
        raise Fault(f"the secret {shown(unknown)} is there, and the log does not have its digest")


def check_snapshots(store: Store, name: str, end: int) -> None:
    """Check the snapshots that a desk would start from: each is what its rows of the log come to, to the bit."""
    versions = versions_of(store, name)
    kept = [one for one in store.snapshots(name) if one.problem == len(versions) and one.seq <= end]
    beyond = next((one.seq for one in store.snapshots(name) if one.seq > store.head(name).seq), None)
    if beyond is not None:
        raise Fault(f"there is a snapshot of row {beyond}, and the log ends before it")
    if kept:
        from stagewise.service.audit.snapshots import wrong_snapshot  # folding needs what deciding does

        wrong = wrong_snapshot(store, name, versions[len(versions)], kept)
        if wrong is not None:
            raise Fault(wrong)


def decoded(event: Event, where: str) -> Any:
    """Return what a row says."""
    try:
        said = msgspec.json.decode(event.body)
    except msgspec.DecodeError:
        raise Fault(f"{where} is no JSON") from None
    if not isinstance(said, dict):
        raise Fault(f"{where} is no object")
    if event.kind == OUTCOME and not isinstance(said.get("values"), dict):
        raise Fault(f"{where} is an outcome without values")
    return said
