"""Decisions that a desk may have logged and nobody carried out: it is told so as soon as it answers again.

A desk that hears nothing takes a closed window for an answer. So what was replaced by the safe action must be reported
as not shown, or the desk would learn from what never happened.
"""

import threading
from collections.abc import Callable, Sequence

MOST = 100_000  # ids that are kept; what is beyond would be a desk that has been away for very long
AT_ONCE = 500
PAUSES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # seconds; an id that is still unknown after the last was never logged


class Unsettled:
    """A thread that starts with the first id and ends when all are told."""

    def __init__(self, tell: Callable[[Sequence[str]], list[str]]) -> None:
        self._tell = tell  # returns those that are unknown as yet; raises where nobody answers
        self._ids: dict[str, int] = {}  # how often each was unknown
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id_: str) -> None:
        """Have an id told."""
        with self._lock:
            if len(self._ids) < MOST:
                self._ids[id_] = 0
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="stagewise-not-shown", daemon=True)
                self._thread.start()

    def discard(self, id_: str) -> None:
        """Do not tell it: the desk was asked again, has answered, and it is carried out now."""
        if id_ in self._ids:
            with self._lock:
                self._ids.pop(id_, None)

    def close(self, seconds: float = 1.0) -> None:
        """Tell once more what is left, and end."""
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        turn = 0
        while True:
            stopped = self._stop.wait(PAUSES[min(turn, len(PAUSES) - 1)])
            turn = 0 if self._told() else turn + 1
            with self._lock:
                if stopped or not self._ids:
                    self._thread = None
                    return

    def _told(self) -> bool:
        """Tell a portion; say whether all of it is settled."""
        with self._lock:
            ids = list(self._ids)[:AT_ONCE]
        if not ids:
            return True
        try:
            unknown = set(self._tell(ids))
        except Exception:  # refused or away: later
            return False
        with self._lock:
            for id_ in ids:
                if id_ not in self._ids:
                    continue
                times = self._ids.pop(id_) + 1
                if id_ in unknown and times < len(PAUSES):
                    self._ids[id_] = times
        return not unknown
