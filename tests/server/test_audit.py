"""What a log proves: a change of anything in it is found, and every decision follows from what stands before it."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.problem.refusal import refused
from tests.server.audited import lived
from tests.server.server_helpers import NAME

from stagewise.problem.errors import ErrorCode, Fault, InvalidFile
from stagewise.server.audit.export import INSERT_EVENT, check_proof, prove_decision
from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import Receipt, StoreVerification, verify_store
from stagewise.server.event_log import (
    Event,
    Seal,
    SealPart,
    WriterChain,
    build_seal,
    derive_writer_key,
    encode_canonical,
)
from stagewise.server.messages import UnknownExperiment
from stagewise.server.store.base import INSERT_PART, INSERT_SEAL, Store
from stagewise.server.store.migrate import open_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def clone(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "server.db"))


@pytest.fixture
def store(made: Path) -> Iterator[Store]:
    opened = open_store(str(made), read_only=True)
    yield opened
    opened.close()


def changed(path: Path, *statements: str) -> None:
    """Change a store as somebody with a copy of SQLite does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0


def found(path: Path, *receipts: Receipt) -> StoreVerification:
    store = open_store(str(path), read_only=True)
    try:
        return verify_store(store, receipts)
    finally:
        store.close()


def fault(path: Path, *receipts: Receipt) -> Fault:
    return found(path, *receipts).faults[0]


def sealed_anew(
    path: Path, change: Callable[[str, Event], Event | None], more: Sequence[tuple[str, Event]] = ()
) -> None:
    """Write every row, code and seal anew, as somebody who has the whole store can; None: without this row."""
    with closing(open_store(str(path))) as store:
        secret, chains, seal = store.secrets()["writers"], dict[str, WriterChain](), Seal()
        rows = [(name, event) for name, event in [*store.rows(0), *more]]
        store._change(("DELETE FROM events", ()), ("DELETE FROM seals", ()), ("DELETE FROM seal_parts", ()))
        ends, new = dict[str, SealPart](), list[tuple[str, Event]]()
        for name, event in rows:
            chain = chains.get(event.writer, WriterChain(event.writer, derive_writer_key(secret, event.writer)))
            chains[event.writer], signed, _ = chain.sign(name, change(name, event))
            new.append((name, signed))
            store._change((INSERT_EVENT, (*signed[:-1], name)))
        for first in range(0, len(new), 7):
            seal, parts = build_seal(seal, new[first : first + 7], ends, 0)
            store._change((INSERT_SEAL, seal), *((INSERT_PART, part) for part in parts))
            ends |= {part.experiment: part for part in parts}
        store._change(("DELETE FROM snapshots", ()))


def test_a_log_that_nobody_touched_is_whole(made: Path) -> None:
    result = found(made)
    everywhere, mail = result.logs
    assert (result.faults, result.unsealed) == ([], 0)
    assert (everywhere.rows, mail.experiment, mail.decisions) == (4, NAME, 4 * 25 + 3 + 2 + 3)
    assert found(made, result.receipt) == result


ROW, SECRET = "WHERE number = 41", "WHERE name = 'draws of mail'"
KILL = "WHERE experiment = '' AND instr(CAST(body AS TEXT), 'the whole site is down')"
LAST = "(SELECT max(seal) FROM seals)"
SEAL = "WHERE seal = 9"


