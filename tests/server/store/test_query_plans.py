"""Every query goes by its index from the first row on, also where the engine has not yet looked at its tables.

A planner that takes another way is quick in a test and takes seconds a batch in an hour: so the way itself is held.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.store.append_requests import control, decision, outcome

from stagewise.server.store import base as queries
from stagewise.server.store.sqlite import SELECT_EXISTING_ANSWERS, SELECT_EXISTING_ROWS, SqliteStore

READS: list[tuple[str, tuple[Any, ...], str]] = [
    (queries.SELECT_RANGE, (100, 110, "mail"), "between"),
    (queries.SELECT_ROWS, (100, 10), "by number"),
    (queries.SELECT_LATEST, (), "last"),
    (queries.SELECT_EVENT, ("mail", "decision", "d1"), "by key"),
    (queries.SELECT_DENSE_EVENTS, ("mail", "decision", 5, 10), "by number"),
    (queries.SELECT_RARE_EVENTS, ("mail", "control", 0, 10), "by kind"),
    (queries.SELECT_CONTROL, ("mail", "control"), "controls"),
    (queries.SELECT_PARTS, ("mail", 100, "mail", 110, 110), "parts"),
    (queries.SELECT_LAST_PART, ("mail", 10), "last part"),
    (queries.SELECT_ANSWERS, (1, 2**62), "answers"),
    (queries.SELECT_LATEST_SNAPSHOT, ("mail", 1, -1), "snapshots"),
]
SQLITE = {
    "between": "events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "by number": "events USING INTEGER PRIMARY KEY (rowid>?)",
    "last": "SCAN events",
    "controls": "events USING INDEX events_by_kind (experiment=? AND kind=?)",
    "parts": "seal_parts USING PRIMARY KEY (experiment=? AND last>? AND last<?)",
    "last part": "seal_parts USING PRIMARY KEY (experiment=?)",
    "by key": "events USING INDEX events_by_key (experiment=? AND kind=? AND key=?)",
    "by kind": "events USING INDEX events_by_kind (experiment=? AND kind=? AND number>?)",
    "answers": "answers USING PRIMARY KEY (decision=?)",
    "snapshots": "snapshots USING INDEX sqlite_autoindex_snapshots_1 (experiment=? AND problem=? AND seq>?)",
}
POSTGRES = {
    **dict.fromkeys(["between", "by number", "last"], "events_pkey"),
    **{"by key": "events_by_key", "by kind": "events_by_kind", "controls": "events_by_kind"},
    **{"parts": "seal_parts_pkey", "last part": "seal_parts_pkey"},
    **{"answers": "answers_pkey", "snapshots": "snapshots_pkey"},
}

ROWS = [control(), *(decision(f"d{n}") for n in range(1500)), *(outcome(f"d{n}", click=1.0) for n in range(1500))]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "server.db")
    store.append(ROWS)
    yield store
    store.close()


def test_sqlite(sqlite: SqliteStore) -> None:
    held = [
        (SELECT_EXISTING_ROWS, ('[["mail", "decision", "d1"]]',), "by key"),
        (SELECT_EXISTING_ANSWERS, ('[["mail", "decision", "d1"]]',), "by key"),
        (SELECT_EXISTING_ANSWERS, ('[["mail", "decision", "d1"]]',), "answers"),
    ]
    for sql, values, way in [*READS, *held]:
        plan = " ".join(row[3] for row in sqlite._all(f"EXPLAIN QUERY PLAN {sql}", *values))
        plan = plan.replace("USING COVERING INDEX", "USING INDEX")
        assert SQLITE[way].partition(" ")[2] in plan, sql
        assert "TEMP B-TREE" not in plan


def test_postgres(postgres: str) -> None:
    pytest.importorskip("psycopg")
    from stagewise.server.store.postgres import PostgresStore
    from stagewise.server.store.postgres_transactions import (
        LOCK_DECISIONS,
        SELECT_EXISTING_ANSWERS,
        SELECT_EXISTING_ROWS,
        SELECT_UNSEALED_ROWS,
    )

    store = PostgresStore(postgres)
    store.append(ROWS)
    store.seal()
    wanted = [(f"d{n}", f"x{n}") for n in range(500)]
    keys = [key for pair in wanted for key in pair]
    mails, kinds = ["mail"] * len(keys), ["decision"] * len(keys)
    batch = [
        (SELECT_EXISTING_ROWS, (mails, kinds, keys), "by key"),
        (SELECT_EXISTING_ANSWERS, (mails, kinds, keys), "by key"),
        (LOCK_DECISIONS, (mails, kinds, keys), "by key"),
        (SELECT_UNSEALED_ROWS, ([5, 9], 1000, 10), "by number"),
    ]
    for sql, values, way in [*READS, *batch]:
        plan = "\n".join(row[0] for row in store._all(f"EXPLAIN {sql}", *values))
        plan = plan.replace("Sort Key", "").replace("Sort  (", "(") if sql is SELECT_UNSEALED_ROWS else plan
        assert f"using {POSTGRES[way]} on" in plan, sql
        assert not any(word in plan for word in ("Seq Scan", "Bitmap", "Sort", "Hash", "Materialize")), plan
    looked_up = [
        line for line in store._all(f"EXPLAIN {SELECT_EXISTING_ROWS}", mails, kinds, keys) if "Index Cond" in line[0]
    ]
    assert all(f"({name} = w.{name})" in looked_up[0][0] for name in ("experiment", "kind", "key")), looked_up
    answers = "\n".join(row[0] for row in store._all(f"EXPLAIN {SELECT_EXISTING_ANSWERS}", mails, kinds, keys))
    assert "decision = events.number" in answers
    store.close()
