"""What leaves a store: decisions as a table with propensities, a copy of all rows, and proof that a row is in the log.

An interrupted copy can be started again: seals are written last, and the target has no row that the source has not.

A proof is checked without the store. It shows that the row was sealed as it is, at its number, in a log whose receipt
the reader has from elsewhere.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stagewise.files.paths import write_bytes
from stagewise.policies.problem import Problem
from stagewise.problem.columns import is_blank
from stagewise.problem.context import check_segment_name
from stagewise.problem.context_columns import Boolean, ContextColumn, Date, Number
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.log_reader import check_experiment, find_decision, read_versions, was_shown
from stagewise.server.audit.verify import Receipt, StoreVerification, verify_store
from stagewise.server.decide import Choice, DecisionRecord, decode_decision
from stagewise.server.event_log import (
    DECISION,
    SHOWN,
    Event,
    Seal,
    compute_leaf,
    compute_path,
    compute_seal_hash,
    decode_numbers,
    follow_path,
)
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    INSERT_SECRET,
    PAGE_SEALS,
    SELECT_CHECKPOINTS,
    UPSERT_CHECKPOINT,
    Store,
    StoreUnavailable,
)
from stagewise.server.store.migrate import open_store
from stagewise.server.user_keys import open_rows

BATCH_ROWS = 20_000  # rows converted at once
RESERVED_COLUMNS = (
    "decision_id", "at", "number", "action", "propensity", "mode", "version", "snapshot", "reason", "message", SHOWN,
)  # fmt: skip


class ExportedDecision(NamedTuple):
    """A decision with its outcomes."""

    event: Event
    record: DecisionRecord
    answers: dict[str, float]


Column = tuple[str, type, Callable[[ExportedDecision], Any]]
"""A name, a type, and the value of a decision."""
ChoiceColumn = tuple[str, type, Callable[[Choice], Any]]
"""The same of what was served, or of what the policy would have served."""


def export_log(store: Store, experiment: str, path: Path) -> int:
    """Write the decisions of a log to a Parquet file; return their number."""
    if path.suffix.lower() != ".parquet":
        raise InvalidFile(ErrorCode.FILE_WRONG_KIND, "{path} must end in .parquet", path=safe_repr(str(path)))
    check_experiment(store, experiment)
    content, count = encode_parquet(store, experiment)
    write_bytes(path, content)
    return count


def encode_parquet(store: Store, experiment: str) -> tuple[bytes, int]:
    """Encode the decisions as Parquet; return them and their number."""
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet

    types = {str: DataType.string(), float: DataType.float64(), int: DataType.int64(), bool: DataType.bool()}
    utc = DataType.timestamp("us", tz="UTC")
    versions = read_versions(store, experiment)
    columns = build_columns(versions[len(versions)].problem)
    schema = Schema([Field(name, utc if name == "at" else types[kind], nullable=True) for name, kind, _ in columns])
    events, batches, count = store.iter_events_of_kind(experiment, DECISION), [], 0
    while portion := list(islice(events, BATCH_ROWS)):
        rows = [
            ExportedDecision(event, decode_decision(event.body), store.answers(event.number))
            for event in open_rows(store, portion)
        ]
        count += len(rows)
        arrays = [Array([get(row) for row in rows], types[kind]) for _, kind, get in columns]
        arrays = [one.cast(utc) if column[0] == "at" else one for one, column in zip(arrays, columns, strict=True)]
        batches.append(RecordBatch.from_arrays(arrays, schema=schema))
    buffer = io.BytesIO()
    write_parquet(RecordBatchReader.from_batches(schema, batches), buffer, compression="zstd(3)")
    return buffer.getvalue(), count


def build_columns(problem: Problem) -> Sequence[Column]:
    """Return the columns in order; what the policy would have served, if something else was, begins with `choice.`."""
    action: ChoiceColumn = ("action", str, lambda choice: choice.action)
    actions = [build_probability_column(name) for name in problem.action_names]
    limits = [build_limit_columns(name) for name in problem.limits]
    reason: ChoiceColumn = ("reason", str, lambda choice: choice.reason)
    message: ChoiceColumn = ("message", str, lambda choice: None if choice.cause is None else choice.cause.message)
    return [
        ("decision_id", str, lambda one: one.event.key),
        ("at", int, lambda one: one.event.at),
        ("number", int, lambda one: one.event.number),
        *(build_context_column(problem, name) for name in problem.context_names),
        of_served(action),
        ("propensity", float, lambda one: one.record.probabilities[one.record.action]),
        *map(of_served, actions),
        ("mode", str, lambda one: one.record.mode),
        ("version", int, lambda one: one.record.problem),
        ("snapshot", int, lambda one: one.record.snapshot),
        *(of_served(column) for columns in limits for column in columns),
        ("estimated_reward", float, lambda one: one.record.estimated_reward),
        of_served(reason),
        of_served(message),
        of_choice(action),
        *map(of_choice, actions),
        *(of_choice(pessimistic_cost) for pessimistic_cost, *_ in limits),
        of_choice(reason),
        of_choice(message),
        *map(build_signal_column, problem.reported),
        (SHOWN, bool, lambda one: was_shown(one.record.request, one.answers)),
    ]


def of_served(column: ChoiceColumn) -> Column:
    name, kind, get = column
    return name, kind, lambda one: get(one.record)


def of_choice(column: ChoiceColumn) -> Column:
    name, kind, get = column
    return f"choice.{name}", kind, lambda one: None if (own := one.record.policy_choice) is None else get(own)


def build_probability_column(name: str) -> ChoiceColumn:
    return f"probability.{name}", float, lambda choice: choice.probabilities.get(name, 0.0)


def build_limit_columns(name: str) -> list[ChoiceColumn]:
    """Return the pessimistic cost, the estimate and the threshold of a limit."""

    def build(what: str) -> ChoiceColumn:
        return f"limit.{name}.{what}", float, lambda choice: getattr(choice.limits.get(name), what, None)

    return [build(what) for what in ("pessimistic_cost", "estimate", "threshold")]


def build_context_column(problem: Problem, name: str) -> Column:
    """Return a column of the context; a name that is also a reserved column gets the prefix `context.`."""
    kind, convert = get_export(problem.declared_columns.get(name), name)
    free = f"context.{name}" if name in RESERVED_COLUMNS else name
    return free, kind, lambda one: convert(one.record.request["context"].get(name))


def build_signal_column(name: str) -> Column:
    """Return a column of a signal; a name that is also a reserved column gets the prefix `signal.`."""
    return f"signal.{name}" if name in RESERVED_COLUMNS else name, float, lambda one: one.answers.get(name)


def get_export(column: ContextColumn | None, name: str) -> tuple[type, Callable[[Any], Any]]:
    """Return the type of a column of the context in an export, and how a logged value is converted."""
    kind: type = float if isinstance(column, Number) else bool if isinstance(column, Boolean) else str

    def convert(value: Any) -> Any:
        if is_blank(value) or isinstance(value, str):
            return None if is_blank(value) else value
        if isinstance(column, Date):
            return column.format(float(value))
        return check_segment_name(value, name) if kind is str else kind(value)

    return kind, convert


COPIED_ROWS = 2_000  # rows of one transaction

INSERT_EVENT = f"INSERT INTO events ({EVENT_COLUMNS}, experiment) VALUES ({', '.join('?' * 12)}) ON CONFLICT DO NOTHING"
SELECT_USER_KEYS = "SELECT id, user_digest, content, is_retired FROM user_keys"
INSERT_USER_KEY = "INSERT INTO user_keys (id, user_digest, content, is_retired) VALUES (?, ?, ?, ?)"
_ANSWER = "decision, signal, value, number"
SELECT_ANSWERS = f"SELECT {_ANSWER} FROM answers WHERE decision > ? AND decision <= ?"
INSERT_ANSWER = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


def copy_and_verify(address: str, to: str) -> StoreVerification:
    """Copy a store; verify the copy and compare its end with the original."""
    if address == to:
        raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, "{address} cannot be copied to itself", address=address)
    open_store(address, read_only=True).close()  # fails if there is no store; opening it for writing would create one
    with closing(open_store(address)) as source, closing(open_store(to)) as target:
        copy_store(source, target)
        result = verify_store(target)
        logs = [one.experiment for one in result.logs]
        differs = [name for name in logs if target.head(name) != source.head(name)]
        if result.faults or differs:
            raise StoreUnavailable(
                ErrorCode.STORE_CORRUPT,
                "the copy is incomplete: {fault}",
                fault=result.faults[0] if result.faults else f"{differs[0]!r} and the original end at different rows",
            )
        return result


def copy_store(source: Store, target: Store) -> None:
    """Copy every row, seal, key and secret into an empty store. Snapshots are not copied; they are rebuilt."""
    secrets = source.secrets()
    has_other_secrets = any(secrets.get(name) != content for name, content in target.secrets().items())
    if target.last_seal().seal or has_other_secrets or has_other_rows(source, target):
        content = ", ".join(map(repr, target.experiments()[:5])) or "keys, controls or secrets, as after a first start"
        raise InvalidFile(
            ErrorCode.FILE_EXISTS, "the target store already has {content}; give an empty store", content=content
        )
    seal, after = source.last_seal(), 0
    while rows := source.rows(after, COPIED_ROWS):
        last = rows[-1][1].number
        answers = source._all(SELECT_ANSWERS, after, last)
        target._change(*((INSERT_EVENT, (*row[:-1], name)) for name, row in rows))
        target._change(*((INSERT_ANSWER, row) for row in answers))
        after = last
    if source.last_seal() != seal or source.rows(after, 1):
        text = "the store received rows while it was copied; stop every server that writes to it, and copy again"
        raise StoreUnavailable(ErrorCode.STORE_BUSY, text)
    target._change(*((INSERT_SECRET, secret) for secret in secrets.items()))
    target._change(*((INSERT_USER_KEY, row) for row in source._all(SELECT_USER_KEYS)))
    target._change(*((UPSERT_CHECKPOINT, row) for row in source._all(SELECT_CHECKPOINTS)))
    for first in range(0, seal.seal, PAGE_SEALS):
        seals = source.seals(first, PAGE_SEALS)
        parts = source.parts_of_seals(first, seals[-1].seal)
        target._change(*((INSERT_SEAL, one) for one in seals), *((INSERT_PART, part) for part in parts))
    target.continue_numbers()


def has_other_rows(source: Store, target: Store) -> bool:
    """Return whether the target has a row that the source has not."""
    after = 0
    while rows := target.rows(after, COPIED_ROWS):
        last = rows[-1][1].number
        own = {row for row in source.rows(after, COPIED_ROWS) if row[1].number <= last}
        if not own.issuperset(rows):
            return True
        after = last
    return False


class Proof(msgspec.Struct):
    """A row, and how the hash of a seal follows from it."""

    experiment: str
    number: int
    row: str
    """What the leaf covers after the code, as text."""
    mac: str
    """The code of the row, hexadecimal."""
    path: list[tuple[str, str]]
    """The neighbours on the way to the Merkle root: side and digest."""
    before: str
    """The hash of the seal before the row's."""
    seals: list[Seal]
    """The row's seal and those after it, up to the receipt."""
    receipt: str
    """Of the last of these seals."""

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


