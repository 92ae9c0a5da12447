"""Retention and erasure: rows up to a seal, and contexts of a user, are removed once states stand for them.

First the key is retired: nothing new is kept under it. When the windows of the user's decisions are closed, a
checkpoint of each experiment stands for all rows so far, and the key is destroyed. What was learned stays, as sums.
An outcome that is pending is waited for: if users ask for erasure because of what happened, leaving it out would
make the bounds wrong.

What stays: every seal, and the changes of controls, problems, keys and secrets. What was removed is a row of the log
itself. If a removal is interrupted, the next one finishes it.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.controls import ERASE, ProblemVersion
from stagewise.server.event_log import (
    CONTROL,
    GLOBAL,
    MAX_SEAL_ROWS,
    PROBLEM,
    TICK,
    AppendRequest,
    Event,
    Seal,
    compute_leaf,
    encode_canonical,
)
from stagewise.server.learner import SERVER_ACTOR
from stagewise.server.snapshots import (
    Checkpoint,
    LogEnd,
    Removal,
    SnapshotSigner,
    VersionState,
    append_digests,
    begin_fold,
    build_checkpoint,
    read_all_versions,
    read_changes,
    read_removal,
)
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import UPSERT_CHECKPOINT, Store
from stagewise.server.user_keys import DELETE_KEY, RETIRE_KEYS, SELECT_OF_USER, UserKeys, open_rows

if TYPE_CHECKING:
    from stagewise.server.experiments import Experiments

ERASED = "erased"  # the control of the global log with the digests of the checkpoints
RETIRED = "erasure"  # the control of the global log after which nothing is kept under a key
DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE experiment = ? AND seq < ?"


class UnknownUser(StagewiseError):
    """The store has no key of this user."""


class ErasureResult(NamedTuple):
    """What became of a request to erase a user."""

    decisions: int
    """The user's decisions that still wait for outcomes; 0: the contexts are erased."""
    until: int = 0
    """When the last of their windows closes, in microseconds; 0: one has no window."""


def erase_user(store: Store, user: str, actor: str, reason: str) -> ErasureResult:
    """Erase the contexts of a user, or begin to: nothing new is kept, and pending outcomes are waited for."""
    with store.maintaining() as change:
        return erase_alone(store, user, actor, reason, change)


def erase_alone(store: Store, user: str, actor: str, reason: str, change: Callable[..., None]) -> ErasureResult:
    """Erase a user while nobody else makes checkpoints."""
    digest = UserKeys(store).compute_digest(user)
    ids = [id_ for (id_,) in store._all(SELECT_OF_USER, digest)]
    if not ids:
        raise UnknownUser(ErrorCode.UNKNOWN_NAME, "the store has no contexts of user {user}", user=safe_repr(user))
    store._change((RETIRE_KEYS, (digest,)))
    body = {"what": RETIRED, "user_keys": ids, "actor": actor, "reason": reason}
    number = append_control(store, GLOBAL, body)
    for name in store.experiments():  # the time of the log is that of its last row
        (result,) = store.append([AppendRequest(name, TICK, "", encode_canonical({}))])
        number = number if result.event is None else result.event.number
    follow(store, number)
    versions = {name: read_all_versions(store, name)[-1] for name in store.experiments()}
    folds = {name: fold_to_end(store, name, version) for name, version in versions.items()}
    owned = {name: find_owned(store, name, fold, ids) for name, fold in folds.items()}
    pending = [
        (folds[name], number) for name, numbers in owned.items() for number in numbers if folds[name].is_pending(number)
    ]
    if pending:
        ends = [fold.find_closing(number) for fold, number in pending]
        return ErasureResult(len(pending), 0 if None in ends else max(end or 0 for end in ends))
    for name, numbers in owned.items():
        if numbers:
            body = {"what": ERASE, "decisions": numbers, "actor": actor, "reason": reason}
            follow(store, append_control(store, name, body))
    contents = dict[str, bytes]()
    for name, version in versions.items():
        fold = folds[name] = fold_to_end(store, name, version, folds[name])
        problem = version.problem.to_dict()
        state = VersionState(version.number, problem, sorted(version.retired), fold.encode())
        contents[name] = msgspec.msgpack.encode(Checkpoint(fold.seq, [state]))
    number = append_digests(store, ERASED, contents, actor, reason)
    change(
        *((UPSERT_CHECKPOINT, (name, number, content)) for name, content in contents.items()),
        *((DELETE_SNAPSHOTS, (name, fold.seq)) for name, fold in folds.items()),
        *((DELETE_KEY, (id_,)) for id_ in ids),
    )
    store.compact()
    return ErasureResult(0)


def append_control(store: Store, name: str, body: object) -> int:
    (result,) = store.append([AppendRequest(name, CONTROL, "", encode_canonical(body))])
    assert result.event is not None
    return result.event.number


def follow(store: Store, number: int) -> None:
    """Seal until a row is sealed; another process may be sealing."""
    while (seal := store.last_seal()).high < number or number in seal.open_numbers:
        store.seal()


