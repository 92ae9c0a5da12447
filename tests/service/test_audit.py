"""What a log proves: a change of anything in it is found, and every decision follows from what stands before it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.service.audited import lived
from tests.service.desks import NAME

from stagewise.problem.errors import InvalidFile
from stagewise.service.audit.replaying import Replay
from stagewise.service.audit.verifying import Receipt, Verified, verify
from stagewise.service.errors import UnknownExperiment
from stagewise.service.records import Event, canonical, chained
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "desk.db"))


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


def found(path: Path, *receipts: Receipt) -> list[Verified]:
    store = open_store(str(path), read_only=True)
    try:
        return list(verify(store, receipts))
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
        ("UPDATE heads SET places = places + 1 WHERE experiment = 'mail'", "the store says"),
        ("DELETE FROM heads WHERE experiment = 'mail'", "the store says that it ends with row 0"),
        ("UPDATE answers SET value = 1 - value WHERE place = 7", "decision number 7 has the outcomes"),
        ("DELETE FROM answers WHERE place = 7", "decision number 7 has the outcomes {}"),
        ("INSERT INTO answers VALUES ('mail', 9, 'opt_out', 0.0, 1)", "decision number 9 has the outcomes"),
        ("UPDATE events SET asked = x'00' WHERE seq = 41", "row 41 ("),
        ("UPDATE secrets SET content = zeroblob(32) WHERE name = 'draws of mail'", "'draws of mail' is another one"),
        ("DELETE FROM secrets WHERE name = 'snapshots'", "the secret 'snapshots' is gone"),
        ("INSERT INTO secrets VALUES ('mine', x'00')", "the log does not have its digest"),
        ("UPDATE snapshots SET whole = CAST(substr(whole, 1, 99) || x'07' AS BLOB)", "is not what the log comes to"),
        ("UPDATE snapshots SET content = CAST(content || x'00' AS BLOB)", "is not what the log comes to"),
        ("UPDATE snapshots SET seq = seq + 100000", "there is a snapshot of row"),
    ],
)
def test_whatever_is_changed_is_found(copied: Path, statement: str, words: str) -> None:
    changed(copied, statement)
    assert words in fault(copied)


def test_a_control_everywhere_that_was_changed_is_found(copied: Path) -> None:
    """And so is every decision that was made after it: what it names did not hold."""
    change = "UPDATE events SET body = CAST(replace(body, '\"kill\"', '\"revive\"') AS BLOB)"
    changed(copied, f"{change} WHERE experiment = '' AND seq = (SELECT max(seq) FROM events WHERE experiment = '')")
    assert "row 3 (control '3')" in fault(copied)


def test_an_end_that_was_put_back_is_found(copied: Path) -> None:
    first = "SELECT {} FROM events WHERE experiment = 'mail' AND seq = 1"
    told = f"seq = 1, places = 0, control = 1, at = ({first.format('at')}), chain = ({first.format('chain')})"
    changed(copied, f"UPDATE heads SET {told} WHERE experiment = 'mail'")
    assert fault(copied) == "row 2 is there, and the store says that the log ends with row 1"


def test_rows_that_changed_places_are_found(copied: Path) -> None:
    swap = "UPDATE events SET seq = {} WHERE seq = {} AND experiment = 'mail'"
    changed(copied, swap.format(10**6, 41), swap.format(41, 44), swap.format(44, 10**6))
    assert "row 41 (" in fault(copied)


def test_a_log_that_was_made_anew_is_found_by_its_receipt(copied: Path) -> None:
    """Whoever can write can chain everything again: only what was kept elsewhere shows it."""
    _, before = found(copied)
    with closing(sqlite3.connect(copied)) as connection, connection:
        columns = "seq, at, kind, key, place, body, chain, asked"
        rows = connection.execute(f"SELECT {columns} FROM events WHERE experiment = 'mail'")
        chain = bytes(32)
        for event in sorted(Event(*row) for row in rows.fetchall()):
            told = event.body.replace(b'"complaints doubled"', b'"no reason"')
            chain = chained(chain, NAME, event._replace(body=told))
            change = "UPDATE events SET body = ?, chain = ? WHERE experiment = 'mail' AND seq = ?"
            connection.execute(change, (told, chain, event.seq))
        connection.execute("UPDATE heads SET chain = ? WHERE experiment = 'mail'", (chain,))
    assert [one.fault for one in found(copied)] == [None, None]
    assert f"row {before.rows} has the digest {chain.hex()}" in fault(copied, before.receipt)


@pytest.mark.parametrize(
    ("kind", "later", "words"),
    [("decision", 0, "is decision number"), ("outcome", 0, "tells of"), ("outcome", -1, "older than the row before")],
)
def test_rows_that_are_chained_and_make_no_sense_are_found(copied: Path, kind: str, later: int, words: str) -> None:
    with closing(sqlite3.connect(copied)) as connection, connection:
        seq, at, chain = connection.execute("SELECT seq, at, chain FROM heads WHERE experiment = 'mail'").fetchone()
        (everywhere,) = connection.execute("SELECT control FROM heads WHERE experiment = ''").fetchone()
        (own,) = connection.execute("SELECT control FROM heads WHERE experiment = 'mail'").fetchone()
        made_by = {"problem": 2, "state": 0, "control": [own, everywhere]}
        body = canonical({"of": "live-1", "values": {"click": 1.0}, **made_by})
        event = Event(seq + 1, at + later, kind, "new", 3, body, b"")  # type: ignore[arg-type]
        event = event._replace(chain=chained(chain, NAME, event))
        connection.execute("INSERT INTO events VALUES ('mail', ?, ?, ?, ?, ?, ?, ?, ?)", event)
        connection.execute("UPDATE heads SET seq = ?, chain = ?", (seq + 1, event.chain))
    faults = [one.fault for one in found(copied) if one.experiment == NAME]
    assert words in str(faults[0])


def test_receipts_of_what_is_not_there(copied: Path) -> None:
    assert "which is not in the store" in fault(copied, Receipt("letters", 3, "00"))
    assert "there is a receipt of row 100000" in fault(copied, Receipt(NAME, 100000, "00"))
    assert Receipt.of("a:b:12:00ff") == Receipt("a:b", 12, "00ff")
    for text in ("", "mail", "mail:x:00", "mail:3:zz"):
        with pytest.raises(InvalidFile, match="experiment:row:digest"):
            Receipt.of(text)


def test_every_decision_follows_from_the_log(store: Store) -> None:
    told = Replay(store, NAME).run()
    assert told.first is None
    assert (told.decisions, told.agree, told.failed) == (108, 108, 0)
    assert told.states > 10


def test_a_part_of_the_log_can_be_replayed(store: Store) -> None:
    told = Replay(store, NAME).run(100, 150)
    assert 0 < told.decisions == told.agree < 50
    with pytest.raises(UnknownExperiment, match=r"'male' is no experiment of this store; did you mean 'mail'\?"):
        Replay(store, "male")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"hoped":', '"hoped":1', "hoped is"),
        ('"state":', '"state":9', "were not there when it was made"),
        ('"control":[', '"control":[1', "and those rows are none"),
        ('"threshold":0.05', '"threshold":0.5', "limits is"),
        ('"mode":"live"', '"mode":"shadow"', "mode is 'shadow' in the log and 'live' by replay"),
    ],
)
def test_a_decision_that_does_not_follow_is_found(copied: Path, old: str, new: str, words: str) -> None:
    swap = f"UPDATE events SET body = CAST(replace(body, '{old}', '{new}') AS BLOB)"
    changed(copied, f"{swap} WHERE kind = 'decision' AND place = 20")
    store = open_store(str(copied), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.agree == told.decisions - 1
    assert words in str(told.first)


def test_outcomes_that_were_changed_change_what_follows(copied: Path) -> None:
    """The clicks of the first users turned round: decisions that were made by them are not what follows from them."""
    swap = "UPDATE events SET body = CAST(replace(body, '\"click\":{}.0', '\"click\":{}.0') AS BLOB) WHERE seq < 30"
    changed(copied, swap.format(0, 7), swap.format(1, 0), swap.format(7, 1))
    store = open_store(str(copied), read_only=True)
    try:
        told = Replay(store, NAME).run()
    finally:
        store.close()
    assert told.agree < told.decisions
    assert "by replay" in str(told.first)
