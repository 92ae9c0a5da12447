"""Base of the server's services: the experiments of a store, refreshed periodically, with writer and learner."""

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from itertools import takewhile

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.server.controls import Controls, fold_controls
from stagewise.server.decision_engine import PolicySnapshot
from stagewise.server.event_log import CONTROL, GLOBAL, LOG, PROBLEM, Event, Kind
from stagewise.server.experiment import Counters, Experiment
from stagewise.server.learner import Learner
from stagewise.server.offline_log import LogReader
from stagewise.server.server_errors import UnknownExperiment
from stagewise.server.statistics_updater import StatisticsUpdater
from stagewise.server.store.base import Store
from stagewise.server.versions import ProblemVersion, build_version
from stagewise.server.writer import Writer

REFRESH_INTERVAL = 0.2  # seconds between two reads of what other processes changed


class ServiceBase:
    """The experiments of a store."""

    def __init__(
        self,
        store: Store,
        *,
        learn: bool = True,
        alone: bool = True,
        max_age: float = 60.0,
        feedback_timeout: float | None = None,
        read_log: LogReader | None = None,
    ) -> None:
        self.store, self.max_age, self.read_log = store, max_age, read_log
        self.counters = Counters()
        self.everywhere = Controls()
        self.writer = Writer(store)
        self.statistics_updater = StatisticsUpdater(store)
        self._experiments: dict[str, Experiment] = {}
        self._refreshed = 0.0
        self._reading = threading.RLock()  # the learner's thread refreshes, and so does a change of controls
        self._learn = learn
        self.learner = Learner(
            store, self._versions, self._publish, self.writer.append_now, alone=alone, feedback_timeout=feedback_timeout
        )

    async def start(self) -> None:
        """Read the store and start learning."""
        self.writer.start()
        self.learner.seals.begin()
        self.refresh()
        if self._learn:
            self.learner.start()

    async def stop(self) -> None:
        """Finish pending requests, save a snapshot and close the store."""
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)
        await asyncio.to_thread(self.statistics_updater.stop)
        self.store.close()

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        return sorted(self._experiments)

    def experiment(self, name: str) -> Experiment:
        """Return an experiment. Raises UnknownExperiment."""
        experiment = self._experiments.get(name)
        if experiment is None:
            names = self.experiments()
            raise UnknownExperiment(
                ErrorCode.UNKNOWN_EXPERIMENT,
                "{name} is not an experiment of this server{suggestion}",
                name=safe_repr(name),
                suggestion=suggest_name(name, names),
            )
        return experiment

    def refresh(self) -> None:
        """Read versions and controls that other processes wrote."""
        with self._reading:
            self._refreshed = time.monotonic()
            for name in self.store.experiments():
                self._read(name)  # creating a secret for a new experiment appends to the global log
            head, controls = self.store.head(GLOBAL), self.everywhere
            if head.control > controls.row:
                self.everywhere = fold_controls(self._rows(GLOBAL, CONTROL, controls.row, head.control), controls)

    def _rows(self, name: str, kind: Kind, after: int, last: int) -> Iterator[Event]:
        """Yield the rows of one kind in a range; later rows are left to the next refresh."""
        return takewhile(lambda event: event.seq <= last, self.store.iter_events_of_kind(name, kind, after))

    def _read(self, name: str) -> None:
        """Read versions and controls of one experiment, up to the current end of its log."""
        experiment, head = self._experiments.get(name), self.store.head(name)
        last = head.control
        if experiment is not None and last <= experiment.controls.row:
            return
        after = 0 if experiment is None else experiment.controls.row
        problems = list(self._rows(name, PROBLEM, after, last))
        version = None if experiment is None else experiment.current
        for event in problems:
            version = build_version(version, event)
        if version is None:
            return
        if experiment is None:
            key = self.store.secret(f"draws of {name}", secrets.token_bytes(32))
            experiment = self._experiments[name] = Experiment(name, version, key, self._has_rows_to_read(name))
        elif problems:
            experiment.set_version(version, self._has_rows_to_read(name))
        experiment.controls = fold_controls(self._rows(name, CONTROL, after, last), experiment.controls)._replace(
            row=last
        )

    def _has_rows_to_read(self, name: str) -> bool:
        """Return whether the log has rows to learn: decisions or an offline log."""
        return self.store.head(name).decision_count > 0 or self.store.find(name, LOG, "1") is not None

    def _versions(self) -> dict[str, ProblemVersion]:
        """Return the current version of each experiment; the learner calls this."""
        if time.monotonic() - self._refreshed >= REFRESH_INTERVAL:
            self.refresh()
        return {name: one.current for name, one in list(self._experiments.items())}

    def _publish(self, name: str, policy_snapshot: PolicySnapshot) -> None:
        """Decide with this snapshot from now on; the learner calls this."""
        with self._reading:
            experiment = self._experiments.get(name)
            if (
                experiment is not None
                and experiment.version == policy_snapshot.version
                and (policy_snapshot.seq or experiment.policy_snapshot.read)
            ):
                experiment.policy_snapshot, experiment.snapshot_time = policy_snapshot, time.monotonic()

    def ready(self) -> tuple[bool, str]:
        """Return whether decisions can be made and written, and why not."""
        error = self.writer.get_error() or self.learner.failed
        if error is not None:
            return False, error
        return True, "ready" if self._experiments else "ready, with no experiment yet"
