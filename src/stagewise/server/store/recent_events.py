"""A cache of the last rows of each log, so that a learner in the same process need not read them back."""

from stagewise.server.event_log import LOG, Event
from stagewise.server.store.append_batch import LogRow

MAX_EVENTS = 4096  # rows of a log, at most twice as many


class RecentEvents:
    """The last consecutive rows of each log; one thread adds, any number read."""

    def __init__(self) -> None:
        self._logs: dict[str, tuple[int, list[Event]]] = {}  # the number of the first row, and the rows from there on

    def add(self, rows: list[LogRow]) -> None:
        """Add durable rows in order."""
        for experiment, event in rows:
            if event.kind == LOG:  # large, and read once
                self._logs[experiment] = event.seq + 1, []
                continue
            first, events = self._logs.get(experiment, (event.seq, []))
            if event.seq != first + len(events):
                first, events = event.seq, []
            if len(events) >= 2 * MAX_EVENTS:
                first, events = first + MAX_EVENTS, events[MAX_EVENTS:]
            events.append(event)  # readers share this list; it only grows
            self._logs[experiment] = first, events

    def after(self, experiment: str, seq: int, limit: int) -> list[Event] | None:
        """Return the rows after a row; None if they are not cached."""
        first, events = self._logs.get(experiment, (0, []))
        start = seq + 1 - first
        return None if start < 0 or start > len(events) or not events else events[start : start + limit]
