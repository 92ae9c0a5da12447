"""What a desk serves: the experiments of its store, read again and again, and what the learner makes of them."""

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from itertools import takewhile

from stagewise.problem.checks import shown
from stagewise.problem.words import nearest
from stagewise.service.controls import Controls, folded
from stagewise.service.counting import Counting
from stagewise.service.deciding import Known
from stagewise.service.errors import UnknownExperiment
from stagewise.service.experiment import Counts, Experiment
from stagewise.service.learner import Learner
from stagewise.service.offline import ReadLog
from stagewise.service.records import CONTROL, EVERYWHERE, LOG, PROBLEM, Event, Kind
from stagewise.service.store.store import Store
from stagewise.service.versions import Version, begun
from stagewise.service.writer import Writer

REFRESH = 0.2  # seconds between two looks at what other processes changed


class Reading:
    """The experiments of a store, as this process knows them."""

    def __init__(
        self,
        store: Store,
        *,
        learn: bool = True,
        alone: bool = True,
        max_age: float = 60.0,
        dry_after: float | None = None,
        read_log: ReadLog | None = None,
    ) -> None:
        self.store, self.max_age, self.read_log = store, max_age, read_log
        self.counts = Counts()
        self.everywhere = Controls()
        self.writer = Writer(store)
        self.counting = Counting(store)
        self._experiments: dict[str, Experiment] = {}
        self._refreshed = 0.0
        self._reading = threading.RLock()  # the learner's thread reads what is new, and so does whoever changes it
        self._learn = learn
        self.learner = Learner(
            store, self._versions, self._publish, self.writer.append_now, alone=alone, dry_after=dry_after
        )

    async def start(self) -> None:
        """Read what there is, and begin to learn."""
        self.writer.start()
        self.learner.seals.begin()
        self.refresh()
        if self._learn:
            self.learner.start()

    async def stop(self) -> None:
        """Answer what was asked, keep a snapshot, let go of the store."""
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)
        await asyncio.to_thread(self.counting.stop)
        self.store.close()

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        return sorted(self._experiments)

    def experiment(self, name: str) -> Experiment:
        """Return an experiment, or say that there is none of this name."""
        found = self._experiments.get(name)
        if found is None:
            known = self.experiments()
            raise UnknownExperiment(f"{shown(name)} is no experiment of this desk{nearest(name, known)}")
        return found

    def refresh(self) -> None:
        """Read versions and controls that other processes have written."""
        with self._reading:
            self._refreshed = time.monotonic()
            for name in self.store.experiments():
                self._read(name)  # an experiment that is new has a secret made, which is told everywhere
            head, ours = self.store.head(EVERYWHERE), self.everywhere
            if head.control > ours.row:
                self.everywhere = folded(self._rows(EVERYWHERE, CONTROL, ours.row, head.control), ours)

    def _rows(self, name: str, kind: Kind, after: int, last: int) -> Iterator[Event]:
        """Give the rows of one kind between two: what is written meanwhile is for the next look."""
        return takewhile(lambda event: event.seq <= last, self.store.all_of_kind(name, kind, after))

    def _read(self, name: str) -> None:
        """Read what was written of one experiment's versions and controls, up to where its log ended just now."""
        ours, head = self._experiments.get(name), self.store.head(name)
        last = head.control
        if ours is not None and last <= ours.controls.row:
            return
        after = 0 if ours is None else ours.controls.row
        problems = list(self._rows(name, PROBLEM, after, last))
        version = None if ours is None else ours.current
        for event in problems:
            version = begun(version, event)
        if version is None:
            return
        if ours is None:
            key = self.store.secret(f"draws of {name}", secrets.token_bytes(32))
            ours = self._experiments[name] = Experiment(name, version, key, self._to_read(name))
        elif problems:
            ours.versioned(version, self._to_read(name))
        ours.controls = folded(self._rows(name, CONTROL, after, last), ours.controls)._replace(row=last)

    def _to_read(self, name: str) -> bool:
        """Say whether something is there to be learned, or in doubt: decisions, or an offline log."""
        return self.store.head(name).places > 0 or self.store.find(name, LOG, "1") is not None

    def _versions(self) -> dict[str, Version]:
        """Return what is to be learned, read again from time to time; the learner asks."""
        if time.monotonic() - self._refreshed >= REFRESH:
            self.refresh()
        return {name: one.current for name, one in list(self._experiments.items())}

    def _publish(self, name: str, known: Known) -> None:
        """Decide by this from now on; the learner says so."""
        with self._reading:
            ours = self._experiments.get(name)
            if ours is not None and ours.version == known.version and (known.seq or ours.known.read):
                ours.known, ours.snapshot_at = known, time.monotonic()

    def ready(self) -> tuple[bool, str]:
        """Say whether decisions can be made and written, or why not."""
        trouble = self.writer.trouble() or self.learner.failed
        if trouble is not None:
            return False, trouble
        return True, "ready" if self._experiments else "ready, with no experiment yet"
