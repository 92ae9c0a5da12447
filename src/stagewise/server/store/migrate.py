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
READABLE_FROM = 3  # rows of earlier versions are written in names that this version does not read
POSTGRES_TYPES = {"TEXT": 'text COLLATE "C"', "INTEGER": "bigint", "BLOB": "bytea", "REAL": "double precision"}


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
    steps = [
        Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.sql"))
    ]
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the files of {folder} must be 0001_what.sql, 0002_what.sql, … without a gap")
    return steps


def to_postgres_sql(sql: str) -> str:
    """Convert SQL of SQLite to PostgreSQL.

    >>> to_postgres_sql("CREATE TABLE keys (name TEXT NOT NULL PRIMARY KEY, made INTEGER) STRICT;")
    'CREATE TABLE keys (name text COLLATE "C" NOT NULL PRIMARY KEY, made bigint);'
    """
    typed = re.sub(rf"\b({'|'.join(POSTGRES_TYPES)})\b", lambda match: POSTGRES_TYPES[match[0]], sql)
    return re.sub(r"\) STRICT(, WITHOUT ROWID)?", ")", typed)


def get_pending_migrations(steps: list[Migration], version: int, where: str, *, read_only: bool) -> list[Migration]:
    """Return the migrations that a store still needs; a reader may not apply them."""
    if version > len(steps) or (read_only and version < len(steps)):
        hint = (
            "open it with the newer stagewise that wrote it"
            if version > len(steps)
            else "a reader does not upgrade it: open it once with `stagewise serve`"
        )
        template = "{where} has version {version}, and this stagewise reads version {latest}; {hint}"
        data = {"where": where, "version": version, "latest": len(steps), "hint": hint}
        raise StoreUnavailable(ErrorCode.FILE_OF_OTHER_VERSION, template, **data)
    if 0 < version < READABLE_FROM:
        template = (
            "{where} has version {version}, and this stagewise reads versions from {oldest} on; export its decisions "
            "with the older stagewise and start a new store from them"
        )
        data = {"where": where, "version": version, "oldest": READABLE_FROM}
        raise StoreUnavailable(ErrorCode.FILE_OF_OTHER_VERSION, template, **data)
    return steps[version:]
