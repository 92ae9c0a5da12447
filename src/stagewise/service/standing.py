"""Whether a store can be written: by the last write, and by a try where that is long ago."""

import threading
import time

from stagewise.service.store.store import Store, StoreDown


class Standing:
    """What became of the last write, whoever made it; any thread may ask.

    Attributes:
        fresh: Seconds for which what became of a write holds; whoever asks later has the store tried out.
    """

    fresh = 2.0

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: tuple[float, str | None] = (-self.fresh, None)  # when, and why nothing could be written
        self._trying = threading.Lock()  # of those who ask at once one tries, and tells the others

    def wrote(self, trouble: str | None = None) -> None:
        """Say that something was written, or why it could not be."""
        self._last = time.monotonic(), trouble

    def trouble(self) -> str | None:
        """Return why nothing can be written; None: it can."""
        with self._trying:
            if time.monotonic() - self._last[0] >= self.fresh:
                try:
                    self.store.try_out()
                except StoreDown as error:
                    self.wrote(str(error))
                else:
                    self.wrote()
            return self._last[1]
