"""Reports decisions as not shown that the server may have logged and the client replaced by the safe action.

When a window closes, the server counts a missing outcome as the problem declares. Without the report it would learn
from a decision that was never carried out.
"""

import threading
from collections.abc import Callable, Sequence

MAX_IDS = 100_000  # more are dropped: the server has been unavailable for very long
BATCH_SIZE = 500
RETRY_DELAYS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # seconds; an id that is unknown after the last was never logged


class NotShownReporter:
    """A thread that starts with the first id and ends when all are reported."""

    def __init__(self, report: Callable[[Sequence[str]], list[str]]) -> None:
        self._report = report  # returns the ids that the server does not know; raises if it does not answer
        self._ids: dict[str, int] = {}  # how often each was unknown
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id_: str) -> None:
        """Report an id later."""
        with self._lock:
            if len(self._ids) < MAX_IDS:
                self._ids[id_] = 0
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="stagewise-not-shown", daemon=True)
                self._thread.start()

    def discard(self, id_: str) -> None:
        """Do not report an id: a retry got the decision, which is carried out now."""
        if id_ in self._ids:
            with self._lock:
                self._ids.pop(id_, None)

    def close(self, seconds: float = 1.0) -> None:
        """Report the remaining ids once more, and stop."""
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        turn = 0
        while True:
            stopped = self._stop.wait(RETRY_DELAYS[min(turn, len(RETRY_DELAYS) - 1)])
            turn = 0 if self._send_batch() else turn + 1
            with self._lock:
                if stopped or not self._ids:
                    self._thread = None
                    return

    def _send_batch(self) -> bool:
        """Report a batch; return whether the server knows all of its ids."""
        with self._lock:
            ids = list(self._ids)[:BATCH_SIZE]
        if not ids:
            return True
        try:
            unknown = set(self._report(ids))
        except Exception:  # rejected or unavailable: retry later
            return False
        with self._lock:
            for id_ in ids:
                if id_ not in self._ids:
                    continue
                times = self._ids.pop(id_) + 1
                if id_ in unknown and times < len(RETRY_DELAYS):
                    self._ids[id_] = times
        return not unknown
