"""What a log proves: a change of anything in it is found, and every decision follows from what stands before it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.audited import lived
from tests.server.server_helpers import NAME

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.audit.replay_log import Replay
from stagewise.server.audit.verify_log import Receipt, VerificationResult, verify_store
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


def fault(path: Path, *receipts: Receipt) -> str:
    faults = [one.fault for one in found(path, *receipts) if one.fault is not None]
    assert len(faults) == 1
    return faults[0]


def test_a_log_that_nobody_touched_is_whole(made: Path) -> None:
    everywhere, mail = found(made)
    assert (everywhere.fault, mail.fault) == (None, None)
    assert (everywhere.rows, mail.experiment, mail.decisions) == (3, NAME, 4 * 25 + 3 + 2 + 3)
    assert found(made, everywhere.receipt, mail.receipt) == [everywhere, mail]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE seq = 41", "row 41 ("),
        ("UPDATE events SET at = at + 1 WHERE seq = 41", "row 41 ("),
        ("UPDATE events SET key = 'me' WHERE seq = 41", "row 41 ("),
        ("UPDATE events SET chain = zeroblob(32) WHERE seq = 41", "row 41 ("),
        ("DELETE FROM events WHERE seq = 41", "row 41 is missing: row 42 follows row 40"),
        ("DELETE FROM events WHERE seq = 1 AND experiment = 'mail'", "row 1 is missing"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "the log ends with row"),
        ("UPDATE heads SET decision_count = decision_count + 1 WHERE experiment = 'mail'", "the store says"),
        ("DELETE FROM heads WHERE experiment = 'mail'", "the store says row 0"),
        ("UPDATE answers SET value = 1 - value WHERE decision_index = 7", "decision number 7 has the outcomes"),
        ("DELETE FROM answers WHERE decision_index = 7", "decision number 7 has the outcomes {}"),
        ("INSERT INTO answers VALUES ('mail', 9, 'opt_out', 0.0, 1)", "decision number 9 has the outcomes"),
        ("UPDATE events SET request_digest = x'00' WHERE seq = 41", "row 41 ("),
        ("UPDATE secrets SET content = zeroblob(32) WHERE name = 'draws of mail'", "'draws of mail' was replaced"),
        ("DELETE FROM secrets WHERE name = 'snapshots'", "the secret 'snapshots' is missing"),
        ("INSERT INTO secrets VALUES ('mine', x'00')", "the log does not have its digest"),
        (
            "UPDATE snapshots SET learner_state = CAST(substr(learner_state, 1, 99) || x'07' AS BLOB)",
            "does not match the log",
        ),
        ("UPDATE snapshots SET content = CAST(content || x'00' AS BLOB)", "does not match the log"),
        ("UPDATE snapshots SET seq = seq + 100000", "there is a snapshot of row"),
    ],
)
def test_whatever_is_changed_is_found(clone: Path, statement: str, words: str) -> None:
    changed(clone, statement)
    assert words in fault(clone)


def test_a_control_everywhere_that_was_changed_is_found(clone: Path) -> None:
    """And so is every decision that was made after it: what it names did not hold."""
    change = "UPDATE events SET body = CAST(replace(body, '\"kill\"', '\"resume\"') AS BLOB)"
    changed(clone, f"{change} WHERE experiment = '' AND seq = (SELECT max(seq) FROM events WHERE experiment = '')")
    assert "row 3 (control '3')" in fault(clone)


def test_an_end_that_was_put_back_is_found(clone: Path) -> None:
    first = "SELECT {} FROM events WHERE experiment = 'mail' AND seq = 1"
    values = f"seq = 1, decision_count = 0, control = 1, at = ({first.format('at')}), chain = ({first.format('chain')})"
    changed(clone, f"UPDATE heads SET {values} WHERE experiment = 'mail'")
    assert fault(clone) == "row 2 exists, and the store says that the log ends with row 1"


def test_rows_that_changed_places_are_found(clone: Path) -> None:
    swap = "UPDATE events SET seq = {} WHERE seq = {} AND experiment = 'mail'"
    changed(clone, swap.format(10**6, 41), swap.format(41, 44), swap.format(44, 10**6))
    assert "row 41 (" in fault(clone)


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
    assert f"row {before.rows} has the digest {chain.hex()}" in fault(clone, before.receipt)


@pytest.mark.parametrize(
    ("kind", "later", "words"),
    [
        ("decision", 0, "is decision number"),
        ("outcome", 0, "is an outcome of"),
        ("outcome", -1, "older than the row before"),
    ],
)
def test_rows_that_are_chained_and_make_no_sense_are_found(clone: Path, kind: str, later: int, words: str) -> None:
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
    assert words in str(faults[0])


def test_receipts_of_what_is_not_there(clone: Path) -> None:
    assert "which is not in the store" in fault(clone, Receipt("letters", 3, "00"))
    assert "there is a receipt of row 100000" in fault(clone, Receipt(NAME, 100000, "00"))
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
    ("old", "new", "words"),
    [
        ('"optimistic_reward":', '"optimistic_reward":1', "optimistic_reward is"),
        ('"snapshot":', '"snapshot":9', "did not exist when it was made"),
        ('"control":[', '"control":[1', "which are not rows of controls"),
        ('"threshold":0.05', '"threshold":0.5', "limits is"),
        ('"mode":"live"', '"mode":"shadow"', "mode is 'shadow' in the log and 'live' by replay"),
    ],
)
def test_a_decision_that_does_not_follow_is_found(clone: Path, old: str, new: str, words: str) -> None:
    swap = f"UPDATE events SET body = CAST(replace(body, '{old}', '{new}') AS BLOB)"
    changed(clone, f"{swap} WHERE kind = 'decision' AND decision_index = 20")
    store = open_store(str(clone), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.matching == told.decisions - 1
    assert words in str(told.first_difference)


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
    assert "by replay" in str(told.first_difference)
