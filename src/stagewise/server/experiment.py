"""The state of one experiment in this process, and counters for metrics."""

import time
from collections import Counter

from stagewise.policies.problem import Problem
from stagewise.records.reason import ReasonDetails
from stagewise.server.controls import Controls
from stagewise.server.decision_engine import PolicySnapshot
from stagewise.server.state_fold import build_initial_snapshot
from stagewise.server.versions import ProblemVersion


class Experiment:
    """The current version, controls and policy snapshot of one experiment."""

    def __init__(self, name: str, version: ProblemVersion, key: bytes, has_unread_rows: bool = False) -> None:
        self.name, self.key = name, key
        self.controls = Controls()
        self.snapshot_time = time.monotonic()
        self.set_version(version, has_unread_rows)

    def set_version(self, version: ProblemVersion, has_unread_rows: bool) -> None:
        """Use another version of the problem; until its rows are read, nothing is learned."""
        self.current = version
        self.policy_snapshot: PolicySnapshot = build_initial_snapshot(
            version.problem, version.number, version.retired
        )._replace(read=not has_unread_rows)

    @property
    def problem(self) -> Problem:
        """The problem of the current version, with the actions of all versions."""
        return self.current.problem

    @property
    def version(self) -> int:
        """The number of the current version."""
        return self.current.number

    @property
    def mode(self) -> str:
        """off, shadow, canary or live."""
        return self.controls.mode

    @property
    def share(self) -> float:
        """In mode canary, the share of decisions that the policy makes."""
        return self.controls.share

    @property
    def killed(self) -> ReasonDetails | None:
        """Why the experiment's own kill switch is on."""
        return self.controls.killed

    @property
    def snapshot(self) -> int:
        """The last row of the log that is learned."""
        return self.policy_snapshot.seq

    @property
    def alerts(self) -> dict[str, ReasonDetails]:
        """Open alerts by name."""
        return self.policy_snapshot.statistics.open_alerts


class Counters:
    """Counts since this process started, for /metrics."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str, str, str]] = Counter()
        """By experiment, action, mode and reason code (empty if none)."""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """By experiment and result."""
        self.refused: Counter[tuple[str, int]] = Counter()
        """By route and status."""
