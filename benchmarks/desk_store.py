"""Durable rows a second, in groups, on both stores of the desk; beside each the same rows by a bare executemany.

Half of the rows are decisions with a random id, half are outcomes of them. The bare form inserts the very rows, with
their digests, into a table with the same indices, and commits each group: what it leaves out is what a log is for
(ids looked up, each signal once, the chain). The last column is `Writer`: one row a request, in groups as they come.
The second column is for a machine that has other things to do: what one core of its own could do at most.

    .venv/bin/python benchmarks/desk_store.py [--rows 60000] [--group 2000] [postgresql://…]

Without an address, PostgreSQL is the machine's, or the wheel's, started for this (flushing every commit).

The state of a long log, from its first row and from its last snapshot, in a file that is removed in the end (10^7
decisions of a month take 8 GB of disk, 3 GB of memory and a quarter of an hour, most of it to write them):

    .venv/bin/python benchmarks/desk_store.py --fold 10_000_000 [--days 30]
"""

import argparse
import asyncio
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

import numpy as np

from stagewise.policies.problem import Problem
from stagewise.service.controls import Controls
from stagewise.service.deciding import decided
from stagewise.service.fold import Fold, beginning, encoded_known
from stagewise.service.learner import AT_ONCE
from stagewise.service.messages import Asked
from stagewise.service.records import CONTROL, DECISION, OUTCOME, PROBLEM, Ask, Kept, canonical
from stagewise.service.snapshots import Seals
from stagewise.service.store.migrating import FOLDER, for_postgres
from stagewise.service.store.opened import open_store
from stagewise.service.store.sqlite import SqliteStore
from stagewise.service.store.store import Store
from stagewise.service.store.tables import wall_clock
from stagewise.service.versions import first as first_version
from stagewise.service.warming import warm
from stagewise.service.writer import Writer

Insert = Callable[[list[tuple[object, ...]]], None]
ROUNDS, CLIENTS = 5, 256
NAME = "load"
COLUMNS = "experiment, seq, at, kind, key, place, body, chain, asked"


def groups_of(rows: int, group: int) -> list[list[Ask]]:
    """Return what a desk asks for: decisions as large as real ones, and what became of each."""
    body = {
        "asked": {"context": {"age": 31.0, "segment": "new", "visits": 12.0}, "only": None},
        "action": "push",
        "probabilities": {"email": 0.1, "none": 0.2, "push": 0.7},
        "limits": {"opt_out": {"dearest": 0.0131, "threshold": 0.02}},
        **{"choice": "push", "index": 2, "mode": "live", "problem": 1, "state": 12345, "control": [1, 0]},
        **{"sent": "0" * 64, "hoped": 0.31, "reason": None, "details": {}},
    }
    made = []
    for _ in range(rows // group):
        told = [(str(uuid.uuid4()), canonical(body)) for _ in range(group // 2)]
        asks = [Ask("mail", DECISION, key, said, asked=bytes(32), control=(0, 0)) for key, said in told]
        values = {"click": 1.0}
        asks += [
            Ask("mail", OUTCOME, "", canonical({"of": key, "values": values}), of=key, values=values) for key, _ in told
        ]
        made.append(asks)
    return made


def by_store(store: Store, groups: list[list[Ask]]) -> tuple[float, float]:
    """Return rows a second of a store, and rows a second of this process's own time on a processor."""
    started, worked = time.perf_counter(), time.process_time()
    for asks in groups:
        settled = store.append(asks)
        assert all(each.verdict == "new" for each in settled)
    rows = sum(map(len, groups))
    return rows / (time.perf_counter() - started), rows / (time.process_time() - worked)


def by_writer(store: Store, asks: list[Ask]) -> float:
    """Return rows a second where each of many clients asks for one row, and waits until it is durable."""
    writer = Writer(store)
    writer.start()

    async def client(mine: list[Ask]) -> None:
        for ask in mine:
            assert (await writer.append(ask)).verdict == "new"

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
    while page := store.events("mail", after):
        rows += [("mail", *event, bytes(32)) for event in page]
        after = page[-1].seq
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
        connection.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * 9)})", rows)
        connection.execute("COMMIT")

    store = open_store(str(folder / "desk.db"))
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
        connection.execute(for_postgres((FOLDER / "0001_log.sql").read_text(encoding="utf-8")).encode())

        def insert(rows: list[tuple[object, ...]]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join(['%s'] * 9)})".encode(), rows)

        yield store, insert
        connection.execute("DROP SCHEMA bare CASCADE")
    store.close()


