"""The table of all routes except the page's: paths, roles, types, statuses, handlers and summaries.

Routing, authentication, the validation of bodies, rate limits, OpenAPI and the tests of roles all come from it.
Handlers that read the store do so in a thread, so that they do not delay decisions.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

import msgspec

import stagewise
from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.server.access_keys import ADMIN, READER, WRITER
from stagewise.server.controls import get_declared_problem
from stagewise.server.event_log import Event
from stagewise.server.messages import (
    MAX_BATCH_SIZE,
    AcknowledgeRequest,
    DecisionRequest,
    DecisionResponse,
    ErrorResponse,
    Id,
    ModeRequest,
    ModeResponse,
    OutcomeResponse,
    OutcomeUpdate,
    ProblemRequest,
    ReasonRequest,
    RelearnRequest,
)
from stagewise.server.offline_log import OfflineLogRequest, OfflineLogResponse
from stagewise.server.web import schemas
from stagewise.server.web.metrics import CONTENT_TYPE, render_metrics
from stagewise.server.web.openapi import encode_openapi
from stagewise.server.web.requests import (
    BODY_ERRORS,
    RETRY_AFTER,
    Call,
    HTTPError,
    Response,
    json_response,
    to_http_error,
)

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.store.base import Store

Handler = Callable[[Call], Awaitable[Any]]

WILDCARD = "{}"
MAX_BODY_BYTES, MAX_LOG_BODY_BYTES = 1 << 20, 1 << 24
DEFAULT_ROWS, MAX_ROWS = 1000, 10_000
READ_BATCH, MAX_PAGE_BYTES = 250, 1 << 24  # rows of an offline log are large, so a few rows are read at a time


@dataclass(frozen=True, eq=False)
class Route:
    """A route: method, path, role, types and handler."""

    method: str
    path: str
    """The path, with {names} for its parameters."""
    role: str | None
    """The role that is needed; None: no key is needed."""
    handler: Handler
    """Returns a `Response`, or the value of a JSON response."""
    summary: str
    """One sentence for the documentation."""
    response: Any
    """The type of the response body; None: no body; str: text."""
    _: KW_ONLY
    request: Any = None
    """The type of the request body, which is decoded and validated; None: no body."""
    decode: Callable[[bytes], Any] | None = None
    """Decodes a body; None: as its type."""
    errors: tuple[int, ...] = ()
    """Error statuses beyond those of every route with a key and every route with a body."""
    status: int = 200
    """The status of success."""
    unavailable: Any = None
    """The type of the response with status 503, if it is not an error."""
    query: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Integer query parameters, with their defaults and descriptions."""
    max_body_bytes: int = MAX_BODY_BYTES

    def __post_init__(self) -> None:
        if self.decode is None and self.request is not None:
            object.__setattr__(self, "decode", msgspec.json.Decoder(self.request).decode)

    @property
    def query_defaults(self) -> dict[str, int]:
        return {name: default for name, (default, _) in self.query.items()}