def fold_to_end(store: Store, name: str, version: ProblemVersion, fold: StateFold | None = None) -> StateFold:
    """Return the state after all sealed rows, from the last snapshot if there is one."""
    stored = store.get_latest_snapshot(name, version.number, with_learner_state=True)
    if fold is None and stored is not None:
        content = SnapshotSigner(store).open(stored, "learner_state")
        timeout = msgspec.msgpack.decode(content)["feedback_timeout"]
        fold = StateFold(version.problem, version.number, version.retired, timeout)
        fold.restore(content)
    fold = begin_fold(store, name, version) if fold is None else fold
    while page := store.events(name, fold.seq, MAX_SEAL_ROWS):
        fold.take(open_rows(store, page))
    return fold


def find_owned(store: Store, name: str, fold: StateFold, ids: list[str]) -> list[int]:
    """Return the numbers of the decisions in the tables of a fold that are kept under one of these keys."""
    numbers = list(fold.numbers)
    rows = store.read_numbers(name, numbers)
    requests = {number: msgspec.json.decode(Event(*rows[number]).body)["request"] for number in numbers}
    return [number for number, request in requests.items() if request.get("user_key") in ids]


log = logging.getLogger("stagewise.server")

RETENTION = "retention"  # the control of the global log
DELETE_NUMBERS = 10_000  # of one transaction
SERVING_NUMBERS = 1_000  # of one transaction of a server, whose decisions are written meanwhile
SERVING_PAUSE = 0.02  # seconds between two of them
CHECK_INTERVAL = 60.0  # seconds between two looks for old rows
MAX_DELAY = 86_400.0  # seconds for which old rows may stay, so that there is one checkpoint a day

DELETE_ANSWERS = "DELETE FROM answers WHERE decision > ? AND decision < ?"
DELETE_EVENTS = "DELETE FROM events WHERE number > ? AND number < ? AND kind IN ('decision', 'outcome', 'log', 'tick')"
DELETE_PARTS = """
DELETE FROM seal_parts WHERE experiment = ? AND last <= ?
AND last < (SELECT max(last) FROM seal_parts WHERE experiment = ?)
"""
SELECT_FIRST = """
SELECT number, at FROM events WHERE kind IN ('decision', 'outcome', 'log', 'tick') ORDER BY number LIMIT 1
"""


def remove_old_rows(
    store: Store, before: int, actor: str, reason: str, pause: Callable[[], None] | None = None
) -> Removal | None:
    """Remove the rows of all seals that were made before a time in microseconds; None: there is nothing to remove.

    With `pause`, which is called between transactions, decisions can be written meanwhile, and no file is compacted.
    """
    with store.maintaining() as change:
        return remove_alone(store, before, actor, reason, pause, change)


def remove_alone(
    store: Store,
    before: int,
    actor: str,
    reason: str,
    pause: Callable[[], None] | None,
    change: Callable[..., None],
) -> Removal | None:
    """Remove old rows while nobody else makes checkpoints."""
    versions = {name: read_all_versions(store, name) for name in store.experiments()}
    check_windows(versions, store.now() - before)
    seal, last = store.last_seal_before(before), read_removal(store)
    if last is not None and seal.seal <= last.seal:
        delete_rows(store, last, pause)
        return None
    if not seal.seal:
        return None
    removal = describe_removal(store, seal, last)
    contents = {GLOBAL: msgspec.msgpack.encode(removal)}
    for name, known in versions.items():
        if name in removal.ends:
            before_end = sum(row.kind == PROBLEM for row in read_changes(store, name, removal))
            checkpoint = build_checkpoint(store, name, known[max(before_end, 1) - 1 :], removal.ends[name].seq)
            contents[name] = msgspec.msgpack.encode(checkpoint)
    number = append_digests(store, RETENTION, contents, actor, reason, seal=seal.seal, before=before)
    change(*((UPSERT_CHECKPOINT, (name, number, content)) for name, content in contents.items()))
    delete_rows(store, removal, pause)
    return removal


def check_windows(versions: Mapping[str, list[ProblemVersion]], age: int) -> None:
    """Reject an age within which outcomes may still come and be learned."""
    for name, known in versions.items():
        for signal, window in known[-1].problem.windows.items():
            if age <= window.seconds * 1e6:
                raise InvalidOutcome(
                    ErrorCode.OUT_OF_RANGE,
                    "rows of {days:.6g} days would be removed, and the window of {signal} in {name} is "
                    "{duration}: outcomes may still come; keep rows for longer than every window",
                    days=age / 86_400e6,
                    signal=safe_repr(signal),
                    name=safe_repr(name),
                    duration=window.duration,
                )


