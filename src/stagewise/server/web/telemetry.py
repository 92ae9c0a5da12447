"""OpenTelemetry in the server: a span of each request that writes, an event of each decision, the metrics of /metrics.

Only the API is used, so that what is recorded and where it goes is the SDK's configuration. Without the package
opentelemetry-api this module is not imported.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from opentelemetry._logs import LoggerProvider, get_logger
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter
from opentelemetry.propagate import extract
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import (
    ProxyTracerProvider,
    Span,
    SpanKind,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    get_tracer_provider,
)

from stagewise import __version__
from stagewise.records.telemetry import record_decision
from stagewise.server.messages import DecisionResponse
from stagewise.server.web.metrics import METRICS, Metric, Sample, iter_samples

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.web.requests import LogLine

MAX_SAMPLE_AGE = 1.0  # seconds for which all instruments share one reading
NAME = "stagewise.server"


class HeaderGetter(Getter[Mapping[bytes, bytes]]):
    """Reads the headers of a request."""

    def get(self, carrier: Mapping[bytes, bytes], key: str) -> list[str] | None:
        value = carrier.get(key.encode())
        return None if value is None else [value.decode("latin-1")]

    def keys(self, carrier: Mapping[bytes, bytes]) -> list[str]:
        return [name.decode("latin-1") for name in carrier]


HEADERS = HeaderGetter()


class Telemetry:
    """Spans, events and metrics of one server; providers that are not given are OpenTelemetry's global ones."""

    def __init__(
        self,
        server: "DecisionServer",
        *,
        tracer_provider: TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._server, self._meter_provider = ref(server), meter_provider
        self.is_traced = tracer_provider is not None
        """Whether spans and events go anywhere; without a tracer provider they cost nothing."""
        self._tracer = get_tracer(NAME, __version__, tracer_provider)
        self._logger = get_logger(NAME, __version__, logger_provider)
        self._samples: tuple[float, Sequence[Sample]] = -MAX_SAMPLE_AGE, ()

    def start(self) -> None:
        """Create the instruments, with the names of /metrics; look whether a tracer provider is set by now."""
        self.is_traced = self.is_traced or not isinstance(get_tracer_provider(), ProxyTracerProvider)
        meter = get_meter(NAME, __version__, self._meter_provider)
        for metric in METRICS:
            is_counter = metric.kind == "counter"
            create = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            create(f"stagewise_{metric.name}", callbacks=[partial(self._observe, metric)], description=metric.help)

    @contextmanager
    def trace(self, scope: Mapping[str, Any], line: "LogLine") -> Iterator[None]:
        """Record a span of a request, within the caller's trace if its headers name one."""
        headers, path = dict(scope["headers"]), scope["path"]
        attributes = {"http.request.method": scope["method"], "url.path": path, "url.scheme": scope["scheme"]}
        parent, name = extract(headers, getter=HEADERS), scope["method"]
        with self._tracer.start_as_current_span(name, parent, SpanKind.SERVER, attributes) as span:
            yield
            if span.is_recording():
                describe_response(span, name, line)

    def record(self, experiment: str, answers: Any) -> None:
        """Record the experiment of the span, and the decisions of a response."""
        get_current_span().set_attribute("stagewise.experiment", experiment)
        for answer in answers if isinstance(answers, list) else (answers,):
            if isinstance(answer, DecisionResponse):
                record_decision(experiment, answer, self._logger)

    def _observe(self, metric: Metric, _: CallbackOptions) -> Iterable[Observation]:
        server, (at, samples), now = self._server(), self._samples, time.monotonic()
        if server is None:
            return []
        if now - at >= MAX_SAMPLE_AGE:
            self._samples = now, samples = now, list(iter_samples(server))
        return [
            Observation(number, dict(zip(metric.labels, map(str, values), strict=True)))
            for name, values, number in samples
            if name == metric.name
        ]


def describe_response(span: Span, method: str, line: "LogLine") -> None:
    """Set the name of a span, which is known once the request is routed, and what became of it."""
    if line.route:
        span.update_name(f"{method} {line.route}")
        span.set_attribute("http.route", line.route)
    if line.status:  # else the client hung up
        span.set_attribute("http.response.status_code", line.status)
    span.set_attribute("stagewise.request_id", line.id)
    if line.status >= 500:
        span.set_attribute("error.type", str(line.status))
        span.set_status(StatusCode.ERROR)
