"""How a store gets its tables: numbered files of SQL that are applied in order, each once, and never backwards.

They are written for SQLite; what PostgreSQL calls otherwise is in `TYPES`.

A store of an earlier version is taken forward when a desk opens it. One of a later version is refused: who wrote it
knew more.
"""

import re
from pathlib import Path
from typing import NamedTuple

from stagewise.service.store.store import StoreDown

FOLDER = Path(__file__).parent / "migrations"
TYPES = {"TEXT": 'text COLLATE "C"', "INTEGER": "bigint", "BLOB": "bytea", "REAL": "double precision"}
NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Step(NamedTuple):
    """A file of SQL that takes a store from version `number − 1` to `number`."""

    number: int
    name: str
    sql: str


def steps_in(folder: Path) -> list[Step]:
    """Return the steps of a folder in order: 1, 2, 3, … without a gap.

    >>> [step.name for step in steps_in(FOLDER)][:1]
    ['0001_log.sql']
    """
    files = sorted(folder.glob("*.sql"))
    matches = [NAME.fullmatch(file.name) for file in files]
    numbers = [int(match[1]) if match else 0 for match in matches]
    if numbers != list(range(1, len(files) + 1)):
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{folder} holds {names}; its files are 0001_what.sql, 0002_what.sql, … without a gap")
    return [
        Step(number, file.name, file.read_text(encoding="utf-8")) for number, file in zip(numbers, files, strict=True)
    ]


def for_postgres(sql: str) -> str:
    """Return what PostgreSQL takes, where types are the columns' own without a word more.

    >>> for_postgres("CREATE TABLE keys (name TEXT NOT NULL PRIMARY KEY, made INTEGER) STRICT, WITHOUT ROWID;")
    'CREATE TABLE keys (name text COLLATE "C" NOT NULL PRIMARY KEY, made bigint);'
    """
    typed = re.sub(rf"\b({'|'.join(TYPES)})\b", lambda found: TYPES[found[0]], sql)
    return re.sub(r"\) STRICT(, WITHOUT ROWID)?", ")", typed)


def ahead(steps: list[Step], version: int, where: str, *, read_only: bool) -> list[Step]:
    """Return the steps that a store of this version still needs; who only reads may not take them.

    >>> [step.number for step in ahead([Step(1, "a", ""), Step(2, "b", "")], 1, "desk.db", read_only=False)]
    [2]
    """
    if version > len(steps):
        raise StoreDown(
            f"{where} has version {version}, and this stagewise knows versions up to {len(steps)}; "
            "a later one wrote it, so open it with that one"
        )
    if read_only and version < len(steps):
        raise StoreDown(
            f"{where} has version {version} of {len(steps)}, and whoever only reads does not change it; "
            "open it once with `stagewise serve`"
        )
    return steps[version:]