def describe_removal(store: Store, seal: Seal, last: Removal | None) -> Removal:
    """Return what the removal of all rows up to a seal leaves behind."""
    writers = {} if last is None else dict(last.writers)
    ends = {} if last is None else dict(last.ends)  # a log may have had no rows since
    open_numbers = set(seal.open_numbers)
    for name in store.logs():
        part = store.last_part(name, seal.seal)
        if part is not None:
            ends[name] = LogEnd(part.last, part.decisions, part.at, part.highest)
    removal = Removal(seal.seal, seal.hash, seal.high, seal.open_numbers, b"", writers, ends)
    after = 0
    while page := store.rows(after):
        after = page[-1][1].number
        for _, row in page:
            is_removed = row.number <= seal.high and row.number not in open_numbers
            if is_removed and row.link > writers.get(row.writer, (0, b""))[0]:
                writers[row.writer] = row.link, row.mac
        if after > seal.high:
            break
    removal.kept = compute_kept_digest(iter_kept(store, removal))
    return removal


def iter_kept(store: Store, removal: Removal) -> Iterator[tuple[str, Event]]:
    """Yield the rows that stay, log by log, by number."""
    for name in sorted(removal.ends):
        for row in read_changes(store, name, removal):
            yield name, row


def compute_kept_digest(rows: Iterator[tuple[str, Event]]) -> bytes:
    """Return the digest of the leaves of rows that stay."""
    digest = hashlib.sha256()
    for name, row in rows:
        digest.update(compute_leaf(row.mac, row.encode(name)))
    return digest.digest()


def find_first(store: Store) -> tuple[int, int] | None:
    """Return the number and the time of the first row that can be removed; None if there is none."""
    return next(iter(store._all(SELECT_FIRST)), None)


def delete_rows(store: Store, removal: Removal, pause: Callable[[], None] | None = None) -> None:
    """Delete what the checkpoints stand for, some numbers at a time."""
    first, _ = find_first(store) or (removal.high + 1, 0)
    size = DELETE_NUMBERS if pause is None else SERVING_NUMBERS
    for low, high in pairwise([first - 1, *(n for n in removal.open if n >= first), removal.high + 1]):
        for start in range(low, high - 1, size):
            numbers = start, min(start + size + 1, high)
            store._change((DELETE_ANSWERS, numbers), (DELETE_EVENTS, numbers))
            if pause is not None:
                pause()
    for name, end in removal.ends.items():
        store._change((DELETE_PARTS, (name, end.seq, name)), (DELETE_SNAPSHOTS, (name, end.seq)))
    if pause is None:
        store.compact()


class Stopping(Exception):
    """The server stops; the next removal finishes this one."""


class Retention:
    """A thread of a server that removes rows of an age, while this process leads.

    Attributes:
        seconds: The age. Rows are removed at most a day later.
        failed: Why the last removal failed; None if it did not.
    """

    def __init__(self, server: "Experiments", seconds: float) -> None:
        self.server, self.seconds = server, seconds
        self.failed: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a removal that is not over is finished after the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    def check(self) -> None:
        """Reject an age that is not longer than every window. Raises InvalidOutcome."""
        store = self.server.store
        versions = {name: read_all_versions(store, name) for name in store.experiments()}
        check_windows(versions, round(self.seconds * 1e6))

    def get_oldest(self) -> float | None:
        """Return the time of the first row that can be removed, in seconds; None if there is none."""
        first = find_first(self.server.store)
        return None if first is None else first[1] / 1e6

    def _run(self) -> None:
        while not self._stop.is_set():
            if self.server.learner.is_leader:
                try:
                    self._step()
                    self.failed = None
                except Stopping:
                    return
                except Exception as error:
                    self.failed = str(error)
                    log.error(
                        "old rows cannot be removed (%s); it is tried again",
                        error,
                        exc_info=not isinstance(error, StagewiseError),
                    )
            self._stop.wait(CHECK_INTERVAL)

    def _step(self) -> None:
        """Remove the rows of this age if there have been some for a day, or for as long again."""
        store, oldest = self.server.store, self.get_oldest()
        now = store.now()
        if oldest is None or now / 1e6 - oldest < self.seconds + min(MAX_DELAY, self.seconds):
            return
        self._check_clock(now)
        reason = f"--retention of {self.seconds / 86_400:.6g} days"
        removal = remove_old_rows(store, now - round(self.seconds * 1e6), SERVER_ACTOR, reason, self._pause)
        if removal is not None:
            log.warning("the rows up to seal %d are removed: %s", removal.seal, reason)

    def _check_clock(self, now: int) -> None:
        """Reject a removal up to a time in which nothing was written for longer than the age: a clock that is ahead."""
        seal = self.server.store.last_seal_before(now - round(self.seconds * 1e6))
        next_at = next((one.at for one in self.server.store.seals(seal.seal, 1)), now)
        if seal.seal and next_at - seal.at > self.seconds * 1e6:
            template = (
                "nothing was written for {days:.6g} days after seal {seal}, longer than --retention: if the clock was "
                "not set forward, remove the rows before with `stagewise store retain`"
            )
            days = (next_at - seal.at) / 86_400e6
            raise StagewiseError(ErrorCode.OUT_OF_RANGE, template, days=days, seal=seal.seal)

    def _pause(self) -> None:
        if self._stop.wait(SERVING_PAUSE):
            raise Stopping