@pytest.mark.parametrize(
    ("statement", "code", "detail"),
    [
        (f"UPDATE events SET body = CAST(body || ' ' AS BLOB) {ROW}", "row_changed", 41),
        (f"UPDATE events SET at = at + 1 {ROW}", "row_changed", 41),
        (f"UPDATE events SET key = 'me' {ROW}", "row_changed", 41),
        (f"UPDATE events SET mac = zeroblob(32) {ROW}", "row_changed", 41),
        (f"UPDATE events SET seen = 1 {ROW}", "row_changed", 41),
        (f"UPDATE events SET request_digest = x'00' {ROW}", "row_changed", 41),
        (f"UPDATE events SET body = CAST(replace(body, 'kill', 'more') AS BLOB) {KILL}", "row_changed", None),
        (f"UPDATE events SET experiment = 'other' {ROW}", "row_missing", 41),
        (f"DELETE FROM events {ROW}", "row_missing", 41),
        ("DELETE FROM events WHERE number = (SELECT max(number) FROM events)", "row_missing", None),
        (f"DELETE FROM seals WHERE seal = {LAST}", "seal_differs", None),
        (f"UPDATE seals SET root = zeroblob(32) {SEAL}", "seal_differs", 9),
        (f"UPDATE seals SET hash = zeroblob(32) {SEAL}", "seal_differs", 9),
        (f"UPDATE seals SET high = high + 1 {SEAL}", "seal_differs", 9),
        (f"UPDATE seals SET open = x'0100000000000000' {SEAL}", "seal_differs", 9),
        (f"UPDATE seal_parts SET numbers = x'0700000000000000' {SEAL}", None, None),
        (f"UPDATE seal_parts SET decisions = decisions + 1 {SEAL}", "seal_differs", 9),
        (f"DELETE FROM seal_parts {SEAL}", "seal_differs", 9),
        ("UPDATE answers SET value = 1 - value WHERE number % 7 = 0", "answers_differ", None),
        ("DELETE FROM answers WHERE number = (SELECT max(number) FROM answers)", "answers_differ", None),
        (f"UPDATE secrets SET content = zeroblob(32) {SECRET}", "secret_differs", "'draws of mail'"),
        ("DELETE FROM secrets WHERE name = 'snapshots'", "secret_differs", "'snapshots'"),
        ("INSERT INTO secrets VALUES ('mine', x'00')", "secret_differs", "'mine'"),
        ("UPDATE snapshots SET learner_state = CAST(substr(learner_state, 1, 99) || x'07' AS BLOB)",
         "snapshot_differs", None),
        ("UPDATE snapshots SET content = CAST(content || x'00' AS BLOB)", "snapshot_differs", None),
        ("UPDATE snapshots SET seq = seq + 100000", "snapshot_differs", None),
    ],
)  # fmt: skip
def test_whatever_is_changed_is_found(clone: Path, statement: str, code: str | None, detail: Any) -> None:
    changed(clone, statement)
    one = fault(clone)
    assert code in (None, one.code)
    assert detail is None or detail in one.details.values()
    assert str(one)


def test_rows_that_changed_places_are_found(clone: Path) -> None:
    swap = "UPDATE events SET number = {}, seen = 0 WHERE number = {}"
    changed(clone, swap.format(10**6, 41), swap.format(41, 44), swap.format(44, 10**6))
    assert {one.code for one in found(clone).faults} <= {FindingCode.LINK_MISSING, FindingCode.ROW_CHANGED}


def test_a_log_that_was_made_anew_is_found_by_its_receipt(clone: Path) -> None:
    """Whoever can write everything can seal everything again: only what was kept elsewhere shows it."""
    before, row = found(clone).receipt, None
    with closing(open_store(str(clone), read_only=True)) as store:
        row = store.find(NAME, "decision", "sale-3")
    answer = Receipt.of(row.receipt)
    assert found(clone, before, answer).faults == []

    def excuse(_: str, event: Event) -> Event:
        return event._replace(body=event.body.replace(b'"complaints doubled"', b'"no reason"'))

    sealed_anew(clone, excuse)
    assert found(clone).faults == []
    assert fault(clone, before).code is FindingCode.RECEIPT_DIFFERS
    assert fault(clone, answer).code is FindingCode.RECEIPT_DIFFERS


def test_a_row_that_was_put_into_a_gap_is_found(clone: Path) -> None:
    with closing(open_store(str(clone))) as store:
        last, secret = store.rows(0)[-1][1], store.secrets()["writers"]
    later = last._replace(number=last.number + 5, kind="tick", key="later", body=b"{}")
    sealed_anew(clone, lambda _, event: event, [(NAME, later)])
    assert found(clone).faults == []
    with closing(open_store(str(clone))) as store:
        _, ghost, _ = WriterChain.begin(secret).sign(NAME, later._replace(number=last.number + 2, key="ghost"))
        store._change((INSERT_EVENT, (*ghost[:-1], NAME)))
    assert fault(clone) == (
        FindingCode.ROW_INSERTED, {"row": ghost.number, "kind": "tick", "key": "'ghost'"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("decision", FindingCode.NOT_IN_EFFECT),
        ("outcome", FindingCode.OUTCOME_OF_OTHER_DECISION),
        ("problem", FindingCode.WRONG_NUMBER),
    ],
)
def test_rows_that_are_sealed_and_make_no_sense_are_found(clone: Path, kind: Any, code: str) -> None:
    with closing(open_store(str(clone), read_only=True)) as store:
        last = store.rows(0)[-1][1]
    body = encode_canonical({
        "decision_id": "live-1", "values": {"click": 1.0}, "problem": 1, "snapshot": 0, "control": [0, 0],
    })  # fmt: skip
    number = last.number + 1
    row = last._replace(number=number, seen=last.number, kind=kind, key="new", decision=3, body=body)
    sealed_anew(clone, lambda _, event: event, [(NAME, row)])
    assert fault(clone).code is code


