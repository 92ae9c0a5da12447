"""Counts of logs, kept up to date beside everything else for as long as somebody looks at them."""

import logging
import threading
import time

from stagewise.service.store.store import Store, StoreDown
from stagewise.service.tally import Tally

log = logging.getLogger("stagewise.desk")

AT_ONCE = 20_000  # rows that a look itself takes in; the rest is read beside it
PORTION = 1_000  # rows that are taken in beside it before somebody else has a turn
EVERY = 0.5  # seconds
WATCHED = 120.0  # seconds since somebody looked, after which nobody does


class Counting:
    """The count of each experiment that was looked at, and a thread that follows their logs while anybody looks.

    So a count is as near to its log when it is looked at once a minute as when it is looked at every second: what one
    look leaves is taken in before the next.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._tallies: dict[str, Tally] = {}
        self._looked: dict[str, float] = {}  # when somebody did
        self._turn, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def look(self, name: str) -> Tally:
        """Return the count of an experiment, as near to its log as one look gets it. Raises StoreDown."""
        tally = self._tallies.setdefault(name, Tally(name))
        tally.follow(self.store, AT_ONCE)
        with self._turn:
            self._looked[name] = time.monotonic()
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="stagewise-counting", daemon=True)
                self._thread.start()
        return tally

    def stop(self) -> None:
        """End, once the portion at hand is taken in."""
        self._stop.set()
        with self._turn:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            for name in self._watched():
                self._follow(name)
            with self._turn:
                if not self._looked:
                    self._thread = None
                    return

    def _watched(self) -> list[str]:
        """Return what somebody looks at, and forget the rest."""
        with self._turn:
            since = time.monotonic() - WATCHED
            self._looked = {name: at for name, at in self._looked.items() if at >= since}
            return list(self._looked)

    def _follow(self, name: str) -> None:
        """Take in all that a log has more of."""
        try:
            while self._tallies[name].follow(self.store, PORTION) and not self._stop.is_set():
                pass
        except StoreDown:  # whoever looks is told
            pass
        except Exception:
            log.exception("counting failed; the next look tries again")
            with self._turn:
                self._looked.pop(name, None)
