"""What is read and kept by one statement, the same in SQLite and in PostgreSQL; `?` stands for a value."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from stagewise.service.records import DECISION, EVERYWHERE, Ask, Event, Head, Kept, KeyRow, Settled
from stagewise.service.store.settling import sayable

FEW, FEW_WHOLE = 3, 2  # snapshots of a problem's version that stay

_EVENT = "SELECT seq, at, kind, key, place, body, chain FROM events WHERE experiment = ?"
EVENTS = f"{_EVENT} AND seq > ? ORDER BY seq LIMIT ?"
FIND = f"{_EVENT} AND kind = ? AND key = ?"
# Decisions are found by walking along the log, other kinds by their index: an expression keeps planners from others.
_DENSE, _RARE = f"{_EVENT} AND kind || '' = ?", f"{_EVENT} AND kind = ? AND kind <> '{DECISION}'"
OF_KIND = {dense: f"{start} AND seq > ? ORDER BY seq LIMIT ?" for dense, start in ((True, _DENSE), (False, _RARE))}
LAST = {dense: f"{start} AND seq > 0 ORDER BY seq DESC LIMIT ?" for dense, start in ((True, _DENSE), (False, _RARE))}

HEAD = "SELECT seq, at, places, control, chain FROM heads WHERE experiment = ?"
ANSWERS = "SELECT signal, value FROM answers WHERE experiment = ? AND place = ?"
EXPERIMENTS = "SELECT experiment FROM heads WHERE seq > 0"
LOGS = "SELECT DISTINCT experiment FROM events"

KEEP = """
INSERT INTO snapshots (experiment, problem, seq, content, whole) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (experiment, problem, seq) DO UPDATE SET content = excluded.content,
    whole = CASE WHEN length(excluded.whole) > 0 THEN excluded.whole ELSE snapshots.whole END
"""
FORGET = """
DELETE FROM snapshots WHERE experiment = ? AND problem = ?
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? ORDER BY seq DESC LIMIT ?)
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? AND length(whole) > 0
                ORDER BY seq DESC LIMIT ?)
"""
_SNAPSHOT = "FROM snapshots WHERE experiment = ? AND problem = ? AND seq > ?"
LATEST = f"SELECT seq, content {_SNAPSHOT} ORDER BY seq DESC LIMIT 1"
LATEST_WHOLE = f"SELECT seq, content, whole {_SNAPSHOT} AND length(whole) > 0 ORDER BY seq DESC LIMIT 1"
DROP_SNAPSHOTS = "DELETE FROM snapshots"

KEYS = "SELECT name, digest, role, note, made, revoked FROM access_keys ORDER BY made, name"
ADD_KEY = "INSERT INTO access_keys (name, digest, role, note, made, revoked) VALUES (?, ?, ?, ?, ?, ?)"
REVOKE_KEY = "UPDATE access_keys SET revoked = ? WHERE name = ? AND revoked IS NULL"

SECRET = "SELECT content FROM secrets WHERE name = ?"
FRESH_SECRET = "INSERT INTO secrets (name, content) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"

Statement = tuple[str, Sequence[Any]]


BEGUN, TICKING = time.time_ns(), time.monotonic_ns()


def wall_clock() -> int:
    """Return the time of this machine, in microseconds since 1970: as the process began, and what has passed since.

    So a clock that is set forward while a desk runs closes no window before its time.
    """
    return (BEGUN + time.monotonic_ns() - TICKING) // 1000


class Tables(ABC):
    """The half of a store that needs two verbs only: read rows, and change some durably."""

    @abstractmethod
    def _all(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query. Raises StoreDown."""

    @abstractmethod
    def _change(self, *statements: Statement) -> int:
        """Run statements in one durable transaction; return how many rows the last one changed. Raises StoreDown."""

    def begin(self, asks: Sequence[Ask]) -> Callable[[], list[Settled]] | None:
        """Begin nothing: a store that has to be asked makes whoever begins wait."""
        return None

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query; none where a name is one that no row can have."""
        if not all(sayable(value) for value in values if isinstance(value, str)):
            return []
        return self._all(sql, *values)

    def head(self, experiment: str) -> Head:
        """Return where a log ends; all zero: there is none."""
        return next((Head(*row) for row in self._rows(HEAD, experiment)), Head())

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows in order, from the one that follows `after` on."""
        return list(map(Event._make, self._rows(EVENTS, experiment, after, limit)))

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key."""
        return next(map(Event._make, self._rows(FIND, experiment, kind, key)), None)

    def of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return the rows of one kind in order."""
        return list(map(Event._make, self._rows(OF_KIND[kind == DECISION], experiment, kind, after, limit)))

    def last(self, experiment: str, kind: str, count: int) -> list[Event]:
        """Return the last rows of one kind, the newest first."""
        return list(map(Event._make, self._rows(LAST[kind == DECISION], experiment, kind, count)))

    def answers(self, experiment: str, place: int) -> dict[str, float]:
        """Return the signals that are known of a decision."""
        return dict(self._rows(ANSWERS, experiment, place))

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without EVERYWHERE."""
        return sorted(name for (name,) in self._rows(EXPERIMENTS) if name != EVERYWHERE)

    def logs(self) -> list[str]:
        """Return the names of all logs that have a row, wherever they are said to end."""
        return sorted(name for (name,) in self._rows(LOGS))

    def keep(self, snapshot: Kept) -> None:
        """Keep a snapshot; of its problem's version the last few stay, and the last few that are whole."""
        which = snapshot.experiment, snapshot.problem
        self._change((KEEP, snapshot), (FORGET, (*which, *which, FEW, *which, FEW_WHOLE)))

    def latest(self, experiment: str, problem: int, after: int = -1, *, whole: bool = False) -> Kept | None:
        """Return the newest snapshot that is newer than row `after`; `whole`: that has one, which is read only then."""
        rows = self._rows(LATEST_WHOLE if whole else LATEST, experiment, problem, after)
        return next((Kept(experiment, problem, *row) for row in rows), None)

    def drop_snapshots(self) -> None:
        """Delete every snapshot."""
        self._change((DROP_SNAPSHOTS, ()))

    def keys(self) -> list[KeyRow]:
        """Return all access keys."""
        return list(map(KeyRow._make, self._rows(KEYS)))

    def add_key(self, key: KeyRow) -> None:
        """Add one."""
        self._change((ADD_KEY, key))

    def revoke_key(self, name: str, at: int) -> bool:
        """Revoke one; say whether there was one to revoke."""
        return self._change((REVOKE_KEY, (at, name))) == 1

    def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name, or keep this fresh one; of two who come at once both get the first one's."""
        if not self._rows(SECRET, name):
            self._change((FRESH_SECRET, (name, fresh)))
        return bytes(self._rows(SECRET, name)[0][0])