def test_a_decision_is_proved_by_a_receipt(made: Path) -> None:
    result = found(made)
    with closing(open_store(str(made), read_only=True)) as store:
        row = store.find(NAME, "decision", "sale-3")
        proof = prove_decision(store, NAME, "sale-3", result.seals)
    content, receipt = msgspec.json.encode(proof), str(result.receipt)
    assert (proof.receipt, proof.number, proof.mac) == (receipt, row.number, row.mac.hex())
    assert check_proof(content, receipt) == proof
    for forged in (content.replace(b"sale-3", b"sale-4"), content.replace(proof.mac.encode(), b"0" * 64)):
        with refused(InvalidFile, ErrorCode.DIGEST_MISMATCH):
            check_proof(forged, receipt)
    with refused(InvalidFile, ErrorCode.DIGEST_MISMATCH):
        check_proof(content, f"seal:{result.seals}:{'0' * 64}")
    with refused(InvalidFile, ErrorCode.FILE_CORRUPT):
        check_proof(b"{}", receipt)


def test_receipts_of_what_is_not_there(clone: Path) -> None:
    for receipt in (Receipt(100000, "00", True), Receipt(100000, "00")):
        one = fault(clone, receipt)
        assert (one.code, one.details["receipt"]) == (FindingCode.RECEIPT_DIFFERS, receipt)
    for text in ("", "mail", "seal:x:00", "3:zz", "seal:3"):
        with refused(InvalidFile, ErrorCode.INVALID_OPTION):
            Receipt.of(text)


def test_every_decision_follows_from_the_log(store: Store) -> None:
    told = Replay(store, NAME).run()
    assert told.first_difference is None
    assert (told.decisions, told.matching, told.failed) == (108, 108, 0)
    assert told.states > 10


def test_a_part_of_the_log_can_be_replayed(store: Store) -> None:
    told = Replay(store, NAME).run(100, 150)
    assert 0 < told.decisions == told.matching < 50
    with refused(UnknownExperiment, ErrorCode.UNKNOWN_EXPERIMENT):
        Replay(store, "male")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"estimated_reward":', '"estimated_reward":1', "estimated_reward"),
        ('"snapshot":', '"snapshot":9', "snapshots"),
        ('"control":[', '"control":[1', "controls"),
        ('"threshold":0.05', '"threshold":0.5', "limits"),
        ('"mode":"live"', '"mode":"shadow"', "mode"),
    ],
)
def test_a_decision_that_does_not_follow_is_found(clone: Path, old: str, new: str, what: str) -> None:
    swap = f"UPDATE events SET body = CAST(replace(body, '{old}', '{new}') AS BLOB)"
    changed(clone, f"{swap} WHERE kind = 'decision' AND key = 'live-20'")
    store = open_store(str(clone), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.matching == told.decisions - 1
    assert what in told.first_difference.details.values()


def test_outcomes_that_were_changed_change_what_follows(clone: Path) -> None:
    """The clicks of the first users turned round: decisions that were made by them are not what follows from them."""
    swap = "UPDATE events SET body = CAST(replace(body, '\"click\":{}.0', '\"click\":{}.0') AS BLOB) WHERE number < 30"
    changed(clone, swap.format(0, 7), swap.format(1, 0), swap.format(7, 1))
    store = open_store(str(clone), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.matching < told.decisions
    assert told.first_difference.code is FindingCode.NOT_REPRODUCED
