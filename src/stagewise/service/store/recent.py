"""The last rows of each log, as they were written: a learner in the same process need not read them back."""

from stagewise.service.records import LOG, Event
from stagewise.service.store.settling import Row

KEPT = 4096  # rows of a log, and up to as many more


class Recent:
    """Rows without a gap, up to the last one that was written here; one thread adds, any number read."""

    def __init__(self) -> None:
        self._logs: dict[str, tuple[int, list[Event]]] = {}  # the number of the first row, and all from there on

    def add(self, rows: list[Row]) -> None:
        """Take in rows that are durable, in their order."""
        for experiment, event in rows:
            if event.kind == LOG:  # large, and read once
                self._logs[experiment] = event.seq + 1, []
                continue
            first, events = self._logs.get(experiment, (event.seq, []))
            if event.seq != first + len(events):
                first, events = event.seq, []
            if len(events) >= 2 * KEPT:
                first, events = first + KEPT, events[KEPT:]
            events.append(event)  # whoever reads has the same list: it only grows at its end
            self._logs[experiment] = first, events

    def after(self, experiment: str, seq: int, limit: int) -> list[Event] | None:
        """Return the rows that follow a row; None: that is too long ago."""
        first, events = self._logs.get(experiment, (0, []))
        start = seq + 1 - first
        return None if start < 0 or start > len(events) or not events else events[start : start + limit]
