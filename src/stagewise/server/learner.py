"""The learner: seals committed rows, folds them in that order, publishes snapshots and appends ticks and stops.

Any number of processes can run one. The store lets one lead at a time; another takes over when it dies.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from stagewise.problem.errors import StagewiseError
from stagewise.server.controls import TRIP, ProblemVersion
from stagewise.server.decide import PolicySnapshot
from stagewise.server.event_log import (
    CONTROL,
    MAX_SEAL_ROWS,
    PROBLEM,
    TICK,
    AppendRequest,
    Event,
    StoredSnapshot,
    encode_canonical,
)
from stagewise.server.snapshots import (
    InvalidSignature,
    SnapshotSigner,
    begin_fold,
    build_initial_snapshot,
    decode_snapshot,
    encode_snapshot,
)
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.user_keys import open_rows

log = logging.getLogger("stagewise.server")

BATCH_SIZE = 5_000  # rows folded before a snapshot is published
MIN_PAUSE = 0.01  # seconds between two reads of a growing log; larger batches cost less and add latency
IDLE_PAUSE = 0.05  # additional seconds between two reads of an idle log
SHARE_INTERVAL = 0.5  # seconds between two snapshots for other processes
SAVE_INTERVAL = 30.0  # seconds between two snapshots with the learner's state
RETRY_DELAY = 1.0  # seconds before learning an experiment that failed is retried from its last snapshot
TICK_INTERVAL = 1_000_000  # microseconds between two tick rows
SERVER_ACTOR = "the server"
NEVER = -1, float("-inf")


class Learner:
    """A thread that learns all experiments while it leads, and follows the leader's snapshots otherwise.

    Attributes:
        alone: Whether no other process needs snapshots.
        down: Why nothing is learned; None if learning works.
        failures: Errors of single experiments, by name.
    """

    def __init__(
        self,
        store: Store,
        versions: Callable[[], dict[str, ProblemVersion]],
        publish: Callable[[str, PolicySnapshot], None],
        append: Callable[[list[AppendRequest]], Any],
        *,
        alone: bool,
        feedback_timeout: float | None = None,
    ) -> None:
        self.store, self.versions, self.publish, self.append = store, versions, publish, append
        self.alone, self.feedback_timeout, self.signer = alone, feedback_timeout, SnapshotSigner(store)
        self.folds: dict[str, StateFold] = {}
        self.is_leader = False
        self.down: str | None = None
        self.failures: dict[str, str] = {}
        self._retry_at: dict[str, float] = defaultdict(float)  # by experiment: time of the next attempt
        self._shared: dict[str, tuple[int, float]] = defaultdict(lambda: NEVER)  # row and time of the last snapshot
        self._saved: dict[str, tuple[int, float]] = defaultdict(lambda: NEVER)  # and of the last with the state
        self._losses = store.losses
        self._caught_up: set[str] = set()  # the experiments of whose log every row is learned
        self._stop, self._wake = threading.Event(), threading.Event()
        self.wake = self._wake.set  # signals that the log has grown
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)

    @property
    def failed(self) -> str | None:
        """Why learning fails, or None."""
        messages = [f"learning {name!r} failed: {error}" for name, error in list(self.failures.items())]
        return self.down or "; ".join(messages) or None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the current batch, save a snapshot and end the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                busy = self.step()
                self.down = None
            except StoreUnavailable as error:
                busy, self.down, self.is_leader = False, str(error), False
            except Exception as error:  # without learning, decisions stay safe
                log.exception("learning failed; deciders go on with what is known")
                busy, self.down = False, f"learning failed: {error}"
                self.folds.clear()
                self._stop.wait(RETRY_DELAY)
            if not busy:
                self._stop.wait(MIN_PAUSE)
                self._wake.wait(IDLE_PAUSE)
                self._wake.clear()
        if self.is_leader and self.down is None:
            for name, fold in self.folds.items():
                try:
                    if name in self._caught_up:  # followers decide by what is saved
                        self.save_snapshot(name, fold, with_learner_state=True)
                except StoreUnavailable:
                    break

    def step(self) -> bool:
        """Learn or follow every experiment once; return whether more rows are waiting.

        After an error the other experiments continue, and the one that failed is retried soon.
        """
        self.is_leader = self.store.try_lead()
        if self.store.losses != self._losses:
            self._losses = self.store.losses
            log.error(
                "another machine took over as the store and lacks rows that were acknowledged; all is learned anew"
            )
            for memory in (self.folds, self._shared, self._saved):
                memory.clear()
        sealed = self.store.seal() if self.is_leader else {}
        busy = sum(map(len, sealed.values())) >= MAX_SEAL_ROWS
        for name, version in self.versions().items():
            if time.monotonic() < self._retry_at[name]:
                continue
            try:
                has_more = self.is_leader and self.learn(name, version, sealed.get(name, ()))
                if not self.is_leader:
                    self.follow(name, version)
            except StoreUnavailable:
                raise
            except Exception as error:  # an experiment that is not learned cannot stop itself: report it
                if name not in self.failures:
                    log.exception("learning %r failed; deciders go on with what is known", name)
                self.failures[name] = str(error) or type(error).__name__
                self._retry_at[name] = time.monotonic() + RETRY_DELAY
                self.folds.pop(name, None)
                continue
            if not has_more:  # everything is learned, including what failed before
                self.failures.pop(name, None)
            busy |= has_more
        return busy

    def learn(self, name: str, version: ProblemVersion, sealed: Sequence[Event] = ()) -> bool:
        """Fold the next rows of an experiment, which may have been sealed just now; return whether there are more."""
        self._caught_up.discard(name)
        fold = self.folds.get(name)
        if fold is None or fold.version != version.number:
            fold = self.folds[name] = self.restore_fold(name, version)
            self._shared.pop(name, None)
        follows = sealed and sealed[0].seq == fold.seq + 1
        events = sealed if follows else self.store.events(name, fold.seq, BATCH_SIZE)
        later = (i for i, event in enumerate(events) if event.kind == PROBLEM and int(event.key) > version.number)
        rows = events[: next(later, len(events))]  # the next version, which is read soon, may have unknown actions
        if rows:
            fold.take(open_rows(self.store, rows))
        has_more = len(events) >= BATCH_SIZE and not follows
        if len(rows) == len(events) and not has_more:
            self._caught_up.add(name)
            self.publish_fold(name, fold)
            self.append_ticks_and_stops(name, fold)
        return has_more

    def restore_fold(self, name: str, version: ProblemVersion) -> StateFold:
        """Return a fold restored from the last snapshot of this version, or a new one."""
        stored = self.store.get_latest_snapshot(name, version.number, with_learner_state=True)
        if stored is not None:
            fold = StateFold(version.problem, version.number, version.retired, self.feedback_timeout)
            try:
                fold.restore(self.signer.open(stored, "learner_state"))
            except StoreUnavailable:
                raise
            except Exception as error:  # damaged, or of another version or setting: the log is enough
                message = "a snapshot of %r cannot be used (%s); its log is learned anew"
                log.warning(message, name, error, exc_info=not isinstance(error, StagewiseError))
            else:
                self._saved[name] = fold.seq, time.monotonic()
                return fold
        return begin_fold(self.store, name, version, self.feedback_timeout)

    def publish_fold(self, name: str, fold: StateFold) -> None:
        """Publish the snapshot in this process, and for other processes if it is due."""
        now, (shared, shared_at), (saved, saved_at) = time.monotonic(), self._shared[name], self._saved[name]
        if shared != fold.seq:
            self.publish(name, fold.build_snapshot())
            if self.alone:
                self._shared[name] = fold.seq, now
        with_learner_state = fold.seq > max(saved, 0) and now - saved_at >= SAVE_INTERVAL
        if with_learner_state or (not self.alone and shared != fold.seq and now - shared_at >= SHARE_INTERVAL):
            self.save_snapshot(name, fold, with_learner_state)

    def save_snapshot(self, name: str, fold: StateFold, with_learner_state: bool) -> None:
        content = fold.encode() if with_learner_state else b""
        stored = StoredSnapshot(name, fold.version, fold.seq, encode_snapshot(fold.build_snapshot()), content)
        self.store.save_snapshot(self.signer.sign(stored))
        self._shared[name] = fold.seq, time.monotonic()
        if with_learner_state:
            self._saved[name] = self._shared[name]

    def append_ticks_and_stops(self, name: str, fold: StateFold) -> None:
        """Append a tick if windows close while the log is idle, and a stop if a limit is exceeded."""
        closes, now = fold.queue.next_closing(), self.store.now()
        closed = closes is not None and closes <= now and now - fold.at >= TICK_INTERVAL
        if closed or (fold.feedback_monitor is not None and fold.feedback_monitor.is_tick_due(now)):
            self.append([AppendRequest(name, TICK, "", encode_canonical({}))])
        cause = fold.circuit_breaker.find_breach() or fold.find_feedback_cause()
        if cause is not None and not fold.circuit_breaker.is_logged(cause):
            body = {"what": TRIP, "actor": SERVER_ACTOR, "trip": cause.reason, "details": cause.details}
            self.append([AppendRequest(name, CONTROL, "", encode_canonical(body))])

    def follow(self, name: str, version: ProblemVersion) -> None:
        """Publish the leader's newest snapshot."""
        self.folds.pop(name, None)
        shared, _ = self._shared[name]
        stored = self.store.get_latest_snapshot(name, version.number, shared)
        if stored is not None:
            self._shared[name] = stored.seq, time.monotonic()
            try:
                content = self.signer.open(stored, "content")
            except InvalidSignature as error:
                log.warning("a snapshot of %r cannot be used (%s); what is known stays", name, error)
                return
            self.publish(name, decode_snapshot(version.problem, version.number, version.retired, content))
        elif shared < 0:
            self._shared[name] = 0, time.monotonic()
            self.publish(name, build_initial_snapshot(version.problem, version.number, version.retired))
