"""Durable rows a second, in groups, on both stores of the server; beside each the same rows by a bare executemany.

Half of the rows are decisions with a random id, half are outcomes of them. The bare form inserts the very rows, with
their digests, into a table with the same indices, and commits each group: what it leaves out is what a log is for
(ids looked up, each signal once, codes, seals). The last column is `Writer`: one row a request, in groups as they come.
The second column is for a machine that has other things to do: what one core of its own could do at most.

    .venv/bin/python benchmarks/server_store.py [--rows 60000] [--group 2000] [postgresql://…]

Without an address, PostgreSQL is the machine's, or the wheel's, started for this (flushing every commit).

The state of a long log, from its first row and from its last snapshot, in a file that is removed in the end (10^7
decisions of a month take 8 GB of disk, 3 GB of memory and a quarter of an hour, most of it to write them):

    .venv/bin/python benchmarks/server_store.py --fold 10_000_000 [--days 30]
"""

import argparse
import asyncio
import gc
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
import numpy as np

from stagewise.policies.problem import Problem
from stagewise.server.controls import Controls
from stagewise.server.controls import build_first_version as first_version
from stagewise.server.decide import decide
from stagewise.server.decision_server import warm_up
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    OUTCOME,
    PROBLEM,
    AppendRequest,
    StoredSnapshot,
    encode_canonical,
)
from stagewise.server.learner import BATCH_SIZE
from stagewise.server.messages import DecisionRequest
from stagewise.server.snapshots import SnapshotSigner, build_initial_snapshot, encode_snapshot
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import EVENT_COLUMNS, Store, wall_clock
from stagewise.server.store.migrate import FOLDER, open_store, to_postgres_sql
from stagewise.server.store.sqlite import SqliteStore
from stagewise.server.writer import Writer

Insert = Callable[[list[tuple[object, ...]]], None]
ROUNDS, CLIENTS = 5, 256
NAME = "load"
COLUMNS = f"{EVENT_COLUMNS}, experiment"


