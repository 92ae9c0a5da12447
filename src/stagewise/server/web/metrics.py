"""Metrics in Prometheus' text format 0.0.4."""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewise.agent.health_findings import Verdict
from stagewise.server.store.base import StoreUnavailable

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """Name, type, labels and help text of a metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


_OF, _LIMIT, _BOUND = ("experiment",), ("experiment", "limit"), ("experiment", "limit", "action")
METRICS = (
    Metric("learning_failed", "gauge", _OF, "Whether learning fails (1) or not (0)."),
    Metric("decisions_total", "counter", ("experiment", "action", "mode", "reason"), "Number of decisions."),
    Metric(
        "outcomes_total", "counter", ("experiment", "result"),
        "Number of outcomes by result: accepted, duplicate, late, unknown or conflict.",
    ),
    Metric(
        "http_errors_total", "counter", ("route", "status"),
        "Number of HTTP requests answered with a 4xx or 5xx status.",
    ),
    Metric(
        "webhook_attempts_total", "counter", ("webhook", "result"),
        "Number of attempts to send an event by result: delivered, failed or dropped.",
    ),
    Metric("webhook_pending_events", "gauge", ("webhook",), "Number of events that a webhook has not got yet."),
    Metric("oldest_row_timestamp_seconds", "gauge", (), "Time of the oldest row that --retention can remove."),
    Metric("retention_failed", "gauge", (), "Whether the last removal of old rows failed (1) or not (0)."),
    Metric("offline_log_rows", "gauge", _OF, "Offline log rows learned before the first decision."),
    Metric("limit_margin", "gauge", _LIMIT, "Limit minus the largest pessimistic cost of recent decisions."),
    Metric("shadow_decisions", "gauge", ("experiment", "action"), "Number of policy choices logged in shadow mode."),
    Metric(
        "shadow_limit_margin", "gauge", _LIMIT,
        "Limit minus the largest pessimistic cost of recent policy choices in shadow mode.",
    ),
    Metric(
        "observed_cost", "gauge", _LIMIT,
        "Observed mean of the limited signal; outcomes not received count as no event.",
    ),
    Metric(
        "proposal_overlap", "gauge", ("experiment", "action"),
        "Share of an action's proposed probability that recent decisions played.",
    ),
    Metric(
        "proposal_decisions_until_whole", "gauge", ("experiment", "action"),
        "Estimated decisions until an action is played whole when it is proposed.",
    ),
    Metric("drift_bound", "gauge", _BOUND, "Upper bound now of an action's cost, for a limit that drifts."),
    Metric("drift_age_term", "gauge", _BOUND, "Part of the bound that is due to the age of the outcomes."),
    Metric("drift_change_timestamp_seconds", "gauge", _BOUND, "Time since which outcomes count after a change."),
    Metric("drift_recovering", "gauge", _BOUND, "Whether an action is held back after a change (1) or not (0)."),
    Metric(
        "drift_back_timestamp_seconds", "gauge", _BOUND,
        "Estimated time at which the bound is within the limit again, at the rate of outcomes since the change.",
    ),
    Metric("snapshot_age_seconds", "gauge", _OF, "Age of the policy snapshot that serves decisions."),
    Metric("snapshot_stale", "gauge", _OF, "Whether the policy snapshot is older than --max-age (1) or not (0)."),
    Metric(
        "feedback_lag_seconds", "gauge", ("experiment", "signal"),
        "Median delay between a decision and its signal.",
    ),
    Metric("pending_decisions", "gauge", _OF, "Decisions with incomplete outcomes."),
    Metric("lag_rows", "gauge", _OF, "Log rows not yet included in these metrics."),
    Metric(
        "alerts", "gauge", ("experiment", "check", "signal", "verdict"),
        "Open findings by check and signal: contradicted, which serves the safe action, or warning.",
    ),
    Metric(
        "context_clipped_total", "counter", ("experiment", "column"),
        "Number of context values beyond their range, which count as its end.",
    ),
    Metric("killed", "gauge", _OF, "Whether the kill switch is on (1) or off (0)."),
    Metric("ready", "gauge", (), "Whether the server is ready (1) or not (0)."),
)  # fmt: skip

Sample = tuple[str, tuple[Any, ...], float]
"""The name of a metric, the values of its labels, and its value."""


def render_metrics(server: "DecisionServer") -> str:
    samples: dict[str, list[Sample]] = {}
    for sample in iter_samples(server):
        samples.setdefault(sample[0], []).append(sample)
    lines = []
    for metric in METRICS:
        name = f"stagewise_{metric.name}"
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
        for _, values, number in samples.get(metric.name, ()):
            pairs = zip(metric.labels, values, strict=True)
            labels = ",".join(f'{label}="{escape_label(value)}"' for label, value in pairs)
            lines.append(f"{name}{{{labels}}} {number!r}" if labels else f"{name} {number!r}")
    return "".join(f"{line}\n" for line in lines)


def iter_samples(server: "DecisionServer") -> Iterator[Sample]:
    counts = server.counters
    for name in server.experiments():
        yield "learning_failed", (name,), float(name in server.learner.failures)
    counted: dict[str, Any] = {
        "decisions": counts.decisions,
        "outcomes": counts.outcomes,
        "http_errors": counts.refused,
        "webhook_attempts": counts.webhooks,
    }
    for what, counter in counted.items():
        yield from ((f"{what}_total", labels, number) for labels, number in list(counter.items()))
    if server.webhooks is not None:
        yield from (
            ("webhook_pending_events", (name,), float(n)) for name, n in server.webhooks.count_pending().items()
        )
    yield "ready", (), float(server.ready()[0])
    if server.retention is not None:
        yield "retention_failed", (), float(server.retention.failed is not None)
    with suppress(StoreUnavailable):  # metrics that are read from the log are left out
        oldest = None if server.retention is None else server.retention.get_oldest()
        if oldest is not None:
            yield "oldest_row_timestamp_seconds", (), oldest
        for name in server.experiments():
            yield from iter_experiment_samples(server, name)


def iter_experiment_samples(server: "DecisionServer", name: str) -> Iterator[Sample]:
    """Yield the samples of an experiment; raises StoreUnavailable."""
    killed = server.everywhere.killed or server.experiment(name).killed
    yield "killed", (name,), float(killed is not None)
    figures = server.figures(name)
    yield "snapshot_age_seconds", (name,), figures["snapshot_age_s"]
    yield "snapshot_stale", (name,), float(figures["snapshot_age_s"] > figures["max_age_s"])
    yield "offline_log_rows", (name,), figures["offline_log_rows"]
    yield "pending_decisions", (name,), figures["pending_count"]
    yield "lag_rows", (name,), figures["lag_rows"]
    clipped = server.experiment(name).policy_snapshot.learned.statistics.clipped
    yield from (("context_clipped_total", (name, column), float(count)) for column, count in list(clipped.items()))
    for finding in figures["health"]:
        if finding["verdict"] in (Verdict.CONTRADICTED, Verdict.WARNING):
            yield "alerts", (name, finding["check"], finding["signal"], finding["verdict"]), 1.0
    lags = figures["lag_s"].items()
    yield from (("feedback_lag_seconds", (name, signal), lag) for signal, lag in lags if lag is not None)
    yield from (("shadow_decisions", (name, action), count) for action, count in figures["shadow"].items())
    for one in figures["proposals"]:
        yield "proposal_overlap", (name, one["action"]), one["overlap"]
        if one["decisions_until_whole"] is not None:
            yield "proposal_decisions_until_whole", (name, one["action"]), one["decisions_until_whole"]
    for one in figures["drifting"]:
        labels = (name, one["limit"], one["action"])
        yield "drift_bound", labels, one["bound"]
        yield "drift_age_term", labels, one["age_term"]
        yield "drift_recovering", labels, float(one["recovering"])
        for metric, at in (("change", one["changed_at"]), ("back", one["back_at"])):
            if at is not None:
                yield f"drift_{metric}_timestamp_seconds", labels, at
    for limit, one in figures["limits"].items():
        for metric, cost in (("limit_margin", one["pessimistic_cost"]), ("shadow_limit_margin", one["shadow"])):
            if cost is not None:
                yield metric, (name, limit), one["threshold"] - cost if one["at_most"] else cost - one["threshold"]
        if one["observed_mean"] is not None:
            yield "observed_cost", (name, limit), one["observed_mean"]


def escape_label(value: Any) -> str:
    r"""Escape the value of a label.

    >>> escape_label('a"b')
    'a\\"b'
    """
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