class Router:
    """Routes by path: a tree of path segments; a fixed segment takes precedence over a {name}."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root: dict[Any, Any] = {}
        for route in routes:
            node = self._root
            for segment in route.path.split("/"):
                node = node.setdefault(WILDCARD if segment.startswith("{") else segment, {})
            node.setdefault(Route, {})[route.method] = route
        self.find = lru_cache(1024)(self._find)  # most calls are for a few paths

    def _find(self, path: bytes) -> tuple[Mapping[str, Route], tuple[str, ...]]:
        """Return the routes of a path by method, possibly none, and the values of its {names}.

        A percent-encoded slash is part of a segment.
        """
        node, params = self._root, list[str]()
        for part in path.split(b"/"):
            segment = unquote_to_bytes(part).decode(errors="replace")
            child = node.get(segment)
            if child is None:
                if WILDCARD not in node or not segment:
                    return {}, ()
                params.append(segment)
                child = node[WILDCARD]
            node = child
        return node.get(Route, {}), tuple(params)


# Decisions and outcomes: one, or a list that is answered item by item

OutcomeBody = dict[Annotated[str, msgspec.Meta(max_length=200)], bool | float | str | None]

decode_decision_request = msgspec.json.Decoder(DecisionRequest).decode
decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_outcome = msgspec.json.Decoder(OutcomeBody).decode


def decode_outcome(body: bytes | msgspec.Raw) -> OutcomeUpdate:
    """Return the outcome of a body: ids, and signals by name.

    >>> decode_outcome(b'{"decision_id": "a", "click": true, "shown": false}')
    OutcomeUpdate(decision_id='a', values={'click': True, 'shown': False}, outcome_id=None)
    """
    values = _decode_outcome(body)
    ids = {"decision_id": values.pop("decision_id", None), "outcome_id": values.pop("outcome_id", None)}
    for name, value in ids.items():
        try:
            msgspec.convert(value, Id if name == "decision_id" else Id | None)
        except msgspec.ValidationError:
            rule = "text of 1 to 256 characters, without control characters"
            raise InvalidOutcome.must_be(ErrorCode.INVALID_NAME, name, value, rule) from None
    return OutcomeUpdate(ids["decision_id"], values, ids["outcome_id"])  # type: ignore[arg-type]


async def answer_items(
    call: Call,
    decode: Callable[[Any], Any],
    answer: Callable[[str, Any], Awaitable[Any]],
    answer_all: Callable[[str, list[Any]], Awaitable[list[Any]]],
) -> tuple[Any, Any]:
    """Return the decoded requests and their answers: of one item, or of a list whose wrong items are errors."""
    if call.body[:1] == b"{" or call.body.lstrip(b" \t\r\n")[:1] != b"[":
        request = decode(call.body)
        return request, await answer(call.name, request)
    items = decode_list(call.body)
    if len(items) > MAX_BATCH_SIZE:
        message = "the list has {items_count} items; it may have at most {max_batch_size}"
        raise HTTPError(422, ErrorCode.TOO_LARGE, message, items_count=len(items), max_batch_size=MAX_BATCH_SIZE)
    if items:
        call.charge(len(items))
    requests = list[Any]()
    for item in items:
        try:
            requests.append(decode(item))
        except (StagewiseError, *BODY_ERRORS) as error:
            requests.append(to_http_error(error).to_message())
    valid = [request for request in requests if not isinstance(request, ErrorResponse)]
    answers = iter(await answer_all(call.name, valid))
    return requests, [one if isinstance(one, ErrorResponse) else next(answers) for one in requests]


async def post_decisions(call: Call) -> Response:
    """Decide for one user, or for many; 503 if a decision could not be written."""
    server = call.server
    requests, answers = await answer_items(call, decode_decision_request, server.decide, server.decide_many)
    if call.telemetry is not None:
        call.telemetry.record(call.name, answers)
    pairs = zip(requests, answers, strict=True) if isinstance(answers, list) else [(requests, answers)]
    if any(isinstance(one, DecisionResponse) and not (one.logged or request.dry_run) for request, one in pairs):
        return json_response(answers, 503, RETRY_AFTER)
    return json_response(answers)


async def post_outcomes(call: Call) -> Any:
    """Learn the outcome of one decision, or of many."""
    _, answers = await answer_items(call, decode_outcome, call.server.learn, call.server.learn_many)
    if call.telemetry is not None:
        call.telemetry.record(call.name, answers)
    return answers


# Reading


async def list_experiments(call: Call) -> list[schemas.ExperimentSummary]:
    server = call.server
    return [schemas.ExperimentSummary(**build_summary(server, name)) for name in server.experiments()]


async def get_experiment(call: Call) -> schemas.ExperimentDetail:
    """Return the status and the problem of an experiment."""
    current = call.server.experiment(call.name).current
    return schemas.ExperimentDetail(
        **build_summary(call.server, call.name),
        problem=get_declared_problem(current),
        context_names=list(current.problem.context_names),
    )


def build_summary(server: "DecisionServer", name: str) -> dict[str, Any]:
    """Return the fields of an ExperimentSummary."""
    experiment = server.experiment(name)
    killed = server.everywhere.killed or experiment.killed
    return {
        "name": name,
        "mode": experiment.mode,
        "share": experiment.share,
        "killed": None if killed is None else killed.message,
        "version": experiment.version,
        "snapshot": experiment.snapshot,
        "snapshot_age_s": round(max(0.0, time.monotonic() - experiment.snapshot_time), 3),
        "alerts": {alert: cause.message for alert, cause in experiment.alerts.items()},
    }


async def get_log(call: Call) -> schemas.LogPage:
    name, after, limit = call.server.experiment(call.name).name, call.query["after"], call.query["limit"]
    if not 1 <= limit <= MAX_ROWS:
        template = "limit is {limit}; it must be from 1 to {max_rows}"
        raise HTTPError(422, ErrorCode.OUT_OF_RANGE, template, limit=limit, max_rows=MAX_ROWS)
    events, more = await asyncio.to_thread(read_rows, call.server.store, name, after, limit)
    rows = [
        schemas.LogRowResponse(
            one.seq, one.number, one.seen, one.at, one.kind, one.key, one.decision, one.body.decode(),
            one.request_digest.hex(), one.writer, one.link, one.mac.hex(),
        )
        for one in events
    ]  # fmt: skip
    return schemas.LogPage(rows, rows[-1].seq if rows else after, more)


def read_rows(store: "Store", name: str, after: int, limit: int) -> tuple[list[Event], bool]:
    """Return at most `limit` rows of about MAX_PAGE_BYTES, and whether there are more."""
    rows, size = list[Event](), 0
    while batch := store.events(name, rows[-1].seq if rows else after, min(READ_BATCH, limit + 1 - len(rows))):
        for event in batch:
            if len(rows) == limit or (rows and size + len(event.body) > MAX_PAGE_BYTES):
                return rows, True
            rows.append(event)
            size += len(event.body)
    return rows, False


async def get_liveness(call: Call) -> schemas.LivenessResponse:
    """Check that the process runs."""
    return schemas.LivenessResponse()


async def get_readiness(call: Call) -> Response:
    """Check that decisions can be made and written."""
    ready, why = await asyncio.to_thread(call.server.ready)
    return json_response(schemas.ReadinessResponse(ready, why), 200 if ready else 503)


async def get_version(call: Call) -> schemas.AboutResponse:
    return schemas.AboutResponse(stagewise.__version__)


async def get_metrics(call: Call) -> Response:
    return Response(200, (await asyncio.to_thread(render_metrics, call.server)).encode(), CONTENT_TYPE)


async def get_openapi(call: Call) -> Response:
    """Return this API as OpenAPI."""
    return Response(200, encode_openapi(ROUTES))


# Changes, by admins; the actor in the log is the key's name


async def kill_all(call: Call) -> schemas.GlobalKillResponse:
    """Turn on the kill switch of all experiments."""
    response = await call.server.kill(None, call.actor, call.body.reason)
    return schemas.GlobalKillResponse(response.killed, response.control)


async def resume_all(call: Call) -> schemas.GlobalKillResponse:
    """Turn off the kill switch of all experiments."""
    response = await call.server.resume(None, call.actor, call.body.reason)
    return schemas.GlobalKillResponse(response.killed, response.control)


async def create_version(call: Call) -> schemas.VersionResponse:
    body = call.body
    return schemas.VersionResponse(await call.server.new_version(call.name, body.problem, call.actor, body.reason))


async def list_keys(call: Call) -> list[schemas.KeyInfo]:
    return [schemas.KeyInfo(row.name, row.role, row.note, row.made, row.revoked) for row in call.keys.list_keys()]


async def add_key(call: Call) -> schemas.CreatedKey:
    name, role, note = call.body.name, call.body.role, call.body.note
    return schemas.CreatedKey(name, role, await asyncio.to_thread(call.keys.add, name, role, note))


async def revoke_key(call: Call) -> Response:
    await asyncio.to_thread(call.keys.revoke, call.name)
    return Response(204, b"")


EXPERIMENT = "/v1/{experiment}"
READ_ERRORS, WRITE_ERRORS, GLOBAL_ERRORS = (404, 503), (404, 409, 503), (409, 503)
DecisionAnswer = DecisionResponse | list[DecisionResponse | ErrorResponse]

ROUTES = (
    Route(
        "POST", f"{EXPERIMENT}/decisions", WRITER, post_decisions,
        "Decide for one user, or for a list of up to 1000.",
        DecisionAnswer, request=DecisionRequest | list[DecisionRequest], decode=bytes, errors=(404, 409),
        unavailable=DecisionAnswer | ErrorResponse,
    ),
    Route(
        "POST", f"{EXPERIMENT}/outcomes", WRITER, post_outcomes,
        "Report the outcome of one decision, or of a list of up to 1000.",
        OutcomeResponse | list[OutcomeResponse | ErrorResponse],
        request=schemas.OutcomeRequest | list[schemas.OutcomeRequest], decode=bytes, errors=WRITE_ERRORS,
    ),
    Route(
        "GET", "/v1/experiments", READER, list_experiments,
        "List the experiments with their status.", list[schemas.ExperimentSummary],
    ),
    Route(
        "GET", EXPERIMENT, READER, get_experiment,
        "Return the status and the problem of an experiment.", schemas.ExperimentDetail, errors=(404,),
    ),
    Route(
        "GET", f"{EXPERIMENT}/decisions/{{decision_id}}", READER,
        lambda call: asyncio.to_thread(call.server.explain, *call.path_params),
        "Explain a decision: its request, bounds and outcomes.", dict[str, Any], errors=READ_ERRORS,
    ),
    Route(
        "GET", f"{EXPERIMENT}/figures", READER, lambda call: asyncio.to_thread(call.server.figures, call.name),
        "Return the figures that the page shows.", schemas.FiguresResponse, errors=READ_ERRORS,
    ),
    Route(
        "GET", f"{EXPERIMENT}/log", READER, get_log,
        "Return rows of the log, in order.", schemas.LogPage, errors=(404, 422, 503),
        query={
            "after": (0, "return rows after this one; default 0"),
            "limit": (DEFAULT_ROWS, "maximum number of rows, 1 to 10000; default 1000"),
        },
    ),
    Route(
        "POST", f"{EXPERIMENT}/mode", ADMIN,
        lambda call: call.server.set_mode(
            call.name, call.body.mode, call.body.share, call.actor, call.body.reason
        ),
        "Set the mode: off, shadow, canary (with a share) or live.",
        ModeResponse, request=ModeRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/kill", ADMIN, lambda call: call.server.kill(call.name, call.actor, call.body.reason),
        "Turn on the kill switch: only the safe action is served, within a second.",
        ModeResponse, request=ReasonRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/resume", ADMIN,
        lambda call: call.server.resume(call.name, call.actor, call.body.reason),
        "Turn off the kill switch.", ModeResponse, request=ReasonRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/acknowledge", ADMIN,
        lambda call: call.server.acknowledge(call.name, call.body.name, call.actor, call.body.reason),
        "Acknowledge an alert, so that the experiment continues.",
        ModeResponse, request=AcknowledgeRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/forget-costs", ADMIN,
        lambda call: call.server.forget_costs(
            call.name, call.body.action, call.body.before, call.actor, call.body.reason
        ),
        "Forget what was learned of an action before a time: it is held back and learned again.",
        ModeResponse, request=RelearnRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/problem", ADMIN, create_version,
        "Create a new version of the problem.",
        schemas.VersionResponse, request=ProblemRequest, errors=WRITE_ERRORS,
    ),
    Route(
        "POST", f"{EXPERIMENT}/log", ADMIN,
        lambda call: call.server.learn_columns(call.name, call.body, call.actor),
        "Learn an offline log, once and before the first decision.",
        OfflineLogResponse, request=OfflineLogRequest, errors=WRITE_ERRORS, max_body_bytes=MAX_LOG_BODY_BYTES,
    ),
    Route(
        "POST", "/v1/kill", ADMIN, kill_all, "Turn on the kill switch of all experiments.",
        schemas.GlobalKillResponse, request=ReasonRequest, errors=GLOBAL_ERRORS,
    ),
    Route(
        "POST", "/v1/resume", ADMIN, resume_all,
        "Turn off the kill switch of all experiments; an experiment with its own kill switch on stays stopped.",
        schemas.GlobalKillResponse, request=ReasonRequest, errors=GLOBAL_ERRORS,
    ),
    Route(
        "GET", "/v1/keys", ADMIN, list_keys,
        "List the keys: names, roles, times of creation and revocation.", list[schemas.KeyInfo],
    ),
    Route(
        "POST", "/v1/keys", ADMIN, add_key, "Create a key; only this response contains it.",
        schemas.CreatedKey, request=schemas.KeyRequest, errors=GLOBAL_ERRORS, status=201,
    ),
    Route(
        "DELETE", "/v1/keys/{name}", ADMIN, revoke_key,
        "Revoke a key; every process rejects it within a second.", None, errors=WRITE_ERRORS, status=204,
    ),
    Route(
        "GET", "/livez", None, get_liveness,
        "Check that the process runs; needs no key.", schemas.LivenessResponse,
    ),
    Route(
        "GET", "/readyz", READER, get_readiness, "Check that decisions can be made and written.",
        schemas.ReadinessResponse, unavailable=schemas.ReadinessResponse,
    ),
    Route("GET", "/metrics", READER, get_metrics, "Return metrics for Prometheus.", str, errors=(503,)),
    Route("GET", "/version", READER, get_version, "Return the version of stagewise.", schemas.AboutResponse),
    Route("GET", "/openapi.json", READER, get_openapi, "Return this API as OpenAPI 3.1.", dict[str, Any]),
)  # fmt: skip
