"""Access keys `sw_<name>_<secret>` with their roles; the store keeps only their digests."""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count
from typing import NamedTuple

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import KeyRow
from stagewise.server.messages import Conflict
from stagewise.server.store.base import Store, StoreUnavailable

log = logging.getLogger("stagewise.server")

READER, WRITER, ADMIN = "reader", "writer", "admin"
ROLES = (READER, WRITER, ADMIN)  # each role includes the ones before it
INITIAL_KEYS = ((ADMIN, ADMIN), ("app", WRITER), ("viewer", READER))
REFRESH_INTERVAL = 0.3  # seconds between two reads of the store: a revoked key is rejected within a second
NULL_DIGEST = bytes(32)  # compared with when no key has this name, so that the comparison takes as long


class InvalidKey(StagewiseError):
    """The name or role of a key is invalid."""


class UnknownKey(StagewiseError):
    """No active key has this name."""


class KeyHolder(NamedTuple):
    """The name and role of a valid key."""

    name: str
    role: str

    def has_role(self, role: str) -> bool:
        """Return whether this role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


class AccessKeys:
    """The keys of a store, as last read by this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, KeyRow] = {}
        self._holders: dict[bytes, KeyHolder] = {}  # valid keys used since the last refresh
        self.refresh()

    def refresh(self) -> None:
        rows = self._store.keys()
        self._rows, self._holders = {row.name: row for row in rows}, {}

    async def watch(self) -> None:
        """Refresh the keys periodically until cancelled.

        While the store cannot be reached, the last keys stay valid: nothing can be written then, and a holder of a
        valid key gets the safe action.
        """
        executor = ThreadPoolExecutor(1, "stagewise-keys")  # a thread of its own: other waiting tasks must not delay it
        try:
            while True:
                await asyncio.sleep(REFRESH_INTERVAL)
                try:
                    await asyncio.get_running_loop().run_in_executor(executor, self.refresh)
                except StoreUnavailable:
                    continue
                except Exception:  # an error must not end the loop: revoked keys would stay valid
                    log.exception("keys could not be read; the last ones that were read stay valid")
        finally:
            executor.shutdown(wait=False)

    def authenticate(self, key: bytes) -> KeyHolder | None:
        """Return the holder of a key as sent; a key seen since the last refresh is not hashed again."""
        holders = self._holders
        holder = holders.get(key)
        if holder is None:
            holder = self.holder(key.strip().decode("latin-1"))
            if holder is not None:
                holders[key] = holder
        return holder

    def holder(self, key: str) -> KeyHolder | None:
        """Return the holder of a key; None if it is unknown or revoked."""
        name = key[3:].rpartition("_")[0] if key.startswith("sw_") else ""
        row = self._rows.get(name)
        is_equal = hmac.compare_digest(compute_key_digest(key), NULL_DIGEST if row is None else row.digest)
        return self.get_holder(name) if is_equal else None

    def get_holder(self, name: str) -> KeyHolder | None:
        """Return the holder by name; None if the key is revoked. Sessions use this."""
        row = self._rows.get(name)
        return None if row is None or row.revoked is not None else KeyHolder(row.name, row.role)

    def list_keys(self) -> list[KeyRow]:
        """Return all keys, sorted by name."""
        return sorted(self._rows.values())

    def add(self, name: str, role: str, note: str = "") -> str:
        """Create a key and return it; it cannot be read again later."""
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9-]{0,39}", name):
            raise InvalidKey.must_be(
                ErrorCode.INVALID_NAME, "the name of a key", name, "1 to 40 letters, digits and hyphens"
            )
        if role not in ROLES:
            raise InvalidKey.must_be_one_of(ErrorCode.INVALID_CHOICE, "the role", role, ROLES)
        self.refresh()
        if name in self._rows:
            raise Conflict(
                ErrorCode.DUPLICATE_NAME,
                "a key {name!r} exists or existed; choose another name, since the audit log refers to keys by name",
                name=name,
            )
        key = f"sw_{name}_{secrets.token_hex(32)}"
        if not self._store.add_key(KeyRow(name, compute_key_digest(key), role, note, self._store.now())):
            raise Conflict(
                ErrorCode.CONFLICT, "a key {name!r} was created by another client in the meantime", name=name
            )
        self.refresh()
        return key

    def revoke(self, name: str) -> None:
        """Revoke a key: at once in this process, within a second in others."""
        self.refresh()
        holder = self.get_holder(name)
        if holder is None:
            raise UnknownKey(ErrorCode.UNKNOWN_KEY, "there is no active key {name} to revoke", name=safe_repr(name))
        if holder.role == ADMIN and self._admins() == [name]:
            raise Conflict(
                ErrorCode.CONFLICT, "{name!r} is the only admin key; create another admin key first", name=name
            )
        self._store.revoke_key(name, self._store.now())
        self.refresh()

    def create_initial_keys(self) -> list[str]:
        """Create and return the first keys: one of each role, or an admin key if no admin is left."""
        missing = INITIAL_KEYS if not self._rows else () if self._admins() else INITIAL_KEYS[:1]
        numbered = [(chain([name], (f"{name}-{i}" for i in count(2))), role) for name, role in missing]
        return [
            self.add(next(free for free in names if free not in self._rows), role, "created at the first start")
            for names, role in numbered
        ]

    def _admins(self) -> list[str]:
        return [row.name for row in self._rows.values() if row.role == ADMIN and row.revoked is None]


def compute_key_digest(key: str) -> bytes:
    """Return the digest of a key. The secret has 256 random bits, so it needs no salt."""
    return hashlib.sha256(key.encode(errors="replace")).digest()
