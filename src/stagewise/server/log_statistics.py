"""Running statistics of an experiment's log; an update costs only the new rows."""

import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.confidence_intervals import RecentMean, RunningMean, get_threshold
from stagewise.server.decide import STOP_REASONS, Choice, DecisionRecord, decode_decision
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    GLOBAL,
    KEY,
    LOG,
    OUTCOME,
    PROBLEM,
    REVOKED_KEY,
    SECRET,
    Event,
)
from stagewise.server.offline_log import DECODE_SIZE
from stagewise.server.outcomes import build_queue, decode_outcome, forget_indices, order_times, report_outcome
from stagewise.server.snapshots import read_changes, read_removal
from stagewise.server.store.base import Store, StoreUnavailable

log = logging.getLogger("stagewise.server")

MAX_BUCKETS = 200  # of a time series; when it is full, the buckets double in width
MIN_WIDTH = 1_000_000  # microseconds
RECENT_DECISIONS = 64  # number of recent decisions, as in an agent's report
MAX_LAST_DECISIONS, MAX_CHANGES = 20, 50  # maximum numbers in the figures
MAX_LAGS = 501
TOLERANCE = 1e-9  # an excess below this fraction of the limit is rounding
ROW_WIDTH = 2  # of a pending decision: the index of its action, and whether the policy chose it

MAX_ROWS_PER_READ = 20_000  # rows read within a request; the thread reads the others
BATCH_SIZE = 1_000  # rows read by the thread before it releases the lock
UPDATE_INTERVAL = 0.5  # seconds between two updates
IDLE_TIMEOUT = 120.0  # seconds after the last request until updates stop

PLANNED_REASONS = (FallbackReason.EXPERIMENT_OFF, FallbackReason.SHADOW, FallbackReason.OUTSIDE_CANARY)
NON_POLICY_REASONS = (
    *PLANNED_REASONS,
    *STOP_REASONS,
    FallbackReason.DECISION_FAILED,
    FallbackReason.LOG_WRITE_FAILED,
    FallbackReason.SERVER_NOT_READY,
)

Extremes = dict[str, tuple[float, float]]
"""By limit: the lowest and highest pessimistic value."""


@dataclass(slots=True)
class TimeBucket:
    """Counts of one interval; outcomes count at the time of their decision."""

    count: int = 0
    exploring: int = 0
    with_reason: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    shadow: Counter[str] = field(default_factory=Counter)
    """Policy choices in shadow mode, by action."""
    observed_mean: dict[str, RunningMean] = field(default_factory=lambda: defaultdict(RunningMean))
    pessimistic_cost: Extremes = field(default_factory=dict)
    shadow_pessimistic_cost: Extremes = field(default_factory=dict)

    def take(self, other: "TimeBucket") -> None:
        """Add the counts of another bucket."""
        self.count += other.count
        self.exploring += other.exploring
        self.with_reason += other.with_reason
        self.actions.update(other.actions)
        self.shadow.update(other.shadow)
        for name, mean in other.observed_mean.items():
            self.observed_mean[name] = self.observed_mean[name].merge(mean)
        for extremes, added in (
            (self.pessimistic_cost, other.pessimistic_cost),
            (self.shadow_pessimistic_cost, other.shadow_pessimistic_cost),
        ):
            for name, ends in added.items():
                update_extremes(extremes, name, *ends)


