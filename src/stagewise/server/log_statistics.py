"""Running statistics of an experiment's log; an update costs only the new rows."""

from collections import Counter, deque
from threading import Lock
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.records.reason import Reason, ReasonDetails
from stagewise.server.confidence_intervals import RecentMean, RunningMean, get_threshold
from stagewise.server.decide import STOP_REASONS, DecisionRecord, PolicyChoice, decode_decision
from stagewise.server.decision_rows import is_exploring, iter_pessimistic_costs
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
from stagewise.server.pending_outcomes import PendingOutcomes
from stagewise.server.state_fold import DECODE_OUTCOME
from stagewise.server.store.base import Store
from stagewise.server.time_series import TimeBucket, TimeSeries, update_extremes

RECENT_DECISIONS = 64  # number of recent decisions, as in an agent's report
MAX_LAST_DECISIONS, MAX_CHANGES = 20, 50  # maximum numbers in the figures
MAX_LAGS = 501
PLANNED_REASONS = (Reason.EXPERIMENT_OFF, Reason.SHADOW, Reason.OUTSIDE_CANARY)
NON_POLICY_REASONS = (
    *PLANNED_REASONS,
    *STOP_REASONS,
    Reason.DECISION_FAILED,
    Reason.LOG_WRITE_FAILED,
    Reason.SERVER_NOT_READY,
)
ROW_WIDTH = 2  # of a pending decision: the index of its action, and whether the policy chose it


