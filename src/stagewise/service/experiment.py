"""What one process knows of an experiment, and what it has counted."""

import time
from collections import Counter

from stagewise.policies.problem import Problem
from stagewise.records.reason import Cause
from stagewise.service.controls import Controls
from stagewise.service.deciding import Known
from stagewise.service.fold import beginning
from stagewise.service.versions import Version


class Experiment:
    """What this process knows of one experiment."""

    def __init__(self, name: str, version: Version, key: bytes, to_read: bool = False) -> None:
        self.name, self.key = name, key
        self.controls = Controls()
        self.snapshot_at = time.monotonic()
        self.versioned(version, to_read)

    def versioned(self, version: Version, to_read: bool) -> None:
        """Play another version of the problem; until what there is to read of it is read, nothing is known."""
        self.current = version
        self.known: Known = beginning(version.problem, version.number, version.retired)._replace(read=not to_read)

    @property
    def problem(self) -> Problem:
        """The problem as it is played, with the actions of all versions."""
        return self.current.problem

    @property
    def version(self) -> int:
        """The number of the problem's version."""
        return self.current.number

    @property
    def mode(self) -> str:
        """off, shadow, canary or live."""
        return self.controls.mode

    @property
    def share(self) -> float:
        """canary: the share of decisions that are the policy's."""
        return self.controls.share

    @property
    def killed(self) -> Cause | None:
        """Why the experiment's own kill switch is pulled."""
        return self.controls.killed

    @property
    def state(self) -> int:
        """The row of the log up to which was learned."""
        return self.known.seq

    @property
    def doubts(self) -> dict[str, Cause]:
        """What contradicts safety and nobody has acknowledged, by name."""
        return self.known.notes.open_doubts


class Counts:
    """What happened since this process started, for /metrics."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str, str, str]] = Counter()
        """By experiment, action, mode and reason; empty: none."""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """By experiment and what became of them."""
        self.refused: Counter[tuple[str, int]] = Counter()
        """By route and status."""
