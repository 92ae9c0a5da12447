"""The experiments of a store: read periodically, published by the learner, changed by people."""

import asyncio
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from stagewise.agent.changes import DriftingBound, check_forget_costs, summarize_drifting_bounds
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.records.reason import ReasonDetails
from stagewise.server.controls import (
    ACKNOWLEDGE,
    FORGET_COSTS,
    KILL,
    MODE,
    RESUME,
    Controls,
    ProblemVersion,
    build_next_version,
    build_version,
    describe_loosening,
    fold_controls,
    get_declared_problem,
    match_order,
    parse_mode,
)
from stagewise.server.decide import PolicySnapshot
from stagewise.server.event_log import (
    CONFLICT,
    CONTROL,
    GLOBAL,
    LOG,
    PROBLEM,
    AppendRequest,
    Event,
    Kind,
    encode_canonical,
)
from stagewise.server.learner import Learner
from stagewise.server.messages import OUTCOME_FIELDS, RESERVED_NAMES, Conflict, ModeResponse, UnknownExperiment
from stagewise.server.retention import Retention
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.store.base import Store
from stagewise.server.webhooks.endpoints import Endpoint
from stagewise.server.webhooks.sender import WebhookSender
from stagewise.server.writer import Writer

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


REFRESH_INTERVAL = 0.2  # seconds between two reads of what other processes changed
MAX_ATTEMPTS = 8  # attempts of a start while other processes write versions
UNREACHABLE_NAME = re.compile(r"(^|/)\.\.?(/|$)|/data\.json$|/decisions/")
"""Names that browsers or proxies would resolve to another path, so that the experiment could not be stopped."""


class Experiment:
    """The current version, controls and policy snapshot of one experiment."""

    def __init__(self, name: str, version: ProblemVersion, key: bytes, has_unread_rows: bool = False) -> None:
        self.name, self.key = name, key
        self.controls = Controls()
        self.snapshot_time = time.monotonic()
        self.pending_requests: list[Any] = []
        """Requests that wait to be decided together."""
        self.deciding: set[asyncio.Task[None] | None] = set()
        self.last_decided, self.is_scheduled = 0.0, False
        self.bound_history = BoundHistory()
        self.set_version(version, has_unread_rows)

    def set_version(self, version: ProblemVersion, has_unread_rows: bool) -> None:
        """Use another version of the problem; until its rows are read, nothing is learned."""
        self.current = version
        self.policy_snapshot: PolicySnapshot = build_initial_snapshot(
            version.problem, version.number, version.retired
        )._replace(read=not has_unread_rows)

    def summarize_drifting(self, now: float) -> list[dict[str, Any]]:
        """Return the bounds of limits that drift at a time, with their history in this process."""
        snapshot = self.policy_snapshot
        bounds = summarize_drifting_bounds(snapshot.policy, snapshot.learned.state.memory, now)
        self.bound_history.add(now, bounds)
        return self.bound_history.to_rows(bounds)

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
        """How many rows of the log are learned."""
        return self.policy_snapshot.seq

    @property
    def alerts(self) -> dict[str, ReasonDetails]:
        """Open alerts by name."""
        return self.policy_snapshot.learned.statistics.open_alerts

    @property
    def warnings(self) -> dict[str, ReasonDetails]:
        """Open warnings by name; they stop nothing."""
        return self.policy_snapshot.learned.statistics.open_warnings


