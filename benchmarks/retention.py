"""Removing the older half of a log: rows a second deleted, beside the same rows in a partition that is dropped.

The partitioned table is what PostgreSQL allows: its unique index contains the number by which it is divided.

    .venv/bin/python benchmarks/retention.py postgresql://… [--rows 200000]
"""

import argparse
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.server_store import groups_of

from stagewise.server.retention import delete_rows
from stagewise.server.snapshots import LogEnd, Removal
from stagewise.server.store.base import Store
from stagewise.server.store.migrate import open_store

PARTITIONED = """
CREATE TABLE parted (LIKE events) PARTITION BY RANGE (number);
CREATE TABLE parted_old PARTITION OF parted FOR VALUES FROM (0) TO ({middle});
CREATE TABLE parted_new PARTITION OF parted FOR VALUES FROM ({middle}) TO (9000000000000000000);
CREATE UNIQUE INDEX ON parted (experiment, kind, key, number);
INSERT INTO parted SELECT * FROM events;
"""
UNIQUE = "CREATE UNIQUE INDEX ON parted (experiment, kind, key)"


def measure(store: Store, rows: int) -> None:
    """Print what removing half of the rows takes."""
    for group in groups_of(rows, 2000):
        store.append(group)
    while store.seal():
        pass
    middle = store.last_part("mail", store.last_seal().seal // 2)
    assert middle is not None
    for statement in PARTITIONED.format(middle=middle.highest + 1).strip().split(";\n"):
        store._change((statement.rstrip(";"), ()))
    try:
        store._change((UNIQUE, ()))
    except Exception as error:
        print(f"a partitioned table with unique ids: {error}")
    seal = store.seals(middle.seal - 1, 1)[0]
    end = LogEnd(middle.last, middle.decisions, middle.at, middle.highest)
    started = time.perf_counter()
    delete_rows(store, Removal(seal.seal, seal.hash, seal.high, seal.open_numbers, b"", {}, {"mail": end}))
    deleted = time.perf_counter() - started
    started = time.perf_counter()
    store._change(("DROP TABLE parted_old", ()))
    dropped = time.perf_counter() - started
    rate = middle.last / deleted
    print(f"{middle.last:,} rows deleted in {deleted:.2f} s, {rate:,.0f} rows/s: 10^6 rows in {1e6 / rate:.0f} s")
    print(f"a partition dropped in {dropped:.3f} s")


def main() -> None:
    """Parse the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    with closing(open_store(options.address)) as store:
        measure(store, options.rows)


if __name__ == "__main__":
    main()
