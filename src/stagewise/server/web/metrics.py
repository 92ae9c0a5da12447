"""Metrics in Prometheus' text format 0.0.4."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewise.server.store.base import StoreUnavailable

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """Name, type, help text and labels of a metric."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


LEARNING_FAILED = Metric("learning_failed", "gauge", "Whether learning fails (1) or not (0).", ("experiment",))
DECISIONS = Metric("decisions_total", "counter", "Number of decisions.", ("experiment", "action", "mode", "reason"))
OUTCOMES = Metric(
    "outcomes_total",
    "counter",
    "Number of outcomes by result: accepted, duplicate, late, unknown or conflict.",
    ("experiment", "result"),
)
HTTP_ERRORS = Metric(
    "http_errors_total", "counter", "Number of HTTP requests answered with a 4xx or 5xx status.", ("route", "status")
)
OFFLINE_LOG_ROWS = Metric(
    "offline_log_rows", "gauge", "Offline log rows learned before the first decision.", ("experiment",)
)
LIMIT_MARGIN = Metric(
    "limit_margin", "gauge", "Limit minus the largest pessimistic cost of recent decisions.", ("experiment", "limit")
)
SHADOW_DECISIONS = Metric(
    "shadow_decisions", "gauge", "Number of policy choices logged in shadow mode.", ("experiment", "action")
)
SHADOW_LIMIT_MARGIN = Metric(
    "shadow_limit_margin",
    "gauge",
    "Limit minus the largest pessimistic cost of recent policy choices in shadow mode.",
    ("experiment", "limit"),
)
OBSERVED_COST = Metric(
    "observed_cost",
    "gauge",
    "Observed mean of the limited signal; outcomes not received count as no event.",
    ("experiment", "limit"),
)
SNAPSHOT_AGE = Metric(
    "snapshot_age_seconds", "gauge", "Age of the policy snapshot that serves decisions.", ("experiment",)
)
SNAPSHOT_STALE = Metric(
    "snapshot_stale", "gauge", "Whether the policy snapshot is older than --max-age (1) or not (0).", ("experiment",)
)
FEEDBACK_LAG = Metric(
    "feedback_lag_seconds", "gauge", "Median delay between a decision and its signal.", ("experiment", "signal")
)
PENDING_DECISIONS = Metric("pending_decisions", "gauge", "Decisions with incomplete outcomes.", ("experiment",))
LAG_ROWS = Metric("lag_rows", "gauge", "Log rows not yet included in these metrics.", ("experiment",))
KILLED = Metric("killed", "gauge", "Whether the kill switch is on (1) or off (0).", ("experiment",))
READY = Metric("ready", "gauge", "Whether the server is ready (1) or not (0).", ())
METRICS = (
    LEARNING_FAILED, DECISIONS, OUTCOMES, HTTP_ERRORS, OFFLINE_LOG_ROWS, LIMIT_MARGIN, SHADOW_DECISIONS,
    SHADOW_LIMIT_MARGIN, OBSERVED_COST, SNAPSHOT_AGE, SNAPSHOT_STALE, FEEDBACK_LAG, PENDING_DECISIONS, LAG_ROWS,
    KILLED, READY,
)  # fmt: skip

Sample = tuple[Metric, tuple[Any, ...], float]


def render_metrics(server: "DecisionServer") -> str:
    """Return all metrics as text."""
    samples: dict[str, list[Sample]] = {}
    for sample in iter_samples(server):
        samples.setdefault(sample[0].name, []).append(sample)
    return "".join(line for metric in METRICS for line in _render_metric(metric, samples.get(metric.name, [])))


def iter_samples(server: "DecisionServer") -> Iterator[Sample]:
    """Yield every sample with its labels."""
    counts = server.counters
    yield from ((LEARNING_FAILED, (name,), float(name in server.learner.failures)) for name in server.experiments())
    for metric, counted in ((DECISIONS, counts.decisions), (OUTCOMES, counts.outcomes), (HTTP_ERRORS, counts.refused)):
        yield from ((metric, labels, number) for labels, number in list(counted.items()))
    yield READY, (), float(server.ready()[0])
    with suppress(StoreUnavailable):  # metrics that are read from the log are left out
        for name in server.experiments():
            yield from iter_experiment_samples(server, name)


def iter_experiment_samples(server: "DecisionServer", name: str) -> Iterator[Sample]:
    """Yield the samples of an experiment; raises StoreUnavailable."""
    killed = server.everywhere.killed or server.experiment(name).killed
    yield KILLED, (name,), float(killed is not None)
    figures = server.figures(name)
    yield SNAPSHOT_AGE, (name,), figures["snapshot_age_s"]
    yield SNAPSHOT_STALE, (name,), float(figures["snapshot_age_s"] > figures["max_age_s"])
    yield OFFLINE_LOG_ROWS, (name,), figures["offline_log_rows"]
    yield PENDING_DECISIONS, (name,), figures["pending_count"]
    yield LAG_ROWS, (name,), figures["lag_rows"]
    yield from ((FEEDBACK_LAG, (name, signal), lag) for signal, lag in figures["lag_s"].items() if lag is not None)
    yield from ((SHADOW_DECISIONS, (name, action), count) for action, count in figures["shadow"].items())
    yield from _iter_limit_samples(name, figures["limits"])


def _iter_limit_samples(name: str, limits: Mapping[str, Mapping[str, Any]]) -> Iterable[Sample]:
    for limit, figures in limits.items():
        costs = ((LIMIT_MARGIN, figures["pessimistic_cost"]), (SHADOW_LIMIT_MARGIN, figures["shadow"]))
        for metric, pessimistic_cost in costs:
            if pessimistic_cost is not None:
                margin = figures["threshold"] - pessimistic_cost
                yield metric, (name, limit), margin if figures["at_most"] else -margin
        if figures["observed_mean"] is not None:
            yield OBSERVED_COST, (name, limit), figures["observed_mean"]


def _render_metric(metric: Metric, samples: list[Sample]) -> Iterator[str]:
    name = f"stagewise_{metric.name}"
    yield f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    for _, values, number in samples:
        labels = ",".join(
            f'{label}="{escape_label(value)}"' for label, value in zip(metric.labels, values, strict=True)
        )
        yield f"{name}{{{labels}}} {number!r}\n" if labels else f"{name} {number!r}\n"


def escape_label(value: Any) -> str:
    r"""Escape the value of a label.

    >>> escape_label('a"b')
    'a\\"b'
    """
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
