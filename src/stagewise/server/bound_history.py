"""The bounds of limits that drift over time, as this process has seen them since it started."""

from collections.abc import Sequence
from typing import Any

from stagewise.agent.drifting_bounds import DriftingBound

MOST_POINTS = 240  # of an action; when there are more, every second one is dropped
INTERVAL = 1.0  # seconds between two points, at first


class BoundHistory:
    """Times, bounds and age terms by limit and action, at intervals that double as time goes on."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        self.interval = INTERVAL

    def is_due(self, now: float) -> bool:
        """Return whether the last points are long enough ago."""
        return now - max((points[-1][0] for points in self.points.values()), default=-self.interval) >= self.interval

    def add(self, now: float, bounds: Sequence[DriftingBound]) -> None:
        """Add the bounds at a time, unless the last ones are too recent."""
        if not self.is_due(now):
            return
        for one in bounds:
            self.points.setdefault((one.limit, one.action), []).append((now, one.bound, one.age_term))
        if any(len(points) > MOST_POINTS for points in self.points.values()):
            self.points = {key: points[::2] for key, points in self.points.items()}
            self.interval *= 2.0

    def to_rows(self, bounds: Sequence[DriftingBound]) -> list[dict[str, Any]]:
        """Return the bounds as JSON values, each with its history: [time, bound, age term]."""
        return [one._asdict() | {"history": self.points.get((one.limit, one.action), [])} for one in bounds]
