"""Print by how much memory grows while a wide table is decided or learned: python -m tests.cli.measure_tables VERB.

What goes before is done by other processes. The table has a column that nobody reads, of `WIDTH` characters a row;
whoever kept the table would keep it too.
"""

import json
import resource
import sys
import tempfile
from pathlib import Path

from tests.cli.kill_tables import PROBLEM, decide, in_child, learn

import stagewise as sw
from stagewise.files import tables as record_batches
from stagewise.files.tables import read_batches, write_batches

ROWS, WIDTH = 4096, 20_000


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write(path: Path, columns: dict[str, list[float]] | dict[str, list[str]]) -> None:
    """Write a table part by part, each with the wide column."""

    def parts() -> object:
        for first in range(0, ROWS, 128):
            part = {name: values[first : first + 128] for name, values in columns.items()}
            notes = [str(row).rjust(WIDTH) for row in range(first, first + 128)]
            yield from read_batches({**part, "note": notes}).batches

    write_batches(path, parts())  # type: ignore[arg-type]


def prepare(folder: Path) -> None:
    sw.Agent(PROBLEM, seed=7).save(folder / "agent.json")
    write(folder / "users.parquet", {"user_id": list(range(ROWS)), "age": [30.0] * ROWS})


def tell(folder: Path) -> None:
    batches = read_batches(folder / "decisions.parquet").batches
    ids = [id_ for batch in batches for id_ in batch.column("decision_id").to_pylist()]
    write(folder / "outcomes.parquet", {"decision_id": ids, "click": [1.0] * ROWS, "opt_out": [0.0] * ROWS})


def main(verb: str) -> None:
    record_batches.BATCH_ROWS = 128
    with tempfile.TemporaryDirectory() as temporary:
        for work in (prepare, decide, tell, learn):
            if work.__name__ == verb:
                before = peak()
                work(Path(temporary))
                print(json.dumps({"table": ROWS * WIDTH, "grown": peak() - before}))
                return
            in_child(work, Path(temporary), None)


if __name__ == "__main__":
    main(sys.argv[1])