class TimeSeries:
    """The buckets of a log."""

    def __init__(self) -> None:
        self.origin: int | None = None
        self.width = MIN_WIDTH
        self.buckets: dict[int, TimeBucket] = {}

    def at(self, moment: int) -> TimeBucket:
        """Return the bucket of a time; no time is before the first."""
        if self.origin is None:
            self.origin = moment - moment % MIN_WIDTH
        while (moment - self.origin) // self.width >= MAX_BUCKETS:
            self.width *= 2
            halves, self.buckets = self.buckets, {}
            for index, bucket in sorted(halves.items()):
                self.buckets.setdefault(index // 2, TimeBucket()).take(bucket)
        return self.buckets.setdefault((moment - self.origin) // self.width, TimeBucket())


class LogStatistics:
    """Statistics of the rows of one experiment."""

    def __init__(self, experiment: str) -> None:
        self.experiment, self.seq, self.head = experiment, 0, 0
        self.global_number = 0  # of the last row of the global log
        self.at = 0  # of the last row
        self.indices: dict[int, int] = {}  # of decisions that the queue has, by number
        self.problem: Problem | None = None
        self.version = 0
        self.queue, self.series = build_queue({}, ROW_WIDTH, keep_value), TimeSeries()
        self.decisions, self.actions = 0, Counter[str]()
        self.offline_log_rows = 0
        self.names: list[str] = []
        self.observed_mean: dict[tuple[str, str], RunningMean] = defaultdict(RunningMean)  # by action and signal
        self.since_limit_change: dict[str, RunningMean] = defaultdict(RunningMean)  # by signal
        self.limit_change_index: dict[str, int] = {}  # by limit: the first decision since it last changed
        self.recent_rewards = {is_policy: RecentMean() for is_policy in (True, False)}  # False: of the safe action
        self.lags: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MAX_LAGS))
        self.reasons: Counter[str] = Counter()
        self.recent: deque[DecisionRecord] = deque(maxlen=RECENT_DECISIONS)
        self.shadow: Counter[str] = Counter()  # policy choices in shadow mode
        self.recent_shadow: deque[Choice] = deque(maxlen=RECENT_DECISIONS)
        self.last: deque[dict[str, Any]] = deque(maxlen=MAX_LAST_DECISIONS)
        self.changes: deque[dict[str, Any]] = deque(maxlen=MAX_CHANGES)
        self.lock = threading.Lock()

    def follow(self, store: Store, most: int) -> bool:
        """Read at most this many new rows; return whether there are more."""
        with self.lock:
            for event in store.events_of_kind(GLOBAL, CONTROL, self.global_number, most):
                self.global_number = event.number
                if msgspec.json.decode(event.body).get("what") not in (KEY, REVOKED_KEY, SECRET):
                    self.record_change(event, "all experiments")
            self.head = store.head(self.experiment).seq
            if self.seq == 0 and (removal := read_removal(store)) is not None:
                for event in read_changes(store, self.experiment, removal):  # the rows between them are gone
                    self.take(event)
            events = store.events(self.experiment, self.seq, most)
            for event in order_times(events, self.at):
                self.take(event)
            forget_indices(self.indices, self.queue)
            return len(events) == most

    def take(self, event: Event) -> None:
        """Add the next row."""
        self.seq, self.at = event.seq, event.at
        closed = list(self.queue.closed)
        self.queue.advance(event.at)
        if self.queue.closed != closed:
            self.record_due()
        if event.kind == DECISION:
            self.record_decision(event, decode_decision(event.body))
        elif event.kind == OUTCOME:
            index, values = self.indices.get(event.decision, -1), decode_outcome(event.body).values
            for name in report_outcome(self.queue, index, values, keep_value):
                self.lags[name].append((event.at - self.queue.date(index)) / 1e6)
            self.record_due()
        elif event.kind == CONTROL:
            self.record_change(event)
        elif event.kind == LOG:
            self.offline_log_rows = DECODE_SIZE(event.body).rows
            if event.key == "1":
                self.record_change(event)
        elif event.kind == PROBLEM:
            body = msgspec.json.decode(event.body)
            problem, self.version = Problem.from_dict(body["problem"]), int(body.get("version", 0))
            if self.problem is None:  # later versions have the same signals and windows
                self.queue = build_queue(problem.signals, ROW_WIDTH, keep_value)
            else:
                self.change_limits(self.problem, problem)
            self.problem = problem
            self.record_change(event)

    def change_limits(self, old: Problem, new: Problem) -> None:
        """Reset what is compared with limits that changed: earlier decisions were made under other limits."""
        for name, limit in new.limits.items():
            if get_threshold(limit) != get_threshold(old.limits[name]):
                self.limit_change_index[name] = self.queue.end
                self.since_limit_change.pop(name, None)
                self.recent.clear()
                self.recent_shadow.clear()

    def record_decision(self, event: Event, row: DecisionRecord) -> None:
        if row.action not in self.actions:
            self.names.append(row.action)
        self.actions[row.action] += 1
        self.decisions += 1
        is_policy, deferred = row.reason not in NON_POLICY_REASONS, bool(row.request.get("deferred"))
        self.queue.stage([[self.names.index(row.action), is_policy]], [event.at], [deferred])
        self.indices[event.number] = self.queue.end
        self.queue.add_staged()
        bucket, choice, cause = self.series.at(event.at), row.policy_choice, row.cause
        bucket.count += 1
        bucket.actions[row.action] += 1
        bucket.exploring += is_exploring(row, self.problem)
        for name, pessimistic_cost in iter_pessimistic_costs(row, self.problem):
            update_extremes(bucket.pessimistic_cost, name, pessimistic_cost, pessimistic_cost)
        if choice is not None:
            self.shadow[choice.action] += 1
            self.recent_shadow.append(choice)
            bucket.shadow[choice.action] += 1
            for name, pessimistic_cost in iter_pessimistic_costs(choice, self.problem):
                update_extremes(bucket.shadow_pessimistic_cost, name, pessimistic_cost, pessimistic_cost)
        if cause is not None:
            bucket.with_reason += cause.reason not in PLANNED_REASONS
            self.reasons[cause.reason] += 1
        self.recent.append(row)
        self.last.append(
            {
                "decision_id": event.key,
                "at": event.at / 1e6,
                "action": row.action,
                "mode": row.mode,
                "reason": row.reason,
                "limits": msgspec.to_builtins(row.limits),
                "probabilities": row.probabilities,
                "message": None if cause is None else cause.message,
                "shadow": None if choice is None else choice.action,
            }
        )

    def record_due(self) -> None:
        """Count the outcomes that are due."""
        queue, problem = self.queue, self.problem
        for index, k in queue.iter_due():
            signal, row = queue.names[k], index - queue.base
            action, is_policy = self.names[int(queue.rows[row, 0])], queue.rows[row, 1]
            value = float(queue.values[row, k])
            self.observed_mean[action, signal].add(value)
            if index >= self.limit_change_index.get(signal, 0):
                self.since_limit_change[signal].add(value)
            self.series.at(queue.date(index)).observed_mean[signal].add(value)
            if problem is not None and signal == problem.reward.name:
                if is_policy:
                    self.recent_rewards[True].add(value)
                if action == problem.safe_name:
                    self.recent_rewards[False].add(value)

    def record_change(self, event: Event, where: str = "") -> None:
        """Add a change with its actor and reason."""
        body = msgspec.json.decode(event.body)
        what = "log" if event.kind == LOG else body.get("what") or f"version {body.get('version', '')} of the problem"
        more = {name: body[name] for name in ("mode", "share", "name", "alert", "rows") if body.get(name) is not None}
        reason = body.get("reason", "")
        if "trip" in body:
            cause = ReasonDetails.from_json((body["trip"], body["details"]))
            reason, more = cause.message, {**more, "trip": cause.reason, "details": cause.details}
        actor = {"actor": body.get("actor", ""), "reason": reason}
        self.changes.append(
            {"at": event.at / 1e6, "number": event.number, "what": what, **actor, **more, "where": where}
        )


