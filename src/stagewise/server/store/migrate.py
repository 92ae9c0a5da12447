"""Migrations: numbered SQL files that are applied in order, once each.

They are written for SQLite; `POSTGRES_TYPES` maps the types for PostgreSQL. An older store is migrated when a server
opens it; a newer one is rejected.
"""

import re
from pathlib import Path
from typing import NamedTuple

from stagewise.problem.errors import ErrorCode
from stagewise.server.store.base import StoreUnavailable

FOLDER = Path(__file__).parent / "migrations"
POSTGRES_TYPES = {"TEXT": 'text COLLATE "C"', "INTEGER": "bigint", "BLOB": "bytea", "REAL": "double precision"}
FILE_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(NamedTuple):
    """An SQL file that migrates a store from version `number − 1` to `number`."""

    number: int
    name: str
    sql: str


def read_migrations(folder: Path) -> list[Migration]:
    """Return the migrations of a folder in order: 1, 2, 3, … without a gap.

    >>> [step.name for step in read_migrations(FOLDER)][:1]
    ['0001_log.sql']
    """
    files = sorted(folder.glob("*.sql"))
    matches = [FILE_NAME.fullmatch(file.name) for file in files]
    numbers = [int(match[1]) if match else 0 for match in matches]
    if numbers != list(range(1, len(files) + 1)):
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{folder} holds {names}; its files are 0001_what.sql, 0002_what.sql, … without a gap")
    return [
        Migration(number, file.name, file.read_text(encoding="utf-8"))
        for number, file in zip(numbers, files, strict=True)
    ]


def to_postgres_sql(sql: str) -> str:
    """Convert SQL of SQLite to PostgreSQL.

    >>> to_postgres_sql("CREATE TABLE keys (name TEXT NOT NULL PRIMARY KEY, made INTEGER) STRICT;")
    'CREATE TABLE keys (name text COLLATE "C" NOT NULL PRIMARY KEY, made bigint);'
    """
    typed = re.sub(rf"\b({'|'.join(POSTGRES_TYPES)})\b", lambda match: POSTGRES_TYPES[match[0]], sql)
    return re.sub(r"\) STRICT(, WITHOUT ROWID)?", ")", typed)


def get_pending_migrations(steps: list[Migration], version: int, where: str, *, read_only: bool) -> list[Migration]:
    """Return the migrations that a store still needs; a reader may not apply them.

    >>> steps = [Migration(1, "a", ""), Migration(2, "b", "")]
    >>> [step.number for step in get_pending_migrations(steps, 1, "server.db", read_only=False)]
    [2]
    """
    if version > len(steps):
        raise StoreUnavailable(
            ErrorCode.FILE_OF_OTHER_VERSION,
            "{where} has version {version}, and this stagewise reads versions up to {steps_count}; "
            "open it with the newer stagewise that wrote it",
            where=where,
            version=version,
            steps_count=len(steps),
        )
    if read_only and version < len(steps):
        raise StoreUnavailable(
            ErrorCode.FILE_OF_OTHER_VERSION,
            "{where} has version {version} of {steps_count}, and a reader does not upgrade it; open "
            "it once with `stagewise serve`",
            where=where,
            version=version,
            steps_count=len(steps),
        )
    return steps[version:]
