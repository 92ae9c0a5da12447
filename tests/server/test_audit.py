"""What a log proves: a change of anything in it is found, and every decision follows from what stands before it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.server.audited import lived
from tests.server.server_helpers import NAME

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.audit.log_reader import Finding, FindingCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import Receipt, VerificationResult, verify_store
from stagewise.server.event_log import Event, compute_chain, encode_canonical
from stagewise.server.messages import UnknownExperiment
from stagewise.server.store.base import Store
from stagewise.server.store.factory import open_store


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


def found(path: Path, *receipts: Receipt) -> list[VerificationResult]:
    store = open_store(str(path), read_only=True)
    try:
        return list(verify_store(store, receipts))
    finally:
        store.close()


def fault(path: Path, *receipts: Receipt) -> Finding:
    (one,) = [one.fault for one in found(path, *receipts) if one.fault is not None]
    return one


def test_a_log_that_nobody_touched_is_whole(made: Path) -> None:
    everywhere, mail = found(made)
    assert (everywhere.fault, mail.fault) == (None, None)
    assert (everywhere.rows, mail.experiment, mail.decisions) == (3, NAME, 4 * 25 + 3 + 2 + 3)
    assert found(made, everywhere.receipt, mail.receipt) == [everywhere, mail]


ROW, SECRET, KILL = "WHERE seq = 41", "WHERE name = 'draws of mail'", "WHERE experiment = '' AND seq = 3"


@pytest.mark.parametrize(
    ("statement", "code", "detail"),
    [
        (f"UPDATE events SET body = CAST(body || ' ' AS BLOB) {ROW}", "row_changed", 41),
        (f"UPDATE events SET at = at + 1 {ROW}", "row_changed", 41),
        (f"UPDATE events SET key = 'me' {ROW}", "row_changed", 41),
        (f"UPDATE events SET chain = zeroblob(32) {ROW}", "row_changed", 41),
        (f"UPDATE events SET request_digest = x'00' {ROW}", "row_changed", 41),
        (f"UPDATE events SET body = CAST(replace(body, 'kill', 'more') AS BLOB) {KILL}", "row_changed", 3),
        (f"DELETE FROM events {ROW}", "row_missing", 41),
        ("DELETE FROM events WHERE seq = 1 AND experiment = 'mail'", "row_missing", 1),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "head_differs", None),
        ("UPDATE heads SET decision_count = decision_count + 1 WHERE experiment = 'mail'", "head_differs", None),
        ("DELETE FROM heads WHERE experiment = 'mail'", "head_differs", None),
        ("UPDATE answers SET value = 1 - value WHERE decision_index = 7", "answers_differ", 7),
        ("DELETE FROM answers WHERE decision_index = 7", "answers_differ", 7),
        ("INSERT INTO answers VALUES ('mail', 9, 'opt_out', 0.0, 1)", "answers_differ", 9),
        (f"UPDATE secrets SET content = zeroblob(32) {SECRET}", "secret_differs", "'draws of mail'"),
        ("DELETE FROM secrets WHERE name = 'snapshots'", "secret_differs", "'snapshots'"),
        ("INSERT INTO secrets VALUES ('mine', x'00')", "secret_differs", "'mine'"),
        ("UPDATE snapshots SET learner_state = CAST(substr(learner_state, 1, 99) || x'07' AS BLOB)",
         "snapshot_differs", None),
        ("UPDATE snapshots SET content = CAST(content || x'00' AS BLOB)", "snapshot_differs", None),
        ("UPDATE snapshots SET seq = seq + 100000", "snapshot_differs", None),
    ],
)  # fmt: skip
def test_whatever_is_changed_is_found(clone: Path, statement: str, code: str, detail: Any) -> None:
    changed(clone, statement)
    one = fault(clone)
    assert one.code == code
    assert detail is None or detail in one.details.values()
    assert str(one)


def test_an_end_that_was_put_back_is_found(clone: Path) -> None:
    first = "SELECT {} FROM events WHERE experiment = 'mail' AND seq = 1"
    values = f"seq = 1, decision_count = 0, control = 1, at = ({first.format('at')}), chain = ({first.format('chain')})"
    changed(clone, f"UPDATE heads SET {values} WHERE experiment = 'mail'")
    assert fault(clone) == (FindingCode.HEAD_DIFFERS, {"row": 2, "end": 1})


def test_rows_that_changed_places_are_found(clone: Path) -> None:
    swap = "UPDATE events SET seq = {} WHERE seq = {} AND experiment = 'mail'"
    changed(clone, swap.format(10**6, 41), swap.format(41, 44), swap.format(44, 10**6))
    assert fault(clone).code is FindingCode.ROW_CHANGED


def test_a_log_that_was_made_anew_is_found_by_its_receipt(clone: Path) -> None:
    """Whoever can write can chain everything again: only what was kept elsewhere shows it."""
    _, before = found(clone)
    with closing(sqlite3.connect(clone)) as connection, connection:
        columns = "seq, at, kind, key, decision_index, body, chain, request_digest"
        rows = connection.execute(f"SELECT {columns} FROM events WHERE experiment = 'mail'")
        chain = bytes(32)
        for event in sorted(Event(*row) for row in rows.fetchall()):
            body = event.body.replace(b'"complaints doubled"', b'"no reason"')
            chain = compute_chain(chain, NAME, event._replace(body=body))
            change = "UPDATE events SET body = ?, chain = ? WHERE experiment = 'mail' AND seq = ?"
            connection.execute(change, (body, chain, event.seq))
        connection.execute("UPDATE heads SET chain = ? WHERE experiment = 'mail'", (chain,))
    assert [one.fault for one in found(clone)] == [None, None]
    assert fault(clone, before.receipt).code is FindingCode.RECEIPT_DIFFERS


@pytest.mark.parametrize(
    ("kind", "later", "code"),
    [
        ("decision", 0, FindingCode.WRONG_NUMBER),
        ("outcome", 0, FindingCode.OUTCOME_OF_OTHER_DECISION),
        ("outcome", -1, FindingCode.ROW_OUT_OF_TIME),
        ("problem", 0, FindingCode.WRONG_NUMBER),
    ],
)
def test_rows_that_are_chained_and_make_no_sense_are_found(clone: Path, kind: str, later: int, code: str) -> None:
    with closing(sqlite3.connect(clone)) as connection, connection:
        seq, at, chain = connection.execute("SELECT seq, at, chain FROM heads WHERE experiment = 'mail'").fetchone()
        (everywhere,) = connection.execute("SELECT control FROM heads WHERE experiment = ''").fetchone()
        (own,) = connection.execute("SELECT control FROM heads WHERE experiment = 'mail'").fetchone()
        made_by = {"problem": 2, "snapshot": 0, "control": [own, everywhere]}
        body = encode_canonical({"decision_id": "live-1", "values": {"click": 1.0}, **made_by})
        event = Event(seq + 1, at + later, kind, "new", 3, body, b"")  # type: ignore[arg-type]
        event = event._replace(chain=compute_chain(chain, NAME, event))
        connection.execute("INSERT INTO events VALUES ('mail', ?, ?, ?, ?, ?, ?, ?, ?)", event)
        connection.execute("UPDATE heads SET seq = ?, chain = ?", (seq + 1, event.chain))
    faults = [one.fault for one in found(clone) if one.experiment == NAME]
    assert faults[0].code is code


def test_receipts_of_what_is_not_there(clone: Path) -> None:
    for receipt in (Receipt("letters", 3, "00"), Receipt(NAME, 100000, "00")):
        one = fault(clone, receipt)
        assert (one.code, one.details["receipt"]) == (FindingCode.RECEIPT_DIFFERS, receipt)
    assert Receipt.of("a:b:12:00ff") == Receipt("a:b", 12, "00ff")
    for text in ("", "mail", "mail:x:00", "mail:3:zz"):
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
    changed(clone, f"{swap} WHERE kind = 'decision' AND decision_index = 20")
    store = open_store(str(clone), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.matching == told.decisions - 1
    assert what in told.first_difference.details.values()


def test_outcomes_that_were_changed_change_what_follows(clone: Path) -> None:
    """The clicks of the first users turned round: decisions that were made by them are not what follows from them."""
    swap = "UPDATE events SET body = CAST(replace(body, '\"click\":{}.0', '\"click\":{}.0') AS BLOB) WHERE seq < 30"
    changed(clone, swap.format(0, 7), swap.format(1, 0), swap.format(7, 1))
    store = open_store(str(clone), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.matching < told.decisions
    assert told.first_difference.code is FindingCode.NOT_REPRODUCED