def prove_decision(store: Store, experiment: str, id_: str, until: int = 0) -> Proof:
    """Return the proof that a decision is in the log, up to a seal (0: its own)."""
    event = find_decision(store, check_experiment(store, experiment), id_)
    own = store.seal_at(experiment, store.find_place(experiment, event.number))
    if not own.seal:
        raise InvalidFile(ErrorCode.NOT_SEALED, "decision {id} is not sealed yet; try again later", id=safe_repr(id_))
    last = max(until, own.seal)
    seals = store.seals(own.seal - 2, last - own.seal + 2) if own.seal > 1 else [Seal(), *store.seals(0, last)]
    if seals[-1].seal != last:
        raise InvalidFile.must_be(ErrorCode.OUT_OF_RANGE, "the seal", until, f"at most {store.last_seal().seal}")
    rows = list[tuple[int, str, Event]]()
    for part in store.parts_of_seals(own.seal - 1, own.seal):
        found = store.read_numbers(part.experiment, decode_numbers(part.numbers))
        rows += [(number, part.experiment, Event(*row)) for number, row in found.items()]
    rows.sort()
    leaves = [compute_leaf(row.mac, row.encode(name)) for _, name, row in rows]
    path = compute_path(leaves, [number for number, _, _ in rows].index(event.number))
    return Proof(
        experiment, event.number, event.encode(experiment).decode(), event.mac.hex(),
        [(side, digest.hex()) for side, digest in path], seals[0].hash.hex(), seals[1:],
        str(Receipt(last, seals[-1].hash.hex(), True)),
    )  # fmt: skip


