"""What Prometheus reads: a page of text (exposition format 0.0.4)."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Answer, Call

if TYPE_CHECKING:
    from stagewise.service.desk import Desk

KIND = b"text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """A metric: what it is called, what it counts, and what its labels are."""

    name: str
    kind: str
    tells: str
    labels: tuple[str, ...]


FAILED = Metric("learning_failed", "gauge", "1 where learning fails: nothing stops by itself.", ("experiment",))
DECISIONS = Metric("decisions_total", "counter", "Decisions.", ("experiment", "action", "mode", "reason"))
OUTCOMES = Metric(
    "outcomes_total", "counter", "Outcomes: taken, same, late, unknown, conflict.", ("experiment", "became")
)
REFUSED = Metric("refused_total", "counter", "Requests that were refused.", ("route", "status"))
LOG_ROWS = Metric(
    "log_rows", "gauge", "Rows of an offline log that were learned before the first decision.", ("experiment",)
)
SLACK = Metric(
    "slack", "gauge", "How far the dearest of the last decisions is below its limit.", ("experiment", "limit")
)
WOULD = Metric("would_decisions", "gauge", "Choices of the policy in shadow, in the log.", ("experiment", "action"))
WOULD_SLACK = Metric(
    "would_slack", "gauge", "The same for the last choices of the policy in shadow.", ("experiment", "limit")
)
SEEN = Metric(
    "limit_seen",
    "gauge",
    "The mean of what is limited by what was told so far; what was not told counts as nothing.",
    ("experiment", "limit"),
)
AGE = Metric("snapshot_age_seconds", "gauge", "How old what decisions are made of is.", ("experiment",))
STALE = Metric("stale", "gauge", "1 where that is older than it may be (--max-age).", ("experiment",))
LAG = Metric("feedback_lag_seconds", "gauge", "Median time from a decision to its signal.", ("experiment", "signal"))
WAITING = Metric("waiting", "gauge", "Decisions whose outcomes are not all there.", ("experiment",))
BEHIND = Metric("behind_rows", "gauge", "Rows of the log that are not counted here yet.", ("experiment",))
KILLED = Metric("killed", "gauge", "1 where the kill switch is on.", ("experiment",))
READY = Metric("ready", "gauge", "1 where the desk is ready.", ())
ALL = (
    FAILED, DECISIONS, OUTCOMES, REFUSED, LOG_ROWS, SLACK, WOULD, WOULD_SLACK, SEEN, AGE, STALE, LAG, WAITING, BEHIND,
    KILLED, READY,
)  # fmt: skip

Sample = tuple[Metric, tuple[Any, ...], float]


async def metrics(call: Call) -> Answer:
    """Tell the figures."""
    page = await asyncio.to_thread(page_of, call.desk)
    return Answer(200, page.encode(), KIND)


def page_of(desk: "Desk") -> str:
    """Return the page."""
    by: dict[str, list[Sample]] = {}
    for sample in samples_of(desk):
        by.setdefault(sample[0].name, []).append(sample)
    return "".join(line for metric in ALL for line in _lines(metric, by.get(metric.name, [])))


def samples_of(desk: "Desk") -> Iterator[Sample]:
    """Yield every figure with its labels."""
    counts = desk.counts
    yield from ((FAILED, (name,), float(name in desk.learner.failures)) for name in desk.experiments())
    for metric, counted in ((DECISIONS, counts.decisions), (OUTCOMES, counts.outcomes), (REFUSED, counts.refused)):
        yield from ((metric, labels, number) for labels, number in list(counted.items()))
    yield READY, (), float(desk.ready()[0])
    with suppress(StoreDown):  # what is counted in the log is left out then
        for name in desk.experiments():
            yield from experiment_of(desk, name)


def experiment_of(desk: "Desk", name: str) -> Iterator[Sample]:
    """Yield the figures of an experiment. Raises StoreDown."""
    killed = desk.everywhere.killed or desk.experiment(name).killed
    yield KILLED, (name,), float(killed is not None)
    told = desk.figures(name)
    yield AGE, (name,), told["snapshot_age_s"]
    yield STALE, (name,), float(told["snapshot_age_s"] > told["max_age_s"])
    yield LOG_ROWS, (name,), told["log_rows"]
    yield WAITING, (name,), told["waiting"]
    yield BEHIND, (name,), told["behind"]
    yield from ((LAG, (name, signal), lag) for signal, lag in told["lag_s"].items() if lag is not None)
    yield from ((WOULD, (name, action), count) for action, count in told["would"].items())
    yield from _limits(name, told["limits"])


def _limits(name: str, limits: Mapping[str, Mapping[str, Any]]) -> Iterable[Sample]:
    for limit, told in limits.items():
        for metric, dearest in ((SLACK, told["dearest"]), (WOULD_SLACK, told["would"])):
            if dearest is not None:
                below = told["threshold"] - dearest
                yield metric, (name, limit), below if told["at_most"] else -below
        if told["seen"] is not None:
            yield SEEN, (name, limit), told["seen"]


def _lines(metric: Metric, samples: list[Sample]) -> Iterator[str]:
    name = f"stagewise_{metric.name}"
    yield f"# HELP {name} {metric.tells}\n# TYPE {name} {metric.kind}\n"
    for _, values, number in samples:
        labels = ",".join(f'{label}="{quoted(value)}"' for label, value in zip(metric.labels, values, strict=True))
        yield f"{name}{{{labels}}} {number!r}\n" if labels else f"{name} {number!r}\n"


def quoted(value: Any) -> str:
    r"""Return a label's value as it stands between quotes.

    >>> quoted('a"b')
    'a\\"b'
    """
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
