"""What every store can do. What it reads and keeps by one statement is here; what a batch comes to, in `settling`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import shown
from stagewise.service.records import (
    CONTROL,
    DECISION,
    EVERYWHERE,
    KEY,
    NEW,
    REVOKED,
    SECRET,
    Ask,
    Event,
    Head,
    Kept,
    KeyRow,
    Settled,
    canonical,
    digest,
)
from stagewise.service.store import tables as sql
from stagewise.service.store.settling import sayable


class StoreDown(StagewiseError):
    """The store cannot be reached, is full, or is read-only: nothing of what was asked is acknowledged.

    Where a connection is lost during a commit it may be written all the same: whoever asks again with the same ids
    finds out.
    """


class Store(ABC):
    """An append-only log for each experiment, and beside it what can be made again.

    A store says how its log is appended to, and offers two verbs besides: read rows, and change some durably.

    Attributes:
        read_only: Whether nothing can be written by it.
    """

    read_only: bool
    _access: tuple[int, dict[str, KeyRow]] = 0, {}  # the last row that was read of what holds everywhere, and the keys

    @abstractmethod
    def append(self, asks: Sequence[Ask]) -> list[Settled]:
        """Write all that can be written in one durable transaction; one answer for each ask. Raises StoreDown."""

    def begin(self, asks: Sequence[Ask]) -> Callable[[], list[Settled]] | None:
        """Begin to append without waiting for anything, and return what makes it durable: that may take its time.

        None: nothing was begun, `append` has to wait, as of a store that has to be asked. What is returned is to be
        called once, by any thread, and soon: nobody else can write meanwhile.
        """
        return None

    @abstractmethod
    def try_out(self) -> None:
        """Write something durably that says nothing, and is in no log; wait little. Raises StoreDown."""

    @abstractmethod
    def lead(self) -> bool:
        """Be the one learner, or stay it: True while no other process is. SQLite: whoever holds the file is.

        It raises nothing: who cannot ask does not lead.
        """

    @abstractmethod
    def now(self) -> int:
        """Return the store's clock, in microseconds."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    @abstractmethod
    def _all(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query. Raises StoreDown."""

    @abstractmethod
    def _change(self, *statements: sql.Statement) -> int:
        """Run statements in one durable transaction; return how many rows the last one changed. Raises StoreDown."""

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query; none where a name is one that no row can have."""
        if not all(sayable(value) for value in values if isinstance(value, str)):
            return []
        return self._all(query, *values)

    def head(self, experiment: str) -> Head:
        """Return where a log ends; all zero: there is none."""
        return next((Head(*row) for row in self._rows(sql.HEAD, experiment)), Head())

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows in order, from the one that follows `after` on."""
        return list(map(Event._make, self._rows(sql.EVENTS, experiment, after, limit)))

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key."""
        return next(map(Event._make, self._rows(sql.FIND, experiment, kind, key)), None)

    def of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return the rows of one kind in order."""
        return list(map(Event._make, self._rows(sql.OF_KIND[kind == DECISION], experiment, kind, after, limit)))

    def all_events(self, experiment: str, after: int = 0) -> Iterator[Event]:
        """Give all rows in order, however many."""
        while portion := self.events(experiment, after):
            yield from portion
            after = portion[-1].seq

    def all_of_kind(self, experiment: str, kind: str, after: int = 0) -> Iterator[Event]:
        """Give all rows of one kind in order, however many."""
        while portion := self.of_kind(experiment, kind, after):
            yield from portion
            after = portion[-1].seq

    def answers(self, experiment: str, place: int) -> dict[str, float]:
        """Return the signals that are known of a decision."""
        return dict(self._rows(sql.ANSWERS, experiment, place))

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without EVERYWHERE."""
        return sorted(name for (name,) in self._rows(sql.EXPERIMENTS) if name != EVERYWHERE)

    def logs(self) -> list[str]:
        """Return the names of all logs that have a row, wherever they are said to end: for an audit."""
        return sorted(name for (name,) in self._rows(sql.LOGS))

    def keep(self, snapshot: Kept) -> None:
        """Keep a snapshot; of its problem's version the last few stay, and the last few that are whole."""
        which = snapshot.experiment, snapshot.problem
        self._change((sql.KEEP, snapshot), (sql.FORGET, (*which, *which, sql.FEW, *which, sql.FEW_WHOLE)))

    def latest(self, experiment: str, problem: int, after: int = -1, *, whole: bool = False) -> Kept | None:
        """Return the newest snapshot that is newer than row `after`; `whole`: that has one, which is read only then."""
        rows = self._rows(sql.LATEST_WHOLE if whole else sql.LATEST, experiment, problem, after)
        return next((Kept(experiment, problem, *row) for row in rows), None)

    def snapshots(self, experiment: str) -> list[Kept]:
        """Return all snapshots of an experiment, the oldest first: for an audit."""
        return list(map(Kept._make, self._rows(sql.SNAPSHOTS, experiment)))

    def keys(self) -> list[KeyRow]:
        """Return all access keys, as the controls that hold everywhere tell them, in the order in which they came."""
        row, keys = self._access
        for event in self.all_of_kind(EVERYWHERE, CONTROL, row):
            row, keys = event.seq, with_key(keys, msgspec.json.decode(event.body))
        self._access = row, keys
        return list(keys.values())

    def add_key(self, key: KeyRow) -> bool:
        """Add an access key; say whether no other had its name."""
        told = {"digest": key.digest.hex(), "role": key.role, "note": key.note, "made": key.made}
        return self._tell_access(f"{KEY} {key.name}", {"what": KEY, "name": key.name, **told})

    def revoke_key(self, name: str, at: int) -> bool:
        """Revoke the key of this name; say whether there was one to revoke."""
        if not any(key.name == name and key.revoked is None for key in self.keys()):
            return False
        return self._tell_access(f"{REVOKED} {name}", {"what": REVOKED, "name": name, "at": at})

    def _tell_access(self, key: str, told: dict[str, Any]) -> bool:
        (settled,) = self.append([Ask(EVERYWHERE, CONTROL, key, canonical(told))])
        return settled.verdict == NEW

    def secrets(self) -> dict[str, bytes]:
        """Return all secrets by name: for an audit, or a copy."""
        return {name: bytes(content) for name, content in self._rows(sql.SECRETS)}

    def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name (an experiment's key, the sessions'), or keep this fresh one and return it.

        Of two who come at once both get the first one's. A control that holds everywhere has its digest: a secret
        that is not the one which was made is refused. Raises StoreDown.
        """
        if not self._rows(sql.SECRET, name):
            self._change((sql.FRESH_SECRET, (name, fresh)))
        content = bytes(self._rows(sql.SECRET, name)[0][0])
        told, key = {"what": SECRET, "name": name, "digest": digest(content).hex()}, secret_key(name)
        row = self.find(EVERYWHERE, CONTROL, key)
        if row is None and not self.read_only:
            (settled,) = self.append([Ask(EVERYWHERE, CONTROL, key, canonical(told))])
            row = settled.event
        if row is not None and msgspec.json.decode(row.body)["digest"] != told["digest"]:
            raise StoreDown(
                f"the secret {shown(name)} is not the one whose digest is in the log; run `stagewise audit verify`, "
                "and bring back the store as it was"
            )
        return content


def secret_key(name: str) -> str:
    """Return the key of the row that has a secret's digest; names are as long as those of experiments."""
    return f"{SECRET} {digest(name.encode()).hex()}"


def with_key(keys: Mapping[str, KeyRow], told: Mapping[str, Any]) -> dict[str, KeyRow]:
    """Return the access keys after a control that holds everywhere."""
    name, now = told.get("name", ""), dict(keys)
    if told.get("what") == KEY:
        now[name] = KeyRow(name, bytes.fromhex(told["digest"]), told["role"], told["note"], told["made"])
    elif told.get("what") == REVOKED and name in now:
        now[name] = now[name]._replace(revoked=told["at"])
    return now
