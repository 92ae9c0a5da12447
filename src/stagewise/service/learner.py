"""The one learner: it reads the log in order, folds it, and publishes what deciders need; it also lets time pass.

Any number of processes may run one; the store lets one of them lead at a time, and another takes over when it dies.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from stagewise.problem.errors import StagewiseError
from stagewise.service.controls import TRIP
from stagewise.service.deciding import Known
from stagewise.service.fold import Fold, beginning, decoded_known, encoded_known
from stagewise.service.records import CONTROL, PROBLEM, TICK, Ask, Event, Kept, canonical
from stagewise.service.snapshots import Seals, UnsealedSnapshot
from stagewise.service.store.store import Store, StoreDown
from stagewise.service.versions import Version

log = logging.getLogger("stagewise.desk")

AT_ONCE = 5_000  # rows that are folded before anybody is told
REST = 0.01  # seconds between two looks at a log that grows: what is learned together costs less, and all wait longer
PAUSE = 0.05  # and so many more at one that does not
SHARE_EVERY = 0.5  # seconds between two snapshots for other processes
KEEP_EVERY = 30.0  # seconds between two whole ones, which a learner starts from
AGAIN = 1.0  # seconds until an experiment whose learning failed is tried again, from its last snapshot
TICK_EVERY = 1_000_000  # microseconds between two rows that only say that time has passed
DESK = "the desk"


class Learner:
    """A thread that learns for every experiment while it leads, and follows whoever leads while it does not."""

    def __init__(
        self,
        store: Store,
        versions: Callable[[], dict[str, Version]],
        publish: Callable[[str, Known], None],
        append: Callable[[list[Ask]], Any],
        *,
        alone: bool,
        dry_after: float | None = None,
    ) -> None:
        self.store, self.versions, self.publish, self.append = store, versions, publish, append
        self.alone = alone
        """Whether no other process needs snapshots."""
        self.dry_after = dry_after
        self.folds: dict[str, Fold] = {}
        self.leads = False
        self.down: str | None = None
        """Why nothing at all is learned."""
        self.failures: dict[str, str] = {}
        """Why single experiments are not learned, while the others are."""
        self.seals = Seals(store)
        self._again: dict[str, float] = {}  # when those are tried again
        self._shared: dict[str, tuple[int, float]] = {}  # by experiment: row and time of the last snapshot
        self._kept: dict[str, tuple[int, float]] = {}
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)

    @property
    def failed(self) -> str | None:
        """Why something is not learned, if something is not."""
        told = [f"learning {name!r} failed: {why}" for name, why in list(self.failures.items())]
        return self.down or "; ".join(told) or None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch at hand, keep a snapshot, and end."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30.0)

    def wake(self) -> None:
        """Say that the log has grown."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                busy = self.step()
                self.down = None
            except StoreDown as error:
                busy, self.down, self.leads = False, str(error), False
            except Exception as error:  # a learner that fails means no progress, not danger
                log.exception("learning failed; deciders go on with what is known")
                busy, self.down = False, f"learning failed: {error}"
                self.folds.clear()
                self._stop.wait(AGAIN)
            if not busy:
                self._stop.wait(REST)
                self._wake.wait(PAUSE)
                self._wake.clear()
        if self.leads and self.down is None:
            for name, fold in self.folds.items():
                try:
                    self.keep(name, fold, whole=True)
                except StoreDown:
                    break

    def step(self) -> bool:
        """Learn or follow once, for every experiment; say whether there is more to do."""
        self.leads, busy = self.store.lead(), False
        for name, version in self.versions().items():
            busy |= self.tried(name, version)
        return busy

    def tried(self, name: str, version: Version) -> bool:
        """Learn or follow one experiment; where that fails the others go on, and it is tried again soon."""
        if time.monotonic() < self._again.get(name, 0.0):
            return False
        try:
            busy = self.learn(name, version) if self.leads else self.follow(name, version)
        except StoreDown:
            raise
        except Exception as error:  # no progress, and no stop by itself: that must be said
            if name not in self.failures:
                log.exception("learning %r failed; deciders go on with what is known", name)
            self.failures[name], self._again[name] = str(error) or type(error).__name__, time.monotonic() + AGAIN
            self.folds.pop(name, None)
            return False
        if not busy:  # all of it was learned, what failed before as well
            self.failures.pop(name, None)
        return busy

    def learn(self, name: str, version: Version) -> bool:
        """Fold the next rows of an experiment."""
        fold = self.folds.get(name)
        if fold is None or fold.version != version.number:
            fold = self.folds[name] = self.started(name, version)
            self._shared.pop(name, None)
        events = self.store.events(name, fold.seq, AT_ONCE)
        ours = before(version.number + 1, events)
        if ours:
            fold.take(ours)
        if len(ours) < len(events):  # the rest is the next version's, which is read soon
            return False
        if len(events) < AT_ONCE:
            self.tell(name, fold)
            self.watch(name, fold)
        return len(events) == AT_ONCE

    def started(self, name: str, version: Version) -> Fold:
        """Return a fold that goes on from the last whole snapshot of this version, or from nothing."""
        fold = self.fresh(version)
        kept = self.store.latest(name, version.number, whole=True)
        if kept is None:
            return fold
        try:
            fold.restore(self.seals.open(kept, "whole"))
        except Exception as error:  # damaged, or of another version or setting of this program: the log is enough
            if isinstance(error, StoreDown):
                raise
            expected = isinstance(error, StagewiseError)
            told = "a snapshot of %r cannot be used (%s); its log is learned from the first row on"
            log.warning(told, name, error, exc_info=not expected)
            return self.fresh(version)
        self._kept[name] = (fold.seq, time.monotonic())
        return fold

    def fresh(self, version: Version) -> Fold:
        """Return a fold that knows nothing yet."""
        return Fold(version.problem, version.number, version.retired, self.dry_after)

    def tell(self, name: str, fold: Fold) -> None:
        """Publish what is known, in this process at once and in others soon."""
        shared = self._shared.get(name)
        if shared is None or shared[0] != fold.seq:
            self.publish(name, fold.known())
            if self.alone:
                self._shared[name] = (fold.seq, time.monotonic())
        now, kept = time.monotonic(), self._kept.get(name, (0, -KEEP_EVERY))
        whole = fold.seq > kept[0] and now - kept[1] >= KEEP_EVERY
        late = shared is None or now - shared[1] >= SHARE_EVERY
        if whole or (not self.alone and late and (shared is None or shared[0] != fold.seq)):
            self.keep(name, fold, whole)

    def keep(self, name: str, fold: Fold, whole: bool) -> None:
        """Keep a snapshot in the store."""
        content = fold.whole() if whole else b""
        kept = Kept(name, fold.version, fold.seq, encoded_known(fold.known()), content)
        self.store.keep(self.seals.seal(kept))
        self._shared[name] = (fold.seq, time.monotonic())
        if whole:
            self._kept[name] = self._shared[name]

    def watch(self, name: str, fold: Fold) -> None:
        """Let time pass where the log is silent, and trip the desk where costs are above their limit beyond chance."""
        closes, now = fold.waits.closes(), self.store.now()
        closed = closes is not None and closes <= now and now - fold.at >= TICK_EVERY
        if closed or (fold.silences is not None and fold.silences.rests(now)):
            self.append([Ask(name, TICK, "", canonical({}))])
        why = fold.trips.tripped() or fold.dried()
        if why is not None and not fold.trips.was_tripped(why):
            told = {"what": TRIP, "actor": DESK, "trip": why.reason, "details": why.details}
            self.append([Ask(name, CONTROL, "", canonical(told))])

    def follow(self, name: str, version: Version) -> bool:
        """Take over what the leading learner has published."""
        self.folds.pop(name, None)
        shared = self._shared.get(name, (-1, 0.0))
        kept = self.store.latest(name, version.number, shared[0])
        if kept is not None:
            self._shared[name] = (kept.seq, time.monotonic())
            try:
                content = self.seals.open(kept, "content")
            except UnsealedSnapshot as error:
                log.warning("a snapshot of %r cannot be used (%s); what is known stays", name, error)
                return False
            self.publish(name, decoded_known(version.problem, version.number, version.retired, content))
        elif shared[0] < 0:
            self._shared[name] = (0, time.monotonic())
            self.publish(name, beginning(version.problem, version.number, version.retired))
        return False


def before(version: int, events: list[Event]) -> list[Event]:
    """Return the rows before a version of the problem: what follows may have actions that no earlier one knows."""
    later = (place for place, event in enumerate(events) if event.kind == PROBLEM and int(event.key) >= version)
    return events[: next(later, len(events))]
