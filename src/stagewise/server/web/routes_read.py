"""GET routes. Handlers that read the store do so in a thread, so that they do not delay decisions."""

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import stagewise
from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import Event
from stagewise.server.versions import get_declared_problem
from stagewise.server.web.http_types import HTTPError, RouteRequest, RouteResponse, json_response
from stagewise.server.web.schemas import (
    AboutResponse,
    ExperimentDetail,
    ExperimentSummary,
    LivenessResponse,
    LogPage,
    LogRowResponse,
    ReadinessResponse,
)

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.experiments import Experiment
    from stagewise.server.store.base import Store

DEFAULT_ROWS, MAX_ROWS = 1000, 10_000
READ_BATCH, MAX_PAGE_BYTES = 250, 1 << 24  # bytes


async def list_experiments(call: RouteRequest) -> RouteResponse:
    """List the experiments."""
    names = call.server.experiments()
    return json_response(
        [ExperimentSummary(**build_summary_fields(call.server, call.server.experiment(name))) for name in names]
    )


async def get_experiment(call: RouteRequest) -> RouteResponse:
    """Return the status and the problem of an experiment."""
    experiment = call.server.experiment(call.path_params[0])
    fields = build_summary_fields(call.server, experiment)
    return json_response(ExperimentDetail(**fields, problem=get_declared_problem(experiment.current)))


async def explain_decision(call: RouteRequest) -> RouteResponse:
    """Explain a decision."""
    return json_response(await asyncio.to_thread(call.server.explain, *call.path_params))


async def get_figures(call: RouteRequest) -> RouteResponse:
    """Return the figures that the page shows."""
    return json_response(await asyncio.to_thread(call.server.figures, call.path_params[0]))


async def get_log(call: RouteRequest) -> RouteResponse:
    """Return rows of the log."""
    name = call.server.experiment(call.path_params[0]).name
    query = parse_query(call.query, {"after": 0, "limit": DEFAULT_ROWS})
    if not 1 <= query["limit"] <= MAX_ROWS:
        message = f"limit is {query['limit']}; it must be from 1 to {MAX_ROWS}"
        raise HTTPError(422, ErrorCode.OUT_OF_RANGE, message)
    events, more = await asyncio.to_thread(read_rows, call.server.store, name, query["after"], query["limit"])
    rows = [build_row(event) for event in events]
    return json_response(LogPage(rows, rows[-1].seq if rows else query["after"], more))


def read_rows(store: "Store", name: str, after: int, limit: int) -> tuple[list[Event], bool]:
    """Return at most `limit` rows of about MAX_PAGE_BYTES, and whether there are more.

    Rows of an offline log are large, so a few rows are read at a time.
    """
    rows, size = list[Event](), 0
    while True:
        batch = store.events(name, rows[-1].seq if rows else after, min(READ_BATCH, limit + 1 - len(rows)))
        for event in batch:
            if len(rows) == limit or (rows and size + len(event.body) > MAX_PAGE_BYTES):
                return rows, True
            rows.append(event)
            size += len(event.body)
        if not batch:
            return rows, False


async def get_liveness(call: RouteRequest) -> RouteResponse:
    """Check that the process runs."""
    return json_response(LivenessResponse())


async def get_readiness(call: RouteRequest) -> RouteResponse:
    """Check that decisions can be made and written."""
    ready, why = await asyncio.to_thread(call.server.ready)
    return json_response(ReadinessResponse(ready, why), 200 if ready else 503)


async def get_version(call: RouteRequest) -> RouteResponse:
    """Return the version of stagewise."""
    return json_response(AboutResponse(stagewise.__version__))


def build_summary_fields(server: "DecisionServer", experiment: "Experiment") -> dict[str, Any]:
    """Return the fields of an ExperimentSummary."""
    killed = server.everywhere.killed or experiment.killed
    return {
        "name": experiment.name,
        "mode": experiment.mode,
        "share": experiment.share,
        "killed": None if killed is None else killed.message,
        "version": experiment.version,
        "snapshot": experiment.snapshot,
        "snapshot_age_s": round(max(0.0, time.monotonic() - experiment.snapshot_time), 3),
        "alerts": {alert: cause.message for alert, cause in experiment.alerts.items()},
    }


def build_row(event: Event) -> LogRowResponse:
    """Return a row as it is sent."""
    seq, at, kind, key, index, body, chain, request_digest = event
    return LogRowResponse(seq, at, kind, key, index, body.decode(), chain.hex(), request_digest.hex())


def parse_query(query: bytes, defaults: dict[str, int]) -> dict[str, int]:
    """Return the integer parameters of a query, or their defaults."""
    values = dict(defaults)
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in defaults:
            message = f"unknown query parameter {name!r}; this route has {', '.join(defaults)}"
            raise HTTPError(422, ErrorCode.UNKNOWN_NAME, message)
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            message = f"{name} is {text[:50]!r}; it must be an integer, 0 or more"
            raise HTTPError(422, ErrorCode.INVALID_REQUEST, message)
        values[name] = int(text)
    return values
