"""Which store an address means: `desk.db`, `sqlite:///desk.db`, `postgresql://user@host/database`."""

from urllib.parse import unquote, urlsplit

from stagewise.files.paths import path_of
from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown
from stagewise.service.store.store import Store


def open_store(address: str, *, read_only: bool = False) -> Store:
    """Return the store at an address, ready to use; it is made where there is none, unless it is only read.

    `sqlite:///desk.db` is a path from here, `sqlite:////srv/desk.db` one from the root, as elsewhere.
    """
    scheme = urlsplit(address).scheme if "://" in address else ""
    if scheme in ("postgresql", "postgres"):
        from stagewise.service.store.postgres import PostgresStore

        return PostgresStore(address, read_only=read_only)
    if scheme in ("", "sqlite"):
        from stagewise.service.store.sqlite import SqliteStore

        path = unquote(address.removeprefix("sqlite://").removeprefix("/")) if scheme else address
        return SqliteStore(path_of(path, "the store"), read_only=read_only)
    raise InvalidFile(f"the store is {shown(address)}; it must be a path, sqlite:///path or postgresql://…")
