"""Opens the store of an address: `server.db`, `sqlite:///server.db`, `postgresql://user@host/database`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from stagewise.files.paths import parse_path
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.server.store.base import Store


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
