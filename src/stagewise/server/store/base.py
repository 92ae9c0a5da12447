"""The contract of stores, with every query and rule that is the same in all of them.

SQL stands here as data; `?` is a parameter.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
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

PAGE_ROWS = 10_000  # rows of a log that are read at once
MAX_SNAPSHOTS, MAX_FULL_SNAPSHOTS = 3, 2  # snapshots kept of each version of a problem

EVENT_COLUMNS = "seq, at, kind, key, decision_index, body, chain, request_digest"
HEAD_COLUMNS = "seq, at, decision_count, control, chain"
_EVENT = f"SELECT {EVENT_COLUMNS} FROM events WHERE experiment = ?"
SELECT_EVENTS = f"{_EVENT} AND seq > ? ORDER BY seq LIMIT ?"
SELECT_EVENT = f"{_EVENT} AND kind = ? AND key = ?"
# Decisions are found by scanning the log, other kinds by their index; the expression prevents other plans.
SELECT_DECISIONS = f"{_EVENT} AND kind || '' = ? AND seq > ? ORDER BY seq LIMIT ?"
SELECT_RARE_EVENTS = f"{_EVENT} AND kind = ? AND kind <> '{DECISION}' AND seq > ? ORDER BY seq LIMIT ?"
SELECT_HEAD = f"SELECT {HEAD_COLUMNS} FROM heads WHERE experiment = ?"
SELECT_ANSWERS = "SELECT signal, value FROM answers WHERE experiment = ? AND decision_index = ?"
SELECT_LOG_ENDS = "SELECT experiment, seq FROM heads WHERE experiment <> ''"
SELECT_EXPERIMENTS = "SELECT experiment FROM heads WHERE seq > 0"
SELECT_LOGS = "SELECT DISTINCT experiment FROM events"

UPSERT_SNAPSHOT = """
INSERT INTO snapshots (experiment, problem, seq, content, learner_state) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (experiment, problem, seq) DO UPDATE SET content = excluded.content,
    learner_state = CASE WHEN length(excluded.learner_state) > 0 THEN excluded.learner_state
                         ELSE snapshots.learner_state END
"""
DELETE_OLD_SNAPSHOTS = """
DELETE FROM snapshots WHERE experiment = ? AND problem = ?
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? ORDER BY seq DESC LIMIT ?)
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? AND length(learner_state) > 0
                ORDER BY seq DESC LIMIT ?)