def check_proof(content: bytes, receipt: str) -> Proof:
    """Return a proof that holds for a receipt. Raises InvalidFile."""
    try:
        proof = msgspec.json.decode(content, type=Proof)
        head: Any = msgspec.json.decode(proof.row[: proof.row.index("]") + 1])
        leaf = hashlib.sha256(b"\0" + bytes.fromhex(proof.mac) + proof.row.encode()).digest()
        root = follow_path(leaf, [(side, bytes.fromhex(digest)) for side, digest in proof.path])
        before = bytes.fromhex(proof.before)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidFile(ErrorCode.FILE_CORRUPT, "the proof cannot be read: {error}", error=error) from None
    is_linked = bool(proof.seals) and proof.seals[0].root == root and head[:2] == [proof.experiment, proof.number]
    for seal in proof.seals:
        before = compute_seal_hash(before, seal)
    expected = Receipt(proof.seals[-1].seal if proof.seals else 0, before.hex(), True)
    if not is_linked or Receipt.of(receipt) != expected:
        template = (
            "the proof does not lead to the receipt {receipt}: the row, its path or a seal was changed, or the proof "
            "ends with another seal; make it again with --until"
        )
        raise InvalidFile(ErrorCode.DIGEST_MISMATCH, template, receipt=receipt)
    return proof