def measured(name: str, store: Store, insert: Insert, size: int, group: int) -> None:
    """Print a line: the median of rounds that take turns, and the range."""
    ours, alone, theirs, single = [], [], [], []
    for _ in range(ROUNDS):
        after = store.head("mail").seq
        rate, own = by_store(store, groups_of(size, group))
        ours.append(rate)
        alone.append(own)
        theirs.append(bare(insert, rows_of(store, after), group))
        single.append(by_writer(store, [ask for asks in groups_of(size // 4, group) for ask in asks if not ask.of]))
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    cells = [
        f"{statistics.median(each):,.0f} ({min(each):,.0f} to {max(each):,.0f})"
        for each in (ours, alone, theirs, single)
    ]
    print(f"| {name} | {cells[0]} | {cells[1]} | {cells[2]} | {ratio:.2f} | {cells[3]} |", flush=True)


def grown(address: str, count: int, days: float, problem: dict[str, Any]) -> None:
    """Write a log of so many decisions and half as many outcomes, as if so many days passed; say how fast that went."""
    rng, group, rows, spent, worked = np.random.default_rng(1), 1000, 0, 0.0, 0.0
    played, now = Problem.from_plain(problem), [wall_clock() - round(days * 86_400e6)]
    store = SqliteStore(Path(address), clock=lambda: now[0])
    told = {"actor": "the benchmark", "reason": "load"}
    store.append([Ask(NAME, PROBLEM, "1", canonical({"version": 1, "problem": played.plain(), **told}))])
    store.append([Ask(NAME, CONTROL, "", canonical({"what": "mode", "mode": "live", "share": 1.0, **told}))])
    body = decided(
        beginning(played, 1, frozenset()), Controls(mode="live"), Controls(), bytes(32), "x",
        Asked({"age": 40.0, "opens": 3.0}),
    )  # fmt: skip
    for first in range(0, count, group):
        now[0] += round(days * 86_400e6 * group / count)
        asks = []
        ages, clicks = rng.integers(18, 99, group), rng.random(group) < 0.1
        for i in range(min(group, count - first)):
            action, id_ = ("nothing", "digest", "offer")[int(ages[i]) % 3], f"d-{first + i:010}"
            row = {**body, "action": action, "asked": {"context": {"age": float(ages[i]), "opens": float(i % 8)}}}
            asks.append(Ask(NAME, DECISION, id_, canonical(row)))
            if i % 2:
                values = {"click": float(clicks[i])}
                asks.append(Ask(NAME, OUTCOME, "", canonical({"of": id_, "values": values}), of=id_, values=values))
        begin, began = time.perf_counter(), time.process_time()
        store.append(asks)
        spent, worked = spent + time.perf_counter() - begin, worked + time.process_time() - began
        rows += len(asks)
    store.close()
    size = Path(address).stat().st_size / 1e9
    told_of = f"{rows / spent:,.0f} rows/s (bar 20,000; {rows / worked:,.0f} of own processor time), {size:.2f} GB"
    print(f"  {rows:,} rows written durably in groups of {len(asks):,}: {told_of}", flush=True)


def folded(address: str, count: int, problem: dict[str, Any]) -> None:
    """Fold the log from nothing, keep a snapshot, and start from it again."""
    store, played = SqliteStore(Path(address)), Problem.from_plain(problem)
    warm(first_version(played))
    begin, worked, fold = time.perf_counter(), time.process_time(), Fold(played, 1)
    while events := store.events(NAME, fold.seq, AT_ONCE):
        fold.take(events)
    took, work = time.perf_counter() - begin, time.process_time() - worked
    more = f"{took / count * 1e7:,.0f} s for 10⁷ at that rate (bar 300), {work / count * 1e7:,.0f} on a processor"
    print(f"  {count:,} decisions folded from nothing in {took:.1f} s: {more}", flush=True)
    store.keep(Seals(store).seal(Kept(NAME, 1, fold.seq, encoded_known(fold.known()), fold.whole())))
    begin, worked, again = time.perf_counter(), time.process_time(), Fold(played, 1)
    kept = store.latest(NAME, 1, whole=True)
    assert kept is not None
    again.restore(Seals(store).open(kept, "whole"))
    again.take(store.events(NAME, again.seq, AT_ONCE))
    took, work = time.perf_counter() - begin, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    assert again.whole() == fold.whole()
    waits = f"{max(fold.waits.waiting):,} decisions wait for something, {peak:.1f} GB of memory at most"
    took_of = f"{took:.2f} s (bar 5), {work:.2f} on a processor"
    print(f"  started from its last snapshot ({len(kept.whole) / 1e6:.1f} MB) in {took_of}; {waits}")
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
        from desk import PROBLEM as PLAYED

        with tempfile.TemporaryDirectory() as folder:
            grown(f"{folder}/desk.db", told.fold, told.days, PLAYED)
            folded(f"{folder}/desk.db", told.fold, PLAYED)
        return
    print(f"Rows a second, median of {ROUNDS} (range):\n")
    print(
        f"| | groups of {told.group:,} | of own processor time | bare executemany | ratio | writer, {CLIENTS} clients |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, sqlite(Path(folder)) as (store, insert):
        measured("SQLite", store, insert, told.rows, told.group)
    if told.address is None:
        from tests.service import servers

        servers.SETTINGS["fsync"] = "on"
        told.address = servers.server().fresh()
    with postgres(told.address) as (store, insert):
        measured("PostgreSQL", store, insert, told.rows, told.group)


if __name__ == "__main__":
    main()