"""
_SNAPSHOT = "FROM snapshots WHERE experiment = ? AND problem = ? AND seq > ?"
SELECT_LATEST_SNAPSHOT = f"SELECT seq, content {_SNAPSHOT} ORDER BY seq DESC LIMIT 1"
SELECT_LATEST_FULL_SNAPSHOT = (
    f"SELECT seq, content, learner_state {_SNAPSHOT} AND length(learner_state) > 0 ORDER BY seq DESC LIMIT 1"
)
SELECT_SNAPSHOTS = (
    "SELECT experiment, problem, seq, content, learner_state FROM snapshots WHERE experiment = ? ORDER BY seq"
)
SELECT_SECRETS = "SELECT name, content FROM secrets ORDER BY name"
INSERT_SECRET = "INSERT INTO secrets (name, content) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"

Statement = tuple[str, Sequence[Any]]

START_TIME, START_MONOTONIC = time.time_ns(), time.monotonic_ns()


def wall_clock() -> int:
    """Return the time in microseconds since 1970: the time at the start of the process, plus the elapsed time.

    Setting the clock forward while a server runs closes no window early.
    """
    return (START_TIME + time.monotonic_ns() - START_MONOTONIC) // 1000


class StoreUnavailable(StagewiseError):
    """The store cannot be reached, is full or is read-only; nothing is acknowledged.

    If a connection is lost during a commit, the rows may still be written; a retry with the same ids finds out.
    """


class Store(ABC):
    """An append-only log for each experiment, with tables that can be rebuilt from it. Everything may raise
    StoreUnavailable.
    """

    read_only: bool
    _access: tuple[int, dict[str, KeyRow]] = 0, {}  # the last global row that was read, and the keys up to it

    @abstractmethod
    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction; return one result for each request."""

    @abstractmethod
    def test_write(self) -> None:
        """Test a durable write that is in no log, with a short timeout."""

    @abstractmethod
    def try_lead(self) -> bool:
        """Become or stay the leading learner; return whether this process leads. Never raises."""

    @abstractmethod
    def now(self) -> int:
        """Return the store's clock, in microseconds."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections and locks."""

    @abstractmethod
    def _all(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""

    @abstractmethod
    def _change(self, *statements: Statement) -> None:
        """Run statements in one durable transaction."""

    def head(self, experiment: str) -> LogHead:
        """Return the end of a log; all zero if there is none."""
        return next((LogHead(*row) for row in self._all(SELECT_HEAD, experiment)), LogHead())

    def events(self, experiment: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Event]:
        """Return rows after row `after`, in order."""
        return list(map(Event._make, self._all(SELECT_EVENTS, experiment, after, limit)))

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key."""
        return next(map(Event._make, self._all(SELECT_EVENT, experiment, kind, key)), None)

    def events_of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Event]:
        """Return rows of one kind after row `after`, in order."""
        query = SELECT_DECISIONS if kind == DECISION else SELECT_RARE_EVENTS
        return list(map(Event._make, self._all(query, experiment, kind, after, limit)))

    def iter_events(self, experiment: str, after: int = 0) -> Iterator[Event]:
        """Yield all rows after row `after`, in order."""
        while page := self.events(experiment, after):
            yield from page
            after = page[-1].seq

    def iter_events_of_kind(self, experiment: str, kind: str, after: int = 0) -> Iterator[Event]:
        """Yield all rows of one kind after row `after`, in order."""
        while page := self.events_of_kind(experiment, kind, after):
            yield from page
            after = page[-1].seq

    def answers(self, experiment: str, decision_index: int) -> dict[str, float]:
        """Return the reported signals of a decision."""
        return dict(self._all(SELECT_ANSWERS, experiment, decision_index))

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without the global log."""
        return sorted(name for (name,) in self._all(SELECT_EXPERIMENTS) if name != GLOBAL)

    def logs(self) -> list[str]:
        """Return the names of all logs with a row, whatever the heads say; for audits."""
        return sorted(name for (name,) in self._all(SELECT_LOGS))

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Save a snapshot; delete all but the last few of its version."""
        version = snapshot.experiment, snapshot.problem
        self._change(
            (UPSERT_SNAPSHOT, snapshot),
            (DELETE_OLD_SNAPSHOTS, (*version, *version, MAX_SNAPSHOTS, *version, MAX_FULL_SNAPSHOTS)),
        )

    def get_latest_snapshot(
        self, experiment: str, problem: int, after: int = -1, *, with_learner_state: bool = False
    ) -> StoredSnapshot | None:
        """Return the newest snapshot after row `after`; `with_learner_state`: the newest that has one."""
        query = SELECT_LATEST_FULL_SNAPSHOT if with_learner_state else SELECT_LATEST_SNAPSHOT
        rows = self._all(query, experiment, problem, after)
        return next((StoredSnapshot(experiment, problem, *row) for row in rows), None)

    def snapshots(self, experiment: str) -> list[StoredSnapshot]:
        """Return all snapshots of an experiment, oldest first; for audits."""
        return list(map(StoredSnapshot._make, self._all(SELECT_SNAPSHOTS, experiment)))

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
        return self._append_control(f"{KEY} {key.name}", {"what": KEY, "name": key.name, **content}).status == NEW

    def revoke_key(self, name: str, at: int) -> bool:
        """Revoke a key; return whether there was an active one."""
        if not any(key.name == name and key.revoked is None for key in self.keys()):
            return False
        content = {"what": REVOKED_KEY, "name": name, "at": at}
        return self._append_control(f"{REVOKED_KEY} {name}", content).status == NEW

    def secrets(self) -> dict[str, bytes]:
        """Return all secrets by name."""
        return {name: bytes(content) for name, content in self._all(SELECT_SECRETS)}

    def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name; store the given one if there is none.

        Of two concurrent calls both get the first secret. Its digest is in the global log; a secret with another
        digest is rejected.
        """
        if name not in self.secrets():
            self._change((INSERT_SECRET, (name, fresh)))
        content = self.secrets()[name]
        digest, key = compute_digest(content).hex(), get_secret_row_key(name)
        row = self.find(GLOBAL, CONTROL, key)
        if row is None and not self.read_only:
            row = self._append_control(key, {"what": SECRET, "name": name, "digest": digest}).event
        if row is not None and msgspec.json.decode(row.body)["digest"] != digest:
            raise StoreUnavailable(
                ErrorCode.DIGEST_MISMATCH,
                "the digest of the secret {name} is not the one in the log; run `stagewise audit verify` "
                "and restore the store from a backup",
                name=safe_repr(name),
            )
        return content

    def _append_control(self, key: str, content: dict[str, Any]) -> AppendResult:
        """Append a row to the global log."""
        return self.append([AppendRequest(GLOBAL, CONTROL, key, encode_canonical(content))])[0]


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
