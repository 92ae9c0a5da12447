"""The table of all routes except the page's: roles, types, statuses and summaries."""

from typing import Any

from stagewise.server.access_keys import ADMIN, READER, WRITER
from stagewise.server.messages import (
    AcknowledgeRequest,
    DecisionRequest,
    DecisionResponse,
    ErrorResponse,
    ModeRequest,
    ModeResponse,
    OutcomeResponse,
    ProblemRequest,
    ReasonRequest,
)
from stagewise.server.offline_log import OfflineLogRequest, OfflineLogResponse
from stagewise.server.web import routes_admin, routes_read, schemas
from stagewise.server.web.metrics import get_metrics
from stagewise.server.web.openapi import OutcomeRequest, get_openapi
from stagewise.server.web.router import Handler, Route
from stagewise.server.web.routes_decisions import post_decisions
from stagewise.server.web.routes_outcomes import post_outcomes

EXPERIMENT_PATH = "/v1/{experiment}"
MAX_LOG_BODY_BYTES = 1 << 24
READ_ERRORS = (404, 503)
WRITE_ERRORS = (404, 409, 503)
GLOBAL_OPTIONS: dict[str, Any] = {"responses": {200: schemas.GlobalKillResponse}, "error_statuses": (409, 503)}


def build_get_route(
    path: str, handler: Handler, response_type: Any, summary: str, *, error_statuses: tuple[int, ...] = (), **more: Any
) -> Route:
    """Return a GET route, for readers by default."""
    fields = {"role": READER, "responses": {200: response_type}, **more}
    return Route(method="GET", path=path, handler=handler, summary=summary, error_statuses=error_statuses, **fields)


def build_post_route(
    path: str,
    handler: Handler,
    request_type: Any,
    summary: str,
    *,
    error_statuses: tuple[int, ...] = WRITE_ERRORS,
    **more: Any,
) -> Route:
    """Return a POST route, for admins by default."""
    fields = {"role": ADMIN, "responses": {200: ModeResponse}, **more}
    return Route(
        method="POST",
        path=path,
        handler=handler,
        request_type=request_type,
        summary=summary,
        error_statuses=error_statuses,
        **fields,
    )


ROUTES = (
    Route(
        method="POST",
        path=f"{EXPERIMENT_PATH}/decisions",
        role=WRITER,
        handler=post_decisions,
        request_type=DecisionRequest | list[DecisionRequest],
        responses={
            200: DecisionResponse | list[DecisionResponse | ErrorResponse],
            503: DecisionResponse | list[DecisionResponse | ErrorResponse] | ErrorResponse,
        },
        error_statuses=(404, 409),
        summary="Decide for one user, or for a list of up to 1000.",
    ),
    Route(
        method="POST",
        path=f"{EXPERIMENT_PATH}/outcomes",
        role=WRITER,
        handler=post_outcomes,
        request_type=OutcomeRequest | list[OutcomeRequest],
        responses={200: OutcomeResponse | list[OutcomeResponse | ErrorResponse]},
        error_statuses=WRITE_ERRORS,
        summary="Report the outcome of one decision, or of a list of up to 1000.",
    ),
    build_get_route(
        "/v1/experiments",
        routes_read.list_experiments,
        list[schemas.ExperimentSummary],
        "List the experiments with their status.",
    ),
    build_get_route(
        EXPERIMENT_PATH,
        routes_read.get_experiment,
        schemas.ExperimentDetail,
        "Return the status and the problem of an experiment.",
        error_statuses=(404,),
    ),
    build_get_route(
        f"{EXPERIMENT_PATH}/decisions/{{decision_id}}",
        routes_read.explain_decision,
        dict[str, Any],
        "Explain a decision: its request, bounds and outcomes.",
        error_statuses=READ_ERRORS,
    ),
    build_get_route(
        f"{EXPERIMENT_PATH}/figures",
        routes_read.get_figures,
        schemas.FiguresResponse,
        "Return the figures that the page shows.",
        error_statuses=READ_ERRORS,
    ),
    build_get_route(
        f"{EXPERIMENT_PATH}/log",
        routes_read.get_log,
        schemas.LogPage,
        "Return rows of the log, in order.",
        error_statuses=(404, 422, 503),
        query={
            "after": "return rows after this one; default 0",
            "limit": "maximum number of rows, 1 to 10000; default 1000",
        },
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/mode",
        routes_admin.set_mode,
        ModeRequest,
        "Set the mode: off, shadow, canary (with a share) or live.",
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/kill",
        routes_admin.kill_experiment,
        ReasonRequest,
        "Turn on the kill switch: only the safe action is served, within a second.",
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/resume", routes_admin.resume_experiment, ReasonRequest, "Turn off the kill switch."
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/acknowledge",
        routes_admin.acknowledge_alert,
        AcknowledgeRequest,
        "Acknowledge an alert, so that the experiment continues.",
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/problem",
        routes_admin.create_version,
        ProblemRequest,
        "Create a new version of the problem.",
        responses={200: schemas.VersionResponse},
    ),
    build_post_route(
        f"{EXPERIMENT_PATH}/log",
        routes_admin.learn_log,
        OfflineLogRequest,
        "Learn an offline log, once and before the first decision.",
        responses={200: OfflineLogResponse},
        max_body_bytes=MAX_LOG_BODY_BYTES,
    ),
    build_post_route(
        "/v1/kill",
        routes_admin.kill_all,
        ReasonRequest,
        "Turn on the kill switch of all experiments.",
        **GLOBAL_OPTIONS,
    ),
    build_post_route(
        "/v1/resume",
        routes_admin.resume_all,
        ReasonRequest,
        "Turn off the kill switch of all experiments; an experiment with its own kill switch on stays stopped.",
        **GLOBAL_OPTIONS,
    ),
    build_get_route(
        "/v1/keys",
        routes_admin.list_keys,
        list[schemas.KeyInfo],
        "List the keys: names, roles, times of creation and revocation.",
        role=ADMIN,
    ),
    build_post_route(
        "/v1/keys",
        routes_admin.add_key,
        schemas.KeyRequest,
        "Create a key; only this response contains it.",
        responses={201: schemas.CreatedKey},
        error_statuses=(409, 503),
    ),
    Route(
        method="DELETE",
        path="/v1/keys/{name}",
        role=ADMIN,
        handler=routes_admin.revoke_key,
        responses={204: None},
        error_statuses=WRITE_ERRORS,
        summary="Revoke a key; every process rejects it within a second.",
    ),
    build_get_route(
        "/livez",
        routes_read.get_liveness,
        schemas.LivenessResponse,
        "Check that the process runs; needs no key.",
        role=None,
    ),
    build_get_route(
        "/readyz",
        routes_read.get_readiness,
        schemas.ReadinessResponse,
        "Check that decisions can be made and written.",
        responses={200: schemas.ReadinessResponse, 503: schemas.ReadinessResponse},
    ),
    build_get_route("/metrics", get_metrics, str, "Return metrics for Prometheus.", error_statuses=(503,)),
    build_get_route("/version", routes_read.get_version, schemas.AboutResponse, "Return the version of stagewise."),
    build_get_route("/openapi.json", get_openapi, dict[str, Any], "Return this API as OpenAPI 3.1."),
)
