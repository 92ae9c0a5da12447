"""Which store an address means: `desk.db`, `sqlite:///desk.db`, `postgresql://user@host/database`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from stagewise.files.paths import path_of
from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown
from stagewise.service.store.store import Store


def open_store(address: str, *, read_only: bool = False) -> Store:
    """Return the store at an address, ready to use; it is made where there is none, unless it is only read."""
    file = file_of(address)
    if file is None:
        from stagewise.service.store.postgres import PostgresStore

        return PostgresStore(address, read_only=read_only)
    from stagewise.service.store.sqlite import SqliteStore

    return SqliteStore(file, read_only=read_only)


def file_of(address: str) -> Path | None:
    """Return the file that an address means; None: it is a server's.

    `sqlite:///desk.db` is a path from here, `sqlite:////srv/desk.db` one from the root, as elsewhere.

    >>> str(file_of("sqlite:///desk.db")), file_of("postgresql://ada@db/desk")
    ('desk.db', None)
    """
    scheme = urlsplit(address).scheme if "://" in address else ""
    if scheme in ("postgresql", "postgres"):
        return None
    if scheme not in ("", "sqlite"):
        raise InvalidFile(f"the store is {shown(address)}; it must be a path, sqlite:///path or postgresql://…")
    return path_of(unquote(address.removeprefix("sqlite://").removeprefix("/")) if scheme else address, "the store")
