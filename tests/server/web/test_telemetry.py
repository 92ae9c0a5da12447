"""Spans, events and metrics of OpenTelemetry from a real server, collected by the SDK."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.server.web.live import Live, live
from tests.server.web.real import problem

import stagewise as sw
from stagewise.records.telemetry import EVENT_NAME, record_decision
from stagewise.server.client import Client, ErrorResponse
from stagewise.server.web import app
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.telemetry import Telemetry


class Collected(NamedTuple):
    """A server, and what the SDK collects of it."""

    server: Live
    spans: InMemorySpanExporter
    logs: InMemoryLogRecordExporter
    metrics: InMemoryMetricReader

    @property
    def events(self) -> list[Any]:
        return [one.log_record for one in self.logs.get_finished_logs()]

    def client(self) -> Client:
        return Client(self.server.address, self.server.writer, "demo", safe="nothing", timeout=30.0)


@pytest.fixture
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    spans, logs, metrics = InMemorySpanExporter(), InMemoryLogRecordExporter(), InMemoryMetricReader()
    traces, records, meters = TracerProvider(), LoggerProvider(), MeterProvider([metrics])
    traces.add_span_processor(SimpleSpanProcessor(spans))
    records.add_log_record_processor(SimpleLogRecordProcessor(logs))

    def build(server: Any) -> Telemetry:
        return Telemetry(server, tracer_provider=traces, logger_provider=records, meter_provider=meters)

    monkeypatch.setattr(app, "Telemetry", build)
    with live(tmp_path) as server:
        yield Collected(server, spans, logs, metrics)
    meters.shutdown()


def test_a_decision_is_a_span_and_an_event_in_the_callers_trace(collected: Collected) -> None:
    tracer = TracerProvider().get_tracer("caller")
    with collected.client() as client, tracer.start_as_current_span("checkout") as caller:
        decision = client.decide({"age": 30})
        client.learn(decision, click=True)
    decide, learn = collected.spans.get_finished_spans()
    parent = caller.get_span_context()
    assert {span.context.trace_id for span in (decide, learn)} == {parent.trace_id}
    assert {span.parent.span_id for span in (decide, learn)} == {parent.span_id}
    assert [span.name for span in (decide, learn)] == [
        "POST /v1/{experiment}/decisions", "POST /v1/{experiment}/outcomes",
    ]  # fmt: skip
    assert decide.kind.name == "SERVER"
    assert dict(decide.attributes) == {
        "http.request.method": "POST", "http.route": "/v1/{experiment}/decisions", "url.scheme": "http",
        "url.path": "/v1/demo/decisions", "http.response.status_code": 200, "stagewise.experiment": "demo",
        "stagewise.request_id": decide.attributes["stagewise.request_id"],
    }  # fmt: skip
    (event,) = collected.events
    assert (event.event_name, event.trace_id, event.span_id) == (
        EVENT_NAME, parent.trace_id, decide.context.span_id,
    )  # fmt: skip
    attributes = dict(event.attributes)
    assert attributes.pop("stagewise.probability") == decision.probabilities[decision.action]
    assert attributes.pop("feature_flag.result.reason") == (decision.reason or "split")
    assert attributes.pop("stagewise.reason", None) == decision.reason
    assert attributes == {
        "feature_flag.key": "demo", "feature_flag.provider.name": "stagewise", "feature_flag.version": "1",
        "feature_flag.result.variant": decision.action, "stagewise.decision_id": decision.decision_id,
        "stagewise.mode": "live",
    }  # fmt: skip


def test_reasons_errors_and_batches(collected: Collected) -> None:
    with collected.client() as client:
        (fine, wrong) = client.decide_many([{"age": 30}, {"age": 7}])
        assert isinstance(wrong, ErrorResponse)
        with pytest.raises(sw.StagewiseError):
            client.decide({"age": 7})
        collected.server.desk.store.down = True
        unlogged = client.decide({"age": 30}, decision_id="lost")
        assert not unlogged.logged
        collected.server.desk.store.down = False
    first, *others = collected.events
    assert first.attributes["stagewise.decision_id"] == fine.decision_id
    assert others
    for event in others:  # each attempt of the client
        assert event.attributes["feature_flag.result.reason"] == "error"
        assert (
            event.attributes["error.type"] == event.attributes["stagewise.reason"] == sw.FallbackReason.LOG_WRITE_FAILED
        )
    spans = [span for span in collected.spans.get_finished_spans() if span.name.endswith("decisions")]
    status = [(span.attributes["http.response.status_code"], span.status.status_code.name) for span in spans]
    assert status[:2] == [(200, "UNSET"), (422, "UNSET")]
    assert set(status[2:]) == {(503, "ERROR")}


def test_metrics_have_the_names_and_values_of_prometheus(collected: Collected) -> None:
    with collected.client() as client:
        for decision in client.decide_many([{"age": 20 + i} for i in range(40)]):
            client.learn(decision, click=False, opt_out=False)
    data = collected.metrics.get_metrics_data()
    assert data is not None
    found = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            labels = ",".join(f'{name}="{value}"' for name, value in point.attributes.items())
            found[f"{metric.name}{{{labels}}}" if labels else metric.name] = point.value
    lines = [line for line in render_metrics(collected.server.desk.desk).splitlines() if line[0] != "#"]
    expected = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    moving = {name for name in expected if "_seconds" in name or "lag_rows" in name}
    assert found.keys() == expected.keys()
    assert {name: found[name] for name in found.keys() - moving} == {n: expected[n] for n in expected.keys() - moving}


def test_a_decision_by_hand_is_an_event_of_the_callers_span() -> None:
    logs, records = InMemoryLogRecordExporter(), LoggerProvider()
    records.add_log_record_processor(SimpleLogRecordProcessor(logs))
    decision = sw.Agent(problem()).decide({"age": 30})
    with TracerProvider().get_tracer("caller").start_as_current_span("checkout") as span:
        record_decision("demo", decision, records.get_logger("shop"))
    (event,) = logs.get_finished_logs()
    assert event.log_record.span_id == span.get_span_context().span_id
    assert event.log_record.attributes["feature_flag.result.variant"] == decision.action
    assert event.log_record.attributes["stagewise.decision_id"] == decision.id


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None  # as if it were not installed
from stagewise.server.web.app import Telemetry
import stagewise.server.client, stagewise
assert Telemetry is None
assert [name for name in sys.modules if name.startswith("opentelemetry")] == ["opentelemetry"]
"""
CLIENT_ONLY = """
import sys
from stagewise.server.client import Client
Client("http://127.0.0.1:9", "-", "demo", safe="nothing", timeout=0.1).decide({})
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


@pytest.mark.parametrize("program", [WITHOUT, CLIENT_ONLY])
def test_nothing_is_imported_without_need(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