class Counters:
    """Counts since this process started, for /metrics."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str, str, str]] = Counter()
        """By experiment, action, mode and reason code (empty if none)."""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """By experiment and result."""
        self.refused: Counter[tuple[str, int]] = Counter()
        """By route and status."""
        self.webhooks: Counter[tuple[str, str]] = Counter()
        """Attempts by endpoint and result."""


class Experiments:
    """The experiments of a store, with its writer and learner."""

    def __init__(
        self,
        store: Store,
        *,
        learn: bool = True,
        alone: bool = True,
        feedback_timeout: float | None = None,
        webhooks: Sequence[Endpoint] = (),
        retention: float | None = None,
    ) -> None:
        self.store, self.counters, self.everywhere, self.writer = store, Counters(), Controls(), Writer(store)
        self._experiments: dict[str, Experiment] = {}
        self._refreshed = 0.0
        self._reading = threading.RLock()  # the learner's thread refreshes, and so does a change of controls
        self._learns = learn
        self.learner = Learner(
            store, self._versions, self._publish, self.writer.append_now, alone=alone, feedback_timeout=feedback_timeout
        )
        self._losses = store.losses
        self.webhooks = WebhookSender(self, webhooks) if webhooks else None
        self.retention = None if retention is None else Retention(self, retention)

    async def start(self) -> None:
        """Read the store and start learning."""
        self.writer.start()
        self.learner.signer.begin()
        self.refresh()
        if self._learns:
            self.learner.start()
        for thread in (self.webhooks, self.retention):
            if thread is not None:
                thread.start()

    async def stop(self) -> None:
        """Finish pending requests, save a snapshot and close the store."""
        for thread in (self.retention, self.webhooks):
            if thread is not None:
                await asyncio.to_thread(thread.stop)
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)
        self.store.close()

    def experiments(self) -> list[str]:
        return sorted(self._experiments)

    def experiment(self, name: str) -> Experiment:
        experiment = self._experiments.get(name)
        if experiment is None:
            template = "{name} is not an experiment of this server{suggestion}"
            data = {"name": safe_repr(name), "suggestion": suggest_name(name, self.experiments())}
            raise UnknownExperiment(ErrorCode.UNKNOWN_EXPERIMENT, template, **data)
        return experiment

    def ready(self) -> tuple[bool, str]:
        """Return whether decisions can be made and written, and why not."""
        error = self.writer.get_error() or self.learner.failed
        if error is not None:
            return False, error
        return True, "ready" if self._experiments else "ready, with no experiment yet"

    def refresh(self) -> None:
        """Read versions and controls that other processes wrote."""
        with self._reading:
            self._refreshed = time.monotonic()
            if self.store.losses != self._losses:
                self._forget()
            for name in self.store.experiments():
                self._read(name)  # creating a secret for a new experiment appends to the global log
            last, controls = self.store.last_control(GLOBAL), self.everywhere
            if last > controls.row:
                self.everywhere = fold_controls(self._rows(GLOBAL, CONTROL, controls.row, last), controls)

    def _rows(self, name: str, kind: Kind, after: int, last: int) -> Iterator[Event]:
        """Yield the rows of one kind in a range; later rows are left to the next refresh."""
        return takewhile(lambda event: event.number <= last, self.store.iter_events_of_kind(name, kind, after))

    def _read(self, name: str) -> None:
        """Read versions and controls of one experiment, up to the last of them; their numbers are in their order."""
        experiment, last = self._experiments.get(name), self.store.last_control(name)
        after = 0 if experiment is None else experiment.controls.row
        if experiment is not None and last <= after:
            return
        version, before = experiment.current if experiment is not None and after else None, after
        for event in self._rows(name, PROBLEM, after, last):
            version, before = build_version(version, event), event.number
        if version is None:
            return
        has_unread_rows = self.store.head(name).decision_count > 0 or self.store.find(name, LOG, "1") is not None
        if experiment is None:
            key = self.store.secret(f"draws of {name}", secrets.token_bytes(32))
            experiment = self._experiments[name] = Experiment(name, version, key, has_unread_rows)
        elif before > after:
            experiment.set_version(version, has_unread_rows)
        controls = fold_controls(self._rows(name, CONTROL, after, last), experiment.controls)
        experiment.controls = controls._replace(row=last)

    def _versions(self) -> dict[str, ProblemVersion]:
        """Return the current version of each experiment; the learner calls this."""
        if time.monotonic() - self._refreshed >= REFRESH_INTERVAL:
            self.refresh()
        return {name: one.current for name, one in list(self._experiments.items())}

    def _forget(self) -> None:
        """Forget what was read of a log that lost rows; until it is read again, the safe action is served."""
        self._losses, self.everywhere = self.store.losses, Controls()
        for experiment in self._experiments.values():
            experiment.controls = Controls()
            experiment.set_version(experiment.current, has_unread_rows=True)
        self.store.accept_losses()

    def _publish(self, name: str, policy_snapshot: PolicySnapshot) -> None:
        """Decide with this snapshot from now on; the learner calls this."""
        with self._reading:
            experiment = self._experiments.get(name)
            if (
                experiment is not None
                and experiment.current.number == policy_snapshot.version
                and (policy_snapshot.seq or experiment.policy_snapshot.read)
            ):
                experiment.policy_snapshot, experiment.snapshot_time = policy_snapshot, time.monotonic()
                if experiment.bound_history.is_due(now := self.store.now() / 1e6):
                    experiment.summarize_drifting(now)

    async def open(
        self, name: str, problem: Problem, actor: str, reason: str, mode: str = "live", *, revert: bool = False
    ) -> None:
        """Serve a problem as a new experiment, as its current version or as a new version.

        A problem that equals an earlier version may be an intended revert or an outdated file. It becomes a new
        version if it allows nothing that the current version forbids, or if `revert` is true; otherwise it is
        rejected.
        """
        if name not in self._experiments:
            check_names(check_name(name, "the experiment's name"), problem)
            checked_mode, share = parse_mode(mode, None)
            body = {"version": 1, "problem": problem.to_dict(), "actor": actor, "reason": reason}
            result = await self.writer.append(AppendRequest(name, PROBLEM, "1", encode_problem_row(body)))
            if result.status != CONFLICT or result.event is None:
                await self._control(name, {"what": MODE, "mode": checked_mode, "share": share}, actor, reason)
                return
            await asyncio.to_thread(self.refresh)  # another process was first, perhaps with another problem
        for left in reversed(range(MAX_ATTEMPTS)):
            current = self.experiment(name).current
            version = build_next_version(current, problem)
            if get_declared_problem(version) == get_declared_problem(current):
                return
            if not revert:
                await asyncio.to_thread(self._check_newer, name, current, version)
            try:
                await self.new_version(name, problem.to_dict(), actor, reason)
                return
            except Conflict:  # another process was first, perhaps with the same problem
                if not left:
                    raise
                await asyncio.to_thread(self.refresh)

    def _check_newer(self, name: str, current: ProblemVersion, new: ProblemVersion) -> None:
        """Reject a problem that equals an earlier version and is looser than the current one."""
        declared, version, loosening = get_declared_problem(new), None, describe_loosening(current, new)
        for event in self.store.iter_events_of_kind(name, PROBLEM):
            version = build_version(version, event)
            if loosening and version.number < current.number and get_declared_problem(version) == declared:
                raise InvalidProblem(
                    ErrorCode.CHANGE_NOT_ALLOWED,
                    "the problem of {name} is that of version {number}, and version {current} is in use; it "
                    "would allow {loosening}, so start with --revert to allow this, or give the problem of "
                    "version {current} or no file",
                    name=safe_repr(name),
                    number=version.number,
                    current=current.number,
                    loosening=loosening,
                )

    async def new_version(self, name: str, problem: dict[str, Any], actor: str, reason: str) -> int:
        """Create a new version of the problem and return its number. Raises InvalidProblem."""
        experiment = self.experiment(name)
        new_problem = match_order(experiment.problem, Problem.from_dict(problem))
        number = build_next_version(experiment.current, new_problem).number
        body = {"version": number, "problem": new_problem.to_dict(), "actor": actor, "reason": reason}
        result = await self.writer.append(AppendRequest(name, PROBLEM, str(number), encode_problem_row(body)))
        if result.status == CONFLICT:
            raise Conflict(
                ErrorCode.CONFLICT,
                "version {number} of {name} was created by another client in the meantime; review that version first",
                number=number,
                name=safe_repr(name),
            )
        await asyncio.to_thread(self.refresh)
        return number

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> ModeResponse:
        self.experiment(name)
        checked_mode, checked_share = parse_mode(mode, share)
        return await self._control(name, {"what": MODE, "mode": checked_mode, "share": checked_share}, actor, reason)

    async def kill(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        """Turn on the kill switch of an experiment, or of all experiments if name is None."""
        return await self._control(name, {"what": KILL}, actor, reason)

    async def resume(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        """Turn off the kill switch."""
        return await self._control(name, {"what": RESUME}, actor, reason)

    async def acknowledge(self, name: str, alert: str, actor: str, reason: str) -> ModeResponse:
        """Acknowledge an alert, so that the experiment continues, or a warning."""
        experiment = self.experiment(name)
        alerts = {**experiment.alerts, **experiment.warnings}
        if alert not in alerts:
            raise InvalidOutcome(
                ErrorCode.NO_OPEN_ALERT,
                "{alert} is not an open alert; {existing}",
                alert=safe_repr(alert),
                existing=f"the open alerts are {safe_repr(list(alerts))}" if alerts else "there is none",
            )
        return await self._control(name, {"what": ACKNOWLEDGE, "name": alert}, actor, reason)

    async def forget_costs(self, name: str, action: str, before: float | None, actor: str, reason: str) -> ModeResponse:
        """Forget what was learned of an action before a time, so that it is held back and learned again."""
        check_forget_costs(self.experiment(name).policy_snapshot.policy, action, before)
        return await self._control(name, {"what": FORGET_COSTS, "action": action, "before": before}, actor, reason)

    async def _control(self, name: str | None, control: dict[str, Any], actor: str, reason: str) -> ModeResponse:
        """Append a control row and apply it."""
        if name is not None and control["what"] != MODE:
            self.experiment(name)
        body = encode_canonical({**control, "actor": actor, "reason": reason})
        result = await self.writer.append(AppendRequest(GLOBAL if name is None else name, CONTROL, "", body))
        await asyncio.to_thread(self.refresh)
        now = self.everywhere if name is None else self.experiment(name).controls
        row = 0 if result.event is None else result.event.number
        return ModeResponse(now.mode, now.share, (now.killed or self.everywhere.killed) is not None, row)


def check_names(name: str, problem: Problem) -> None:
    """Reject names that conflict with the HTTP API."""
    if name in RESERVED_NAMES or UNREACHABLE_NAME.search(name):
        template = "the experiment is called {name!r}, which is part of the server's own URLs; rename it"
        raise InvalidProblem(ErrorCode.INVALID_NAME, template, name=name)
    reserved = next((signal for signal in problem.signals if signal in OUTCOME_FIELDS), None)
    if reserved is not None:
        template = "a signal is called {reserved!r}, which is a field of every outcome; rename it"
        raise InvalidProblem(ErrorCode.INVALID_NAME, template, reserved=reserved)


def encode_problem_row(body: Any) -> bytes:
    """Encode the row of a problem; names keep their order."""
    return msgspec.json.encode(body)
