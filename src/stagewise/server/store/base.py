"""The contract of stores, with every query and rule that is the same in all of them.

SQL stands here as data; `?` is a parameter.
"""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import starmap
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
    OUTCOME,
    PROBLEM,
    REVOKED_KEY,
    SECRET,
    AppendRequest,
    AppendResult,
    Event,
    KeyRow,
    LogHead,
    Seal,
    SealPart,
    StoredSnapshot,
    WriterChain,
    compute_digest,
    decode_numbers,
    derive_writer_key,
    encode_canonical,
)

PAGE_ROWS = 10_000  # rows of a log that are read at once
PAGE_SEALS = 1_000
RANGE_GAP = 256  # numbers of other rows that are read rather than left out by another query
WRITERS = "writers"  # the secret of which writers' keys are derived
MAX_SNAPSHOTS, MAX_FULL_SNAPSHOTS = 3, 2  # snapshots kept of each version of a problem

EVENT_COLUMNS = "number, at, kind, key, decision, body, mac, request_digest, seen, writer, link"
_EVENT = f"SELECT {EVENT_COLUMNS} FROM events WHERE"
# Ranges and frequent kinds are read by scanning numbers, rare kinds by their index; `|| ''` prevents other plans.
SELECT_RANGE = f"{_EVENT} number >= ? AND number <= ? AND experiment || '' = ? ORDER BY number"
SELECT_ROW = f"{_EVENT} number = ? AND experiment = ?"
SELECT_EVENT = f"{_EVENT} experiment = ? AND kind = ? AND key = ?"
SELECT_ROWS = f"SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number > ? ORDER BY number LIMIT ?"
SELECT_LATEST = "SELECT number, at FROM events ORDER BY number DESC LIMIT 1"
SELECT_DENSE_EVENTS = f"{_EVENT} experiment || '' = ? AND kind || '' = ? AND number > ? ORDER BY number LIMIT ?"
IS_RARE = "kind NOT IN ('decision', 'outcome')"
SELECT_RARE_EVENTS = f"{_EVENT} experiment = ? AND kind = ? AND {IS_RARE} AND number > ? ORDER BY number LIMIT ?"
SELECT_CONTROL = f"SELECT max(number) FROM events WHERE experiment = ? AND kind = ? AND {IS_RARE}"
SELECT_ANSWERS = "SELECT signal, value FROM answers WHERE decision = ? AND number <= ?"
COUNT_ROWS = "SELECT count(*) FROM events WHERE number <= ?"
SELECT_OUTCOMES = "SELECT DISTINCT number FROM answers WHERE decision = ? ORDER BY number"
SELECT_EXPERIMENTS = "SELECT DISTINCT experiment FROM events WHERE kind = 'problem'"
SELECT_LOGS = "SELECT DISTINCT experiment FROM events"
SELECT_UNSEALED = """
SELECT count(*), coalesce(sum(CASE kind WHEN 'decision' THEN 1 ELSE 0 END), 0), coalesce(min(at), 0),
    coalesce(max(at), 0) FROM events WHERE number > ? AND experiment = ?
"""

