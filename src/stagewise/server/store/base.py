"""The interface of stores, with all queries that are the same for every store."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    GLOBAL,
    KEY,
    NEW,
    REVOKED_KEY,
    SECRET,
    AppendRequest,
    AppendResult,
    Event,
    KeyRow,
    LogHead,
    StoredSnapshot,
    compute_digest,
    encode_canonical,
)
from stagewise.server.store import queries as sql
from stagewise.server.store.append_batch import is_storable


class StoreUnavailable(StagewiseError):
    """The store cannot be reached, is full or is read-only; nothing is acknowledged.

    If a connection is lost during a commit, the rows may still be written; a retry with the same ids finds out.
    """


class Store(ABC):
    """An append-only log for each experiment, with tables that can be rebuilt from it.

    Attributes:
        read_only: Whether the store is open for reading only.
    """

    read_only: bool
    _access: tuple[int, dict[str, KeyRow]] = 0, {}  # the last global row that was read, and the keys up to it

    @abstractmethod
    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction. Raises StoreUnavailable.

        Returns one result for each request.
        """

    def begin(self, requests: Sequence[AppendRequest]) -> Callable[[], list[AppendResult]] | None:
        """Begin an append without waiting; return a function that makes it durable.

        None: nothing was begun and `append` must be used. The function must be called once, by any thread, and soon:
        nobody else can write meanwhile.
        """
        return None

    @abstractmethod
    def test_write(self) -> None:
        """Test a durable write that is in no log, with a short timeout. Raises StoreUnavailable."""

    @abstractmethod
    def try_lead(self) -> bool:
        """Become or stay the leading learner; return whether this process leads.

        Never raises: a process that cannot reach the store does not lead. In SQLite, the process that holds the file
        leads.
        """

    @abstractmethod
    def now(self) -> int:
        """Return the store's clock, in microseconds."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections and locks."""

    @abstractmethod
    def _all(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query. Raises StoreUnavailable."""

    @abstractmethod
    def _change(self, *statements: sql.Statement) -> int:
        """Run statements in one durable transaction; return the row count of the last. Raises StoreUnavailable."""

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query; none for a name that cannot be stored."""
        if not all(is_storable(value) for value in values if isinstance(value, str)):
            return []
        return self._all(query, *values)

    def head(self, experiment: str) -> LogHead:
        """Return the end of a log; all zero if there is none."""
        return next((LogHead(*row) for row in self._rows(sql.SELECT_HEAD, experiment)), LogHead())

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows after row `after`, in order."""
        return list(map(Event._make, self._rows(sql.SELECT_EVENTS, experiment, after, limit)))

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key."""
        return next(map(Event._make, self._rows(sql.SELECT_EVENT, experiment, kind, key)), None)

    def events_of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows of one kind after row `after`, in order."""
        return list(
            map(Event._make, self._rows(sql.SELECT_EVENTS_OF_KIND[kind == DECISION], experiment, kind, after, limit))
        )

    def iter_events(self, experiment: str, after: int = 0) -> Iterator[Event]:
        """Yield all rows after row `after`, in order."""
        while portion := self.events(experiment, after):
            yield from portion
            after = portion[-1].seq

    def iter_events_of_kind(self, experiment: str, kind: str, after: int = 0) -> Iterator[Event]:
        """Yield all rows of one kind after row `after`, in order."""
        while portion := self.events_of_kind(experiment, kind, after):
            yield from portion
            after = portion[-1].seq

    def answers(self, experiment: str, decision_index: int) -> dict[str, float]:
        """Return the reported signals of a decision."""
        return dict(self._rows(sql.SELECT_ANSWERS, experiment, decision_index))

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without the global log."""
        return sorted(name for (name,) in self._rows(sql.SELECT_EXPERIMENTS) if name != GLOBAL)

    def logs(self) -> list[str]:
        """Return the names of all logs with a row, whatever the heads say; for audits."""
        return sorted(name for (name,) in self._rows(sql.SELECT_LOGS))

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Save a snapshot; delete all but the last few of its version."""
        version = snapshot.experiment, snapshot.problem
        self._change(
            (sql.UPSERT_SNAPSHOT, snapshot),
            (sql.DELETE_OLD_SNAPSHOTS, (*version, *version, sql.MAX_SNAPSHOTS, *version, sql.MAX_FULL_SNAPSHOTS)),
        )

    def get_latest_snapshot(
        self, experiment: str, problem: int, after: int = -1, *, with_learner_state: bool = False
    ) -> StoredSnapshot | None:
        """Return the newest snapshot after row `after`; `with_learner_state`: the newest that has one."""
        rows = self._rows(
            sql.SELECT_LATEST_FULL_SNAPSHOT if with_learner_state else sql.SELECT_LATEST_SNAPSHOT,
            experiment,
            problem,
            after,
        )
        return next((StoredSnapshot(experiment, problem, *row) for row in rows), None)

    def snapshots(self, experiment: str) -> list[StoredSnapshot]:
        """Return all snapshots of an experiment, oldest first; for audits."""
        return list(map(StoredSnapshot._make, self._rows(sql.SELECT_SNAPSHOTS, experiment)))

    def keys(self) -> list[KeyRow]:
        """Return all access keys from the global log, in order of creation."""
        row, keys = self._access
        for event in self.iter_events_of_kind(GLOBAL, CONTROL, row):
            row, keys = event.seq, apply_key_event(keys, msgspec.json.decode(event.body))
        self._access = row, keys
        return list(keys.values())

    def add_key(self, key: KeyRow) -> bool:
        """Add an access key; return whether its name was free."""
        content = {"digest": key.digest.hex(), "role": key.role, "note": key.note, "made": key.made}
        return self._append_key_event(f"{KEY} {key.name}", {"what": KEY, "name": key.name, **content})

    def revoke_key(self, name: str, at: int) -> bool:
        """Revoke a key; return whether there was an active one."""
        if not any(key.name == name and key.revoked is None for key in self.keys()):
            return False
        return self._append_key_event(f"{REVOKED_KEY} {name}", {"what": REVOKED_KEY, "name": name, "at": at})

    def _append_key_event(self, key: str, content: dict[str, Any]) -> bool:
        (result,) = self.append([AppendRequest(GLOBAL, CONTROL, key, encode_canonical(content))])
        return result.status == NEW

    def secrets(self) -> dict[str, bytes]:
        """Return all secrets by name; for audits and copies."""
        return {name: bytes(content) for name, content in self._rows(sql.SELECT_SECRETS)}

    def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name; store the given one if there is none.

        Of two concurrent calls both get the first secret. Its digest is in the global log; a secret with another
        digest is rejected. Raises StoreUnavailable.
        """
        if not self._rows(sql.SELECT_SECRET, name):
            self._change((sql.INSERT_SECRET, (name, fresh)))
        content = bytes(self._rows(sql.SELECT_SECRET, name)[0][0])
        digest, key = compute_digest(content).hex(), get_secret_row_key(name)
        row = self.find(GLOBAL, CONTROL, key)
        if row is None and not self.read_only:
            body = encode_canonical({"what": SECRET, "name": name, "digest": digest})
            (result,) = self.append([AppendRequest(GLOBAL, CONTROL, key, body)])
            row = result.event
        if row is not None and msgspec.json.decode(row.body)["digest"] != digest:
            raise StoreUnavailable(
                ErrorCode.DIGEST_MISMATCH,
                "the digest of the secret {name} is not the one in the log; run `stagewise audit verify` "
                "and restore the store from a backup",
                name=safe_repr(name),
            )
        return content


def get_secret_row_key(name: str) -> str:
    """Return the key of the row with a secret's digest; the name is hashed to bound its length."""
    return f"{SECRET} {compute_digest(name.encode()).hex()}"


def apply_key_event(keys: Mapping[str, KeyRow], content: Mapping[str, Any]) -> dict[str, KeyRow]:
    """Return the access keys after a global control."""
    name, now = content.get("name", ""), dict(keys)
    if content.get("what") == KEY:
        now[name] = KeyRow(name, bytes.fromhex(content["digest"]), content["role"], content["note"], content["made"])
    elif content.get("what") == REVOKED_KEY and name in now:
        now[name] = now[name]._replace(revoked=content["at"])
    return now