def groups_of(rows: int, group: int) -> list[list[AppendRequest]]:
    """Return append requests: decisions of realistic size, and an outcome for each."""
    body = {
        "request": {"context": {"age": 31.0, "segment": "new", "visits": 12.0}, "only": None},
        "action": "push",
        "probabilities": {"email": 0.1, "none": 0.2, "push": 0.7},
        "limits": {"opt_out": {"pessimistic_cost": 0.0131, "threshold": 0.02}},
        **{"choice": "push", "index": 2, "mode": "live", "problem": 1, "snapshot": 12345, "control": [1, 0]},
        **{"sent": "0" * 64, "optimistic_reward": 0.31, "reason": None, "details": {}},
    }
    made = []
    for _ in range(rows // group):
        told = [(str(uuid.uuid4()), encode_canonical(body)) for _ in range(group // 2)]
        asks = [AppendRequest("mail", DECISION, key, said, request_digest=bytes(32)) for key, said in told]
        values = {"click": 1.0}
        asks += [
            AppendRequest(
                "mail",
                OUTCOME,
                "",
                encode_canonical({"decision_id": key, "values": values}),
                decision_id=key,
                values=values,
            )
            for key, _ in told
        ]
        made.append(asks)
    return made


def by_store(store: Store, groups: list[list[AppendRequest]]) -> tuple[float, float]:
    """Return rows a second of a store, and rows a second of this process's own time on a processor."""
    started, worked = time.perf_counter(), time.process_time()
    for asks in groups:
        settled = store.append(asks)
        assert all(each.status == "new" for each in settled)
    rows = sum(map(len, groups))
    return rows / (time.perf_counter() - started), rows / (time.process_time() - worked)


def by_writer(store: Store, asks: list[AppendRequest]) -> float:
    """Return rows a second where each of many clients asks for one row, and waits until it is durable."""
    writer = Writer(store)
    writer.start()

    async def client(mine: list[AppendRequest]) -> None:
        for ask in mine:
            assert (await writer.append(ask)).status == "new"

    async def all_clients() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(client(asks[n::CLIENTS]) for n in range(CLIENTS)))
        return len(asks) / (time.perf_counter() - started)

    rate = asyncio.run(all_clients())
    writer.stop()
    return rate


def rows_of(store: Store, after: int) -> list[tuple[object, ...]]:
    """Return the rows that were just written, for the bare form."""
    rows: list[tuple[object, ...]] = []
    while page := store.rows(after):
        rows += [(*event[:-1], name) for name, event in page]
        after = page[-1][1].number
    return rows


def bare(insert: Insert, rows: list[tuple[object, ...]], group: int) -> float:
    """Return rows a second of a bare executemany."""
    started = time.perf_counter()
    for first in range(0, len(rows), group):
        insert(rows[first : first + group])
    return len(rows) / (time.perf_counter() - started)


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[Store, Insert]]:
    """Yield a store in a file, and what inserts into another such file."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript((FOLDER / "0001_log.sql").read_text(encoding="utf-8"))

    def insert(rows: list[tuple[object, ...]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * 12)})", rows)
        connection.execute("COMMIT")

    store = open_store(str(folder / "server.db"))
    yield store, insert
    store.close()
    connection.close()


@contextmanager
def postgres(address: str) -> Iterator[tuple[Store, Insert]]:
    """Yield a store on a server, and what inserts into another schema there."""
    import psycopg

    store = open_store(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA bare; SET search_path = bare")
        connection.execute(to_postgres_sql((FOLDER / "0001_log.sql").read_text(encoding="utf-8")).encode())

        def insert(rows: list[tuple[object, ...]]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join(['%s'] * 12)})".encode(), rows)

        yield store, insert
        connection.execute("DROP SCHEMA bare CASCADE")
    store.close()


def measured(name: str, store: Store, insert: Insert, size: int, group: int) -> None:
    """Print a line: the median of rounds that take turns, and the range."""
    ours, alone, theirs, single = [], [], [], []
    for _ in range(ROUNDS):
        after = store.seen
        rate, own = by_store(store, groups_of(size, group))
        ours.append(rate)
        alone.append(own)
        theirs.append(bare(insert, rows_of(store, after), group))
        single.append(
            by_writer(store, [ask for asks in groups_of(size // 4, group) for ask in asks if not ask.decision_id])
        )
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    cells = [
        f"{statistics.median(each):,.0f} ({min(each):,.0f} to {max(each):,.0f})"
        for each in (ours, alone, theirs, single)
    ]
    print(f"| {name} | {cells[0]} | {cells[1]} | {cells[2]} | {ratio:.2f} | {cells[3]} |", flush=True)


def grown(address: str, count: int, days: float, problem: dict[str, Any]) -> None:
    """Write a log of so many decisions and half as many outcomes, as if so many days passed; say how fast that went."""
    rng, group, rows, spent, worked = np.random.default_rng(1), 1000, 0, 0.0, 0.0
    played, now = Problem.from_dict(problem), [wall_clock() - round(days * 86_400e6)]
    store = SqliteStore(Path(address), clock=lambda: now[0])
    told = {"actor": "the benchmark", "reason": "load"}
    store.append(
        [AppendRequest(NAME, PROBLEM, "1", encode_canonical({"version": 1, "problem": played.to_dict(), **told}))]
    )
    store.append(
        [AppendRequest(NAME, CONTROL, "", encode_canonical({"what": "mode", "mode": "live", "share": 1.0, **told}))]
    )
    request, snapshot = DecisionRequest({"age": 40.0, "opens": 3.0}), build_initial_snapshot(played, 1, frozenset())
    (record,) = decide(snapshot, Controls(mode="live"), Controls(), bytes(32), [("x", request)])
    body = msgspec.to_builtins(record)
    for first in range(0, count, group):
        now[0] += round(days * 86_400e6 * group / count)
        asks = []
        ages, clicks = rng.integers(18, 99, group), rng.random(group) < 0.1
        for i in range(min(group, count - first)):
            action, id_ = ("nothing", "digest", "offer")[int(ages[i]) % 3], f"d-{first + i:010}"
            row = {**body, "action": action, "request": {"context": {"age": float(ages[i]), "opens": float(i % 8)}}}
            asks.append(AppendRequest(NAME, DECISION, id_, encode_canonical(row)))
            if i % 2:
                values = {"click": float(clicks[i])}
                asks.append(
                    AppendRequest(
                        NAME,
                        OUTCOME,
                        "",
                        encode_canonical({"decision_id": id_, "values": values}),
                        decision_id=id_,
                        values=values,
                    )
                )
        begin, began = time.perf_counter(), time.process_time()
        store.append(asks)
        spent, worked = spent + time.perf_counter() - begin, worked + time.process_time() - began
        rows += len(asks)
    store.close()
    size = Path(address).stat().st_size / 1e9
    told_of = f"{rows / spent:,.0f} rows/s (bar 50,000; {rows / worked:,.0f} of own processor time), {size:.2f} GB"
    print(f"  {rows:,} rows written durably in groups of {len(asks):,}: {told_of}", flush=True)


def spread(store: Store, problem: Problem) -> None:
    """Fold the first rows as if each had been written by itself, at a time of its own: the same rows, other times."""
    rows = [event for after in range(0, 100_000, BATCH_SIZE) for event in store.events(NAME, after, BATCH_SIZE)]
    step, fold = (rows[-1].at - rows[2].at) / len(rows), StateFold(problem, 1)
    rows = [row._replace(at=rows[2].at + round(step * i)) if i > 2 else row for i, row in enumerate(rows)]
    worked = time.process_time()
    for first in range(0, len(rows), BATCH_SIZE):
        fold.take(rows[first : first + BATCH_SIZE])
    spent = (time.process_time() - worked) / len(rows)
    print(
        f"  {len(rows):,} rows with a time each are folded in {spent * 1e6:.1f} us a row, without reading", flush=True
    )


def folded(address: str, count: int, problem: dict[str, Any]) -> None:
    """Fold the log from nothing, keep a snapshot, and start from it again."""
    store, played = SqliteStore(Path(address)), Problem.from_dict(problem)
    warm_up(first_version(played))
    gc.collect()
    gc.freeze()  # as the server does after its start
    spread(store, played)
    begin, worked, fold = time.perf_counter(), time.process_time(), StateFold(played, 1)
    while events := store.events(NAME, fold.seq, BATCH_SIZE):
        fold.take(events)
    took, work = time.perf_counter() - begin, time.process_time() - worked
    more = f"{took / count * 1e7:,.0f} s for 10⁷ at that rate (bar 150), {work / count * 1e7:,.0f} on a processor"
    print(f"  {count:,} decisions folded from nothing in {took:.1f} s: {more}", flush=True)
    store.save_snapshot(
        SnapshotSigner(store).sign(
            StoredSnapshot(NAME, 1, fold.seq, encode_snapshot(fold.build_snapshot()), fold.encode())
        )
    )
    begin, worked, again = time.perf_counter(), time.process_time(), StateFold(played, 1)
    kept = store.get_latest_snapshot(NAME, 1, with_learner_state=True)
    assert kept is not None
    again.restore(SnapshotSigner(store).open(kept, "learner_state"))
    again.take(store.events(NAME, again.seq, BATCH_SIZE))
    took, work = time.perf_counter() - begin, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    assert again.encode() == fold.encode()
    waits = f"{fold.queue.pending_count:,} decisions wait for something, {peak:.1f} GB of memory at most"
    took_of = f"{took:.2f} s (bar 2), {work:.2f} on a processor"
    print(f"  started from its last snapshot ({len(kept.learner_state) / 1e6:.1f} MB) in {took_of}; {waits}")
    store.close()


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("address", nargs="?", help="a PostgreSQL database that may be written to")
    words.add_argument("--rows", type=int, default=60_000, help="rows of a round")
    words.add_argument("--group", type=int, default=2_000, help="rows of a transaction")
    words.add_argument("--fold", type=int, metavar="DECISIONS", help="only fold a log of so many")
    words.add_argument("--days", type=float, default=30.0, help="that they took")
    told = words.parse_args()
    if told.fold is not None:
        from server import PROBLEM as PLAYED

        with tempfile.TemporaryDirectory() as folder:
            grown(f"{folder}/server.db", told.fold, told.days, PLAYED)
            folded(f"{folder}/server.db", told.fold, PLAYED)
        return
    print(f"Rows a second, median of {ROUNDS} (range):\n")
    print(
        f"| | groups of {told.group:,} | of own processor time | bare executemany | ratio | writer, {CLIENTS} clients |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, sqlite(Path(folder)) as (store, insert):
        measured("SQLite", store, insert, told.rows, told.group)
    if told.address is None:
        here = Path(__file__).parent  # its tests.py would hide the folder of tests
        sys.path[:] = [str(here.parent), *(path for path in sys.path if Path(path) != here)]
        from tests.server import servers

        servers.SETTINGS["fsync"] = "on"
        told.address = servers.server().fresh()
    with postgres(told.address) as (store, insert):
        measured("PostgreSQL", store, insert, told.rows, told.group)


if __name__ == "__main__":
    main()