SEAL_COLUMNS = "seal, at, term, size, high, open, root, hash"
SELECT_LAST_SEAL = f"SELECT {SEAL_COLUMNS} FROM seals ORDER BY seal DESC LIMIT 1"
SELECT_SEALS = f"SELECT {SEAL_COLUMNS} FROM seals WHERE seal > ? ORDER BY seal LIMIT ?"
PART_COLUMNS = "experiment, last, first, seal, decisions, at, highest, numbers"
_PART = f"SELECT {PART_COLUMNS} FROM seal_parts WHERE"
# Parts follow each other: from the one with a place to the first that reaches another one. A bound on `first` alone
# would read all later parts.
SELECT_PARTS = f"""
{_PART} experiment = ? AND last > ? AND last <= coalesce(
    (SELECT min(last) FROM seal_parts WHERE experiment = ? AND last >= ?), 9223372036854775807
) AND first <= ? ORDER BY last
"""
SELECT_PARTS_OF_SEALS = f"{_PART} seal > ? AND seal <= ? ORDER BY seal, experiment"
SELECT_LAST_PART = f"{_PART} experiment = ? AND seal <= ? ORDER BY last DESC LIMIT 1"
SELECT_NEXT_PARTS = f"{_PART} experiment = ? AND last > ? ORDER BY last LIMIT ?"
INSERT_SEAL = f"INSERT INTO seals ({SEAL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_PART = f"INSERT INTO seal_parts ({PART_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

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
SELECT_CHECKPOINT = "SELECT number, content FROM checkpoints WHERE experiment = ?"
SELECT_CHECKPOINTS = "SELECT experiment, number, content FROM checkpoints ORDER BY experiment"
UPSERT_CHECKPOINT = """
INSERT INTO checkpoints (experiment, number, content) VALUES (?, ?, ?)
ON CONFLICT (experiment) DO UPDATE SET number = excluded.number, content = excluded.content
"""
SELECT_SEAL_BEFORE = f"SELECT {SEAL_COLUMNS} FROM seals WHERE at < ? ORDER BY seal DESC LIMIT 1"
SELECT_SECRETS = "SELECT name, content FROM secrets ORDER BY name"
INSERT_SECRET = "INSERT INTO secrets (name, content) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
SELECT_WEBHOOK = "SELECT state FROM webhooks WHERE name = ?"
UPSERT_WEBHOOK = (
    "INSERT INTO webhooks (name, state) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET state = excluded.state"
)

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
    max_transactions = 1  # that can be in flight
    seen = 0
    """The highest number that this process has seen; whatever it chooses from now on may depend on that row."""
    losses = 0
    """How often rows were gone that this process knew, after another machine took over as the store."""
    floor = 0
    """What was chosen when only lower numbers were seen may depend on rows that are gone, and is not written."""
    _seeing = threading.Lock()
    _is_maintained = False
    _access: tuple[int, dict[str, KeyRow]] = 0, {}  # the last global row that was read, and the keys up to it
    _writers_secret = b""
    _writers_control = 0
    """The last global control when it was read."""

    @abstractmethod
    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction; return one result for each request."""

    @abstractmethod
    def seal(self) -> dict[str, list[Event]]:
        """Seal committed rows, and return those of each experiment; only the leading learner calls this.

        A store with one writer seals rows as it writes them, and has nothing to do here.
        """

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

    @abstractmethod
    def begin_term(self) -> None:
        """Draw numbers of the next term from now on: above all that a store which is gone may have handed out."""

    @abstractmethod
    def continue_numbers(self) -> None:
        """Draw numbers above all that exist from now on; after rows were copied."""

    def head(self, experiment: str) -> LogHead:
        """Return the end of a log, with the rows that are not sealed yet; all zero if there is none."""
        seal = self.last_seal()
        part = self.last_part(experiment, seal.seal) or SealPart(experiment, 0, 0, 0, 0, 0, 0, b"")
        count, decisions, _, at = self._all(SELECT_UNSEALED, seal.high, experiment)[0]
        for number in seal.open_numbers:
            for event in starmap(Event, self._all(SELECT_ROW, number, experiment)):
                count, decisions, at = count + 1, decisions + (event.kind == DECISION), max(at, event.at)
        control = self.last_control(experiment)
        return LogHead(part.last + count, max(part.at, at), part.decisions + decisions, control, part.last)

    def last_control(self, experiment: str) -> int:
        """Return the number of the last control or problem row; 0 if there is none."""
        rows = self._all(SELECT_CONTROL, experiment, CONTROL) + self._all(SELECT_CONTROL, experiment, PROBLEM)
        return max(number or 0 for (number,) in rows)

    def first_time_after(self, experiment: str, seq: int) -> int | None:
        """Return the time of the oldest row that is not among the first `seq`; None if there is none."""
        for event in self.events(experiment, seq, 1):
            return event.at
        count, _, at, _ = self._all(SELECT_UNSEALED, self.last_seal().high, experiment)[0]
        return at if count else None

    def last_seal(self) -> Seal:
        """Return the last seal; all zero if there is none."""
        return next((Seal(*row) for row in self._all(SELECT_LAST_SEAL)), Seal())

    def seals(self, after: int = 0, limit: int = PAGE_SEALS) -> list[Seal]:
        """Return seals after a seal, in order."""
        return list(map(Seal._make, self._all(SELECT_SEALS, after, limit)))

    def parts_of_seals(self, after: int, last: int) -> list[SealPart]:
        """Return the parts of the seals after one, up to another."""
        return list(map(SealPart._make, self._all(SELECT_PARTS_OF_SEALS, after, last)))

    def parts(self, experiment: str, after: int, last: int) -> list[SealPart]:
        """Return the parts of seals with the rows of an experiment after a place, up to another."""
        return list(map(SealPart._make, self._all(SELECT_PARTS, experiment, after, experiment, last, last)))

    def seal_at(self, experiment: str, seq: int) -> Seal:
        """Return the seal that has the row at a place of an experiment's log; all zero if there is none."""
        for part in self.parts(experiment, seq - 1, seq):
            return self.seals(part.seal - 1, 1)[0]
        return Seal()

    def events(self, experiment: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Event]:
        """Return sealed rows after the first `after`, in the order of the seals.

        A row that a seal has and the store has not is left out, and so its place is missing.
        """
        parts = self.parts(experiment, after, after + limit)
        if not parts or parts[0].first > after + 1:  # rows were removed up to a later place
            later = self._all(SELECT_NEXT_PARTS, experiment, after, 1)
            if not later:
                return []
            after = max(SealPart(*later[0]).first - 1, after)
            parts = self.parts(experiment, after, after + limit)
        numbers, seq = list[int](), after
        for part in parts:
            numbers += decode_numbers(part.numbers)[max(after + 1 - part.first, 0) :]
        wanted = numbers[:limit]
        rows = self.read_numbers(experiment, wanted)
        events = list[Event]()
        for seq, number in enumerate(wanted, after + 1):
            row = rows.get(number)
            if row is not None:
                events.append(Event._make((*row, seq)))
        return events

    def read_numbers(self, experiment: str, numbers: Sequence[int]) -> dict[int, Sequence[Any]]:
        """Return the rows with these numbers, as the store has them, by number."""
        ordered, rows = sorted(numbers), dict[int, Sequence[Any]]()
        first = 0
        for i in range(1, len(ordered) + 1):
            if i == len(ordered) or ordered[i] - ordered[i - 1] > RANGE_GAP:
                found = self._all(SELECT_RANGE, ordered[first], ordered[i - 1], experiment)
                rows.update((row[0], row) for row in found)
                first = i
        return rows

    def row(self, experiment: str, number: int) -> Event | None:
        """Return the row of an experiment with this number; its place in the order is not read."""
        return next(starmap(Event, self._all(SELECT_ROW, number, experiment)), None)

    def rows(self, after: int, limit: int = PAGE_ROWS) -> list[tuple[str, Event]]:
        """Return the rows of all experiments after a number, by number, sealed or not."""
        return [(row[-1], Event(*row[:-1])) for row in self._all(SELECT_ROWS, after, limit)]

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key; its place in the order is not read."""
        return next(starmap(Event, self._all(SELECT_EVENT, experiment, kind, key)), None)

    def find_place(self, experiment: str, number: int) -> int:
        """Return the place of a row in the order of its experiment; 0 if it is not sealed."""
        seal = self.last_seal()
        if number > seal.high or number in seal.open_numbers:
            return 0
        first = [SealPart(*row).first for row in self._all(SELECT_NEXT_PARTS, experiment, 0, 1)]
        low, high = (first or [1])[0] - 1, self.head(experiment).sealed
        while low < high:  # the highest number so far grows from part to part
            middle = (low + high) // 2
            (part,) = self.parts(experiment, middle, middle + 1)
            low, high = (part.last, high) if part.highest < number else (low, part.first - 1)
        while parts := list(map(SealPart._make, self._all(SELECT_NEXT_PARTS, experiment, low, PAGE_SEALS))):
            for part in parts:
                numbers = decode_numbers(part.numbers)
                if number in numbers:
                    return part.first + numbers.index(number)
            low = parts[-1].last
        return 0

    def events_of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Event]:
        """Return rows of one kind after a number, by number, sealed or not; this is the order of changes."""
        query = SELECT_DENSE_EVENTS if kind in (DECISION, OUTCOME) else SELECT_RARE_EVENTS
        return list(starmap(Event, self._all(query, experiment, kind, after, limit)))

    def iter_events(self, experiment: str, after: int = 0) -> Iterator[Event]:
        """Yield all sealed rows after the first `after`, in order."""
        while page := self.events(experiment, after):
            yield from page
            after = page[-1].seq

    def iter_events_of_kind(self, experiment: str, kind: str, after: int = 0) -> Iterator[Event]:
        """Yield all rows of one kind after a number, by number."""
        while page := self.events_of_kind(experiment, kind, after):
            yield from page
            after = page[-1].number

    def answers(self, decision: int, last: int = 2**62) -> dict[str, float]:
        """Return the reported signals of a decision, by its number; of outcomes up to the number `last`."""
        return dict(self._all(SELECT_ANSWERS, decision, last))

    def count_rows(self, last: int) -> int:
        """Return the number of rows of all experiments up to a number."""
        return int(self._all(COUNT_ROWS, last)[0][0])

    def outcomes(self, experiment: str, decision: int) -> list[Event]:
        """Return the outcomes that told a signal of a decision, by number."""
        rows = [self.row(experiment, number) for (number,) in self._all(SELECT_OUTCOMES, decision)]
        return [row for row in rows if row is not None]

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without the global log."""
        return sorted(name for (name,) in self._all(SELECT_EXPERIMENTS) if name != GLOBAL)

    def logs(self) -> list[str]:
        """Return the names of all logs with a row; for audits."""
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

    def webhook_state(self, name: str) -> bytes | None:
        """Return what a webhook got and will get; None if it is new."""
        return next((bytes(state) for (state,) in self._all(SELECT_WEBHOOK, name)), None)

    def save_webhook_state(self, name: str, state: bytes) -> None:
        """Save what a webhook got and will get."""
        self._change((UPSERT_WEBHOOK, (name, state)))

    def checkpoint(self, experiment: str) -> tuple[int, bytes] | None:
        """Return the row with the digest of a log's checkpoint, and its content; None if there is none."""
        return next(((number, bytes(content)) for number, content in self._all(SELECT_CHECKPOINT, experiment)), None)

    def last_seal_before(self, at: int) -> Seal:
        """Return the last seal that was made before a time; all zero if there is none."""
        return next((Seal(*row) for row in self._all(SELECT_SEAL_BEFORE, at)), Seal())

    def last_part(self, experiment: str, seal: int) -> SealPart | None:
        """Return the last part of a log up to a seal."""
        return next((SealPart(*row) for row in self._all(SELECT_LAST_PART, experiment, seal)), None)

    @contextmanager
    def maintaining(self) -> Iterator[Callable[..., None]]:
        """Be the only one who makes checkpoints; yield what writes them, statements in one transaction.

        A checkpoint stands for rows that are gone, so two removals must not overtake each other.
        """
        with self._seeing:
            self._check_maintenance(is_free=not self._is_maintained)
            self._is_maintained = True
        try:
            yield self._change
        finally:
            self._is_maintained = False

    def _check_maintenance(self, *, is_free: bool) -> None:
        if not is_free:
            template = "rows of this store are being removed or a user is being erased; try again later"
            raise StoreUnavailable(ErrorCode.STORE_BUSY, template)

    @abstractmethod
    def compact(self) -> None:
        """Free the space of rows that were deleted."""

    def keys(self) -> list[KeyRow]:
        """Return all access keys from the global log, in order of creation."""
        row, keys = self._access
        for event in self.iter_events_of_kind(GLOBAL, CONTROL, row):
            row, keys = event.number, apply_key_event(keys, msgspec.json.decode(event.body))
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
            template = (
                "the digest of the secret {name} is not the one in the log; run `stagewise audit verify` "
                "and restore the store from a backup"
            )
            raise StoreUnavailable(ErrorCode.DIGEST_MISMATCH, template, name=safe_repr(name))
        return content

    def accept_losses(self) -> None:
        """Note that everything is forgotten that was read of rows that are gone."""
        self._see(self.floor)

    def _see(self, number: int) -> None:
        with self._seeing:
            self.seen = max(self.seen, number)

    def _read_writers_secret(self) -> bytes:
        """Return the secret of which writers' keys are derived; it is created before the first row."""
        if not self._writers_secret:
            if WRITERS not in self.secrets():
                self._change((INSERT_SECRET, (WRITERS, os.urandom(32))))
            self._writers_secret = self.secrets()[WRITERS]
            self.secret(WRITERS, b"")  # writes the row of its digest
        return self._writers_secret

    def rotate_writers_secret(self) -> int:
        """Derive writers' keys from a new secret from now on, in every process; return how many there were."""
        count = len(self.read_writers_secrets())
        self._read_writers_secret()
        self.secret(f"{WRITERS} {count + 1}", os.urandom(32))
        return count

    def read_writers_secrets(self) -> list[tuple[int, bytes]]:
        """Return the secrets of writers' keys, each with the row after which it counts; the first counts at once."""
        stored, found = self.secrets(), list[tuple[int, bytes]]()
        for event in self.iter_events_of_kind(GLOBAL, CONTROL):
            body = msgspec.json.decode(event.body)
            name = body.get("name", "")
            if body.get("what") == SECRET and (name == WRITERS or name.startswith(f"{WRITERS} ")):
                found.append((event.number if found else 0, stored.get(name, b"")))
        return found or [(0, stored.get(WRITERS, b""))]

    def _renew_chain(self, chain: WriterChain, control: int) -> WriterChain:
        """Return the chain of a writer, a new one if its secret was rotated; `control`: the last global control."""
        if control != self._writers_control:
            self._writers_control, self._writers_secret = control, self.read_writers_secrets()[-1][1]
        is_current = derive_writer_key(self._writers_secret, chain.writer) == chain.key
        return chain if is_current else WriterChain.begin(self._writers_secret)

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