class LogStatistics:
    """Statistics of the rows of one experiment."""

    def __init__(self, experiment: str) -> None:
        self.experiment, self.seq, self.global_seq, self.head = experiment, 0, 0, 0
        self.problem: Problem | None = None
        self.version = 0
        self.pending_outcomes, self.buckets = PendingOutcomes(ROW_WIDTH, {}), TimeSeries()
        self.decisions, self.actions = 0, dict[str, int]()
        self.offline_log_rows = 0  # rows of an offline log
        self.names: list[str] = []
        self.observed_mean: dict[tuple[str, str], RunningMean] = {}  # by action and signal
        self.since_limit_change: dict[str, RunningMean] = {}  # by signal, of decisions since its limit last changed
        self.limit_change_index: dict[str, int] = {}  # by limit: the first of these decisions
        self.recent_rewards = {
            True: RecentMean(),
            False: RecentMean(),
        }  # True: of the policy; False: of the safe action
        self.lags: dict[str, deque[float]] = {}
        self.reasons: Counter[str] = Counter()
        self.recent: deque[DecisionRecord] = deque(maxlen=RECENT_DECISIONS)
        self.shadow: Counter[str] = Counter()  # policy choices in shadow mode
        self.recent_shadow: deque[PolicyChoice] = deque(maxlen=RECENT_DECISIONS)
        self.last: deque[dict[str, Any]] = deque(maxlen=MAX_LAST_DECISIONS)
        self.changes: deque[dict[str, Any]] = deque(maxlen=MAX_CHANGES)
        self.lock = Lock()

    def follow(self, store: Store, most: int) -> bool:
        """Read at most this many new rows; return whether there are more."""
        with self.lock:
            for event in store.events(GLOBAL, self.global_seq, most):
                self.global_seq = event.seq
                if msgspec.json.decode(event.body).get("what") not in (KEY, REVOKED_KEY, SECRET):
                    self.record_change(event, "all experiments")
            self.head = store.head(self.experiment).seq
            for event in store.events(self.experiment, self.seq, most):
                self.take(event)
            return self.seq < self.head

    def take(self, event: Event) -> None:
        """Add the next row."""
        self.seq, due = event.seq, list[tuple[int, int]]()
        self.pending_outcomes.advance(event.at, due)
        self.record_due(due)
        if event.kind == DECISION:
            self.record_decision(event, decode_decision(event.body))
        elif event.kind == OUTCOME:
            for name in self.pending_outcomes.record_outcome(
                event.decision_index, DECODE_OUTCOME(event.body).values, due
            ):
                lag = (event.at - self.pending_outcomes.date(event.decision_index)) / 1e6
                self.lags.setdefault(name, deque(maxlen=MAX_LAGS)).append(lag)
            self.record_due(due)
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
                self.pending_outcomes = PendingOutcomes(ROW_WIDTH, problem.signals)
            else:
                self.change_limits(self.problem, problem)
            self.problem = problem
            self.record_change(event)

    def change_limits(self, old: Problem, new: Problem) -> None:
        """Reset what is compared with limits that changed: earlier decisions were made under other limits."""
        changed = [
            name for name, limit in new.limits.items() if get_threshold(limit) != get_threshold(old.limits[name])
        ]
        for name in changed:
            self.limit_change_index[name] = self.pending_outcomes.end
            self.since_limit_change.pop(name, None)
        if changed:
            self.recent.clear()
            self.recent_shadow.clear()

    def record_decision(self, event: Event, row: DecisionRecord) -> None:
        """Add a decision."""
        if row.action not in self.actions:
            self.names.append(row.action)
        self.actions[row.action] = self.actions.get(row.action, 0) + 1
        is_policy = row.reason not in NON_POLICY_REASONS
        self.decisions += 1
        self.pending_outcomes.stage(
            [[self.names.index(row.action), is_policy]], [event.at], [bool(row.request.get("deferred"))]
        )
        self.pending_outcomes.add()
        bucket = self.buckets.at(event.at)
        bucket.count += 1
        bucket.actions[row.action] = bucket.actions.get(row.action, 0) + 1
        bucket.exploring += is_exploring(row, "" if self.problem is None else self.problem.safe)
        for name, pessimistic_cost in iter_pessimistic_costs(row, self.problem):
            update_extremes(bucket.pessimistic_cost, name, pessimistic_cost, pessimistic_cost)
        choice, cause = row.policy_choice, row.cause
        if choice is not None:
            self.record_shadow_choice(bucket, choice)
        if cause is not None:
            bucket.with_reason += cause.reason not in PLANNED_REASONS
            self.reasons[cause.reason] += 1
        self.recent.append(row)
        summary = {name: getattr(row, name) for name in ("action", "mode", "reason", "probabilities")}
        summary["limits"] = msgspec.to_builtins(row.limits)
        summary["message"] = None if cause is None else cause.message
        shadow_action = None if choice is None else choice.action
        self.last.append({"decision_id": event.key, "at": event.at / 1e6, **summary, "shadow": shadow_action})

    def record_shadow_choice(self, bucket: TimeBucket, choice: PolicyChoice) -> None:
        """Add a policy choice that was not served."""
        self.shadow[choice.action] += 1
        self.recent_shadow.append(choice)
        bucket.shadow[choice.action] = bucket.shadow.get(choice.action, 0) + 1
        for name, pessimistic_cost in iter_pessimistic_costs(choice, self.problem):
            update_extremes(bucket.shadow_pessimistic_cost, name, pessimistic_cost, pessimistic_cost)

    def record_due(self, due: list[tuple[int, int]]) -> None:
        """Count due outcomes and clear the list."""
        pending = self.pending_outcomes
        for decision_index, k in due:
            signal, row = pending.names[k], decision_index - pending.base
            action, is_policy, value = (
                self.names[int(pending.rows[row, 0])],
                pending.rows[row, 1],
                float(pending.values[row, k]),
            )
            self.observed_mean.setdefault((action, signal), RunningMean()).add(value)
            if decision_index >= self.limit_change_index.get(signal, 0):
                self.since_limit_change.setdefault(signal, RunningMean()).add(value)
            self.buckets.at(pending.date(decision_index)).observed_mean.setdefault(signal, RunningMean()).add(value)
            if self.problem is not None and signal == self.problem.reward.name:
                if is_policy:
                    self.recent_rewards[True].add(value)
                if action == self.problem.safe:
                    self.recent_rewards[False].add(value)
        due.clear()

    def record_change(self, event: Event, where: str = "") -> None:
        """Add a change with its actor and reason."""
        body = msgspec.json.decode(event.body)
        what = "log" if event.kind == LOG else body.get("what") or f"version {body.get('version', '')} of the problem"
        more = {name: body[name] for name in ("mode", "share", "name", "alert", "rows") if body.get(name) is not None}
        actor_fields = {"actor": body.get("actor", ""), "reason": body.get("reason", "")}
        if "trip" in body:
            cause = ReasonDetails.from_json((body["trip"], body["details"]))
            actor_fields, more = (
                {**actor_fields, "reason": cause.message},
                {**more, "trip": cause.reason, "details": cause.details},
            )
        self.changes.append(
            {"at": event.at / 1e6, "seq": event.seq, "what": what, **actor_fields, **more, "where": where}
        )

    def get_signal_mean(self, signal: str) -> RunningMean:
        """Return the mean of a signal over all actions since its limit last changed."""
        return self.since_limit_change.get(signal, RunningMean())