class StatisticsUpdater:
    """The statistics of requested experiments, and a thread that updates them while they are in use.

    A request once a minute finds statistics as fresh as a request every second.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._statistics: dict[str, LogStatistics] = {}
        self._requested_at: dict[str, float] = {}  # by experiment: time of the last request
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def get_statistics(self, name: str) -> LogStatistics:
        """Return the statistics of an experiment, updated as far as one read allows. Raises StoreUnavailable."""
        statistics = self._statistics.setdefault(name, LogStatistics(name))
        statistics.follow(self.store, MAX_ROWS_PER_READ)
        with self._lock:
            self._requested_at[name] = time.monotonic()
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="stagewise-counting", daemon=True)
                self._thread.start()
        return statistics

    def stop(self) -> None:
        """Finish the current batch and end the thread."""
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(UPDATE_INTERVAL):
            with self._lock:
                since = time.monotonic() - IDLE_TIMEOUT
                self._requested_at = {name: at for name, at in self._requested_at.items() if at >= since}
                if not self._requested_at:
                    self._thread = None
                    return
                names = list(self._requested_at)
            for name in names:
                self._follow(name)

    def _follow(self, name: str) -> None:
        """Read all new rows of a log."""
        try:
            while self._statistics[name].follow(self.store, BATCH_SIZE) and not self._stop.is_set():
                pass
        except StoreUnavailable:  # the next request gets the error
            pass
        except Exception:
            log.exception("counting failed; the next look tries again")
            with self._lock:
                self._requested_at.pop(name, None)


def keep_value(_: str, value: float) -> float:
    """Return a value in its own units."""
    return value


def update_extremes(extremes: Extremes, name: str, low: float, high: float) -> None:
    """Add pessimistic values of a limit."""
    lowest, highest = extremes.get(name, (low, high))
    extremes[name] = (min(lowest, low), max(highest, high))


def exceeds_limit(value: float, threshold: float, at_most: bool) -> bool:
    """Return whether a value violates a limit, beyond rounding.

    >>> exceeds_limit(0.03, 0.02, True), exceeds_limit(0.02, 0.02, True), exceeds_limit(3.9, 4.0, False)
    (True, False, True)
    """
    over = value - threshold if at_most else threshold - value
    return over > TOLERANCE * max(abs(threshold), TOLERANCE)


def is_safe_cost_unknown(row: Choice, name: str, problem: Problem | None) -> bool:
    """Return whether a bound violates its limit because the safe action's cost is still being learned.

    This happens if that cost was not declared: only the safe action is served until it is known well enough.
    """
    limit = None if problem is None else problem.limits.get(name)
    if (
        problem is None
        or limit is None
        or limit.safe_bound is not None
        or row.probabilities.get(problem.safe_name, 0.0) < 1.0
    ):
        return False
    cost = row.limits[name].pessimistic_cost
    return cost is None or exceeds_limit(cost, row.limits[name].threshold, not limit.at_least)


def iter_pessimistic_costs(row: Choice, problem: Problem | None) -> Iterator[tuple[str, float]]:
    """Yield the pessimistic cost of a row for each limit, except while the safe cost is unknown."""
    for name, bounds in row.limits.items():
        if bounds.pessimistic_cost is not None and not is_safe_cost_unknown(row, name, problem):
            yield name, bounds.pessimistic_cost


def is_exploring(row: DecisionRecord, problem: Problem | None) -> bool:
    """Return whether the served action is neither the safe one nor the most probable one."""
    if not row.probabilities or (problem is not None and row.action == problem.safe_name):
        return False
    return row.probabilities.get(row.action, 0.0) < max(row.probabilities.values())
