"""Access keys `sw_<name>_<secret>`: whose they are and what they may. The store has their digests alone."""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count
from typing import NamedTuple

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import shown
from stagewise.service.errors import Conflict
from stagewise.service.records import KeyRow
from stagewise.service.store.store import Store, StoreDown

log = logging.getLogger("stagewise.desk")

READER, WRITER, ADMIN = "reader", "writer", "admin"
ROLES = (READER, WRITER, ADMIN)  # each may what the ones before it may
FIRST = ((ADMIN, ADMIN), ("app", WRITER), ("viewer", READER))
OFTEN = 0.3  # seconds between two looks at the store: what is revoked anywhere is refused here within a second
NOBODY = bytes(32)  # no digest is this one: compared with where there is no key of that name, so that it takes as long


class InvalidKey(StagewiseError):
    """A key's name or role cannot be used."""


class UnknownKey(StagewiseError):
    """No key has this name."""


class Holder(NamedTuple):
    """Who holds a key."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Say whether this role covers another."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Keys:
    """The keys of a store, as this process last saw them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, KeyRow] = {}
        self._met: dict[bytes, Holder] = {}  # keys that were sent since the last look, and are good
        self.refresh()

    def refresh(self) -> None:
        """Look at the store again."""
        found = self._store.keys()
        self._rows, self._met = {row.name: row for row in found}, {}

    async def watch(self) -> None:
        """Look at the store again and again, until cancelled.

        While it cannot be reached the keys of the last look hold: nothing can be written then, and whoever still has a
        valid key is answered the safe action.
        """
        own = ThreadPoolExecutor(1, "stagewise-keys")  # whatever else waits for threads, this does not
        try:
            while True:
                await asyncio.sleep(OFTEN)
                try:
                    await asyncio.get_running_loop().run_in_executor(own, self.refresh)
                except StoreDown:
                    continue
                except Exception:  # a mistake of ours may not end the watch: revoked keys would stay good
                    log.exception("keys could not be read; those of the last look hold")
        finally:
            own.shutdown(wait=False)

    def sent(self, key: bytes) -> Holder | None:
        """Return who holds a key, as it came; one that came a moment ago is not digested again."""
        met = self._met
        holder = met.get(key)
        if holder is None:
            holder = self.holder(key.strip().decode("latin-1"))
            if holder is not None:
                met[key] = holder
        return holder

    def holder(self, key: str) -> Holder | None:
        """Return who holds a key; None: nobody does, or it is revoked."""
        name = key[3:].rpartition("_")[0] if key.startswith("sw_") else ""
        row = self._rows.get(name)
        same = hmac.compare_digest(digest_of(key), NOBODY if row is None else row.digest)
        return self.named(name) if same else None

    def named(self, name: str) -> Holder | None:
        """Return the holder of this name as long as the key is not revoked (what a session lives by)."""
        row = self._rows.get(name)
        return None if row is None or row.revoked is not None else Holder(row.name, row.role)

    def listed(self) -> list[KeyRow]:
        """Return all keys, in the order of their names."""
        return sorted(self._rows.values())

    def add(self, name: str, role: str, note: str = "") -> str:
        """Make a key and return it: this is the only time that it can be seen."""
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9-]{0,39}", name):
            raise InvalidKey(f"a key cannot be called {shown(name)}; it takes 1 to 40 letters, digits and hyphens")
        if role not in ROLES:
            raise InvalidKey(f"{shown(role)} is no role; they are {', '.join(ROLES)}")
        self.refresh()
        if name in self._rows:
            raise Conflict(f"there is a key {name!r} already, or was: names stay with what was done by them")
        key = f"sw_{name}_{secrets.token_hex(32)}"
        if not self._store.add_key(KeyRow(name, digest_of(key), role, note, self._store.now())):
            raise Conflict(f"a key {name!r} was made by somebody else meanwhile")
        self.refresh()
        return key

    def revoke(self, name: str) -> None:
        """Revoke a key: here at once, in every other process within a second."""
        self.refresh()
        holder = self.named(name)
        if holder is None:
            raise UnknownKey(f"no key that could be revoked is called {shown(name)}")
        if holder.role == ADMIN and self._admins() == [name]:
            raise Conflict(f"{name!r} is the only admin key; make another first, or nobody could")
        self._store.revoke_key(name, self._store.now())
        self.refresh()

    def first(self) -> list[str]:
        """Make the keys to begin with, and return them: one of each role, or an admin's where none is left."""
        missing = FIRST if not self._rows else () if self._admins() else FIRST[:1]
        return [self.add(self._free(name), role, "made on the first start") for name, role in missing]

    def _admins(self) -> list[str]:
        return [row.name for row in self._rows.values() if row.role == ADMIN and row.revoked is None]

    def _free(self, name: str) -> str:
        return next(free for free in chain([name], (f"{name}-{i}" for i in count(2))) if free not in self._rows)


def digest_of(key: str) -> bytes:
    """Return what is kept of a key. Its secret has 256 random bits: there is nothing to guess, and nothing to salt."""
    return hashlib.sha256(key.encode(errors="replace")).digest()
