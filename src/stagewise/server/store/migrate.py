"""Opening the store of an address, and migrating it: numbered SQL files, applied in order.

They are written for SQLite; `POSTGRES_TYPES` maps the types for PostgreSQL. An older store is migrated when a server
opens it; a newer one is rejected.

What a store begins with after it was restored from a backup: a new term.

Rows that were acknowledged after the backup are gone. Numbers of the new term are above all of theirs, so a receipt of
a lost row is never one of another row; draws of the new term are other ones, so nobody knows them from a lost decision.
"""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from stagewise.files.paths import parse_path
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.server.controls import RESTORED
from stagewise.server.event_log import CONTROL, GLOBAL, AppendRequest, encode_canonical
from stagewise.server.store.base import SELECT_LATEST, Store, StoreUnavailable

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


def open_store(address: str, *, read_only: bool = False) -> Store:
    """Open the store at an address; it is created if there is none, unless it is read-only."""
    file = parse_file_path(address)
    if file is None:
        from stagewise.server.store.postgres import PostgresStore

        return PostgresStore(address, read_only=read_only)
    from stagewise.server.store.sqlite import SqliteStore

    return SqliteStore(file, read_only=read_only)


def parse_file_path(address: str) -> Path | None:
    """Return the file of an address; None if it is a PostgreSQL server.

    `sqlite:///server.db` is a relative path, `sqlite:////srv/server.db` an absolute one.

    >>> str(parse_file_path("sqlite:///server.db")), parse_file_path("postgresql://ada@db/server")
    ('server.db', None)
    """
    scheme = urlsplit(address).scheme if "://" in address else ""
    if scheme in ("postgresql", "postgres"):
        return None
    if scheme not in ("", "sqlite"):
        template = "the store is {address}; it must be a path, sqlite:///path or postgresql://…"
        raise InvalidFile(ErrorCode.INVALID_ADDRESS, template, address=safe_repr(address))
    return parse_path(unquote(address.removeprefix("sqlite://").removeprefix("/")) if scheme else address, "the store")


def begin_after_restore(store: Store, actor: str, reason: str) -> int:
    """Begin a new term, before servers start; return the number of the first row of it."""
    ((last, _),) = store._all(SELECT_LATEST) or [(0, 0)]
    store.begin_term()
    body = {"what": RESTORED, "last": last, "actor": actor, "reason": reason}
    (result,) = store.append([AppendRequest(GLOBAL, CONTROL, "", encode_canonical(body))])
    assert result.event is not None
    return result.event.number
