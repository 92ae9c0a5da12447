"""Whether a store can be written: the result of the last write, or of a test if that is too old."""

import threading
import time

from stagewise.server.store.base import Store, StoreUnavailable


class StoreHealth:
    """The result of the last write of any thread.

    Attributes:
        max_age_s: Seconds for which the result of a write is valid; later the store is tested.
    """

    max_age_s = 2.0

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: tuple[float, str | None] = (-self.max_age_s, None)  # time, and the error or None
        self._lock = threading.Lock()  # concurrent callers share one test

    def record_write(self, error: str | None = None) -> None:
        """Record a successful write, or its error."""
        self._last = time.monotonic(), error

    def get_error(self) -> str | None:
        """Return why the store cannot be written; None if it can."""
        with self._lock:
            if time.monotonic() - self._last[0] >= self.max_age_s:
                try:
                    self.store.test_write()
                except StoreUnavailable as error:
                    self.record_write(str(error))
                else:
                    self.record_write()
            return self._last[1]
