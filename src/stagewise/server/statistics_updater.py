"""Keeps the statistics of logs up to date while they are requested."""

import logging
import threading
import time

from stagewise.server.log_statistics import LogStatistics
from stagewise.server.store.base import Store, StoreUnavailable

log = logging.getLogger("stagewise.server")

MAX_ROWS_PER_READ = 20_000  # rows read within a request; the thread reads the others
BATCH_SIZE = 1_000  # rows read by the thread before it releases the lock
UPDATE_INTERVAL = 0.5  # seconds between two updates
IDLE_TIMEOUT = 120.0  # seconds after the last request until updates stop


class StatisticsUpdater:
    """The statistics of requested experiments, and a thread that updates them while they are in use.

    A request once a minute finds statistics as fresh as a request every second.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._statistics: dict[str, LogStatistics] = {}
        self._requested_at: dict[str, float] = {}  # by experiment: time of the last request
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def get_statistics(self, name: str) -> LogStatistics:
        """Return the statistics of an experiment, updated as far as one read allows. Raises StoreUnavailable."""
        statistics = self._statistics.setdefault(name, LogStatistics(name))
        statistics.follow(self.store, MAX_ROWS_PER_READ)
        with self._lock:
            self._requested_at[name] = time.monotonic()
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="stagewise-counting", daemon=True)
                self._thread.start()
        return statistics

    def stop(self) -> None:
        """Finish the current batch and end the thread."""
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(UPDATE_INTERVAL):
            for name in self._get_active():
                self._follow(name)
            with self._lock:
                if not self._requested_at:
                    self._thread = None
                    return

    def _get_active(self) -> list[str]:
        """Return the experiments in use and forget the others."""
        with self._lock:
            since = time.monotonic() - IDLE_TIMEOUT
            self._requested_at = {name: at for name, at in self._requested_at.items() if at >= since}
            return list(self._requested_at)

    def _follow(self, name: str) -> None:
        """Read all new rows of a log."""
        try:
            while self._statistics[name].follow(self.store, BATCH_SIZE) and not self._stop.is_set():
                pass
        except StoreUnavailable:  # the next request gets the error
            pass
        except Exception:
            log.exception("counting failed; the next look tries again")
            with self._lock:
                self._requested_at.pop(name, None)
