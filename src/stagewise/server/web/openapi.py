"""The OpenAPI 3.1 description, generated from the table of routes and the types of their messages."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType

import stagewise
from stagewise.server.messages import MAX_BATCH_SIZE, DecisionRequest, ErrorResponse, Id
from stagewise.server.web.http_types import RouteRequest, RouteResponse
from stagewise.server.web.router import Route

REF_TEMPLATE = "#/components/schemas/{name}"
KEY_STATUSES, BODY_STATUSES = (401, 403, 429), (400, 408, 413, 415, 422)
ERROR_DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "The key is missing, unknown or revoked.",
    403: "The key's role is not sufficient.",
    404: "No experiment, decision, key or route has this name.",
    408: "The body was not complete in time.",
    409: "The same id with other content, or a change that conflicts with the current state.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "The request is well formed and cannot be used; the message says why.",
    429: "The key exceeded its rate; Retry-After says when to try again.",
    503: "The store cannot be reached; nothing was written, and the same request may be sent again.",
}
SUCCESS_DESCRIPTIONS = {200: "Success.", 201: "Created.", 204: "Success.", 503: ERROR_DESCRIPTIONS[503]}


class OutcomeRequest(Struct):
    """An outcome: these fields, and the problem's signals by name, each a number, true or false."""

    decision_id: Id
    outcome_id: Id | UnsetType = UNSET
    """The client's id of this request; a retry with the same id gets the same answer."""
    shown: bool | UnsetType = UNSET
    """False: the decision was not carried out, and nothing is learned from it."""


BATCH_TYPES = (list[DecisionRequest], list[OutcomeRequest])


async def get_openapi(call: RouteRequest) -> RouteResponse:
    """Return the OpenAPI description."""
    return RouteResponse(200, _encode_openapi())


@cache
def _encode_openapi() -> bytes:
    from stagewise.server.web.routes import ROUTES

    return msgspec.json.encode(build_openapi(ROUTES))


def build_openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the OpenAPI description of routes."""
    kinds = [
        kind for route in routes for kind in (route.request_type, *route.responses.values()) if kind not in (None, str)
    ]
    single = list(dict.fromkeys([ErrorResponse, *(part for kind in kinds for part in flatten_types(kind))]))
    references, schemas = msgspec.json.schema_components(single, ref_template=REF_TEMPLATE)
    single_schemas = dict(zip(single, references, strict=True))
    schema = {kind: build_schema(kind, single_schemas) for kind in (ErrorResponse, *kinds)}
    schemas["OutcomeRequest"]["additionalProperties"] = {"type": ["number", "boolean"]}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = build_operation(route, schema)
    security = {"key": {"type": "http", "scheme": "bearer", "description": "A key of the server: sw_..."}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "stagewise server", "version": stagewise.__version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
    }


def flatten_types(kind: Any) -> list[Any]:
    """Return the members of unions and lists."""
    if isinstance(kind, UnionType) or get_origin(kind) is list:
        return [member for part in get_args(kind) for member in flatten_types(part)]
    return [kind]


def build_schema(kind: Any, single_schemas: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the schema of a type from the schemas of its members."""
    if isinstance(kind, UnionType):
        return {"anyOf": [build_schema(part, single_schemas) for part in get_args(kind)]}
    if get_origin(kind) is list:
        limit = {"maxItems": MAX_BATCH_SIZE} if kind in BATCH_TYPES else {}
        return {"type": "array", "items": build_schema(get_args(kind)[0], single_schemas), **limit}
    return dict(single_schemas[kind])


def build_operation(route: Route, schema: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the OpenAPI operation of a route."""
    path_parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall("{(.*?)}", route.path)
    ]
    query_parameters = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "integer", "minimum": 0}}
        for name, text in route.query.items()
    ]
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub('[^a-z0-9]+', '_', route.path)}".rstrip("_"),
        "summary": route.summary,
        "description": f"Needs a key with the role {route.role}." if route.role else "Needs no key.",
        "parameters": path_parameters + query_parameters,
        "responses": {str(status): response for status, response in sorted(build_responses(route, schema).items())},
        "security": [] if route.role is None else [{"key": []}],
    }
    if route.request_type is not None:
        operation["requestBody"] = {"required": True, "content": build_json_content(schema[route.request_type])}
    return operation


def build_responses(route: Route, schema: Mapping[Any, Any]) -> dict[int, Any]:
    """Return the OpenAPI responses of a route by status."""
    error = build_json_content(schema[ErrorResponse])
    responses: dict[int, Any] = {
        status: {"description": ERROR_DESCRIPTIONS[status], "content": error} for status in get_error_statuses(route)
    }
    for status, kind in route.responses.items():
        responses[status] = {"description": SUCCESS_DESCRIPTIONS[status]}
        if kind is str:
            responses[status]["content"] = {"text/plain": {"schema": {"type": "string"}}}
        elif kind is not None:
            responses[status]["content"] = build_json_content(schema[kind])
    return responses


def get_error_statuses(route: Route) -> tuple[int, ...]:
    """Return every error status of a route."""
    always = KEY_STATUSES * (route.role is not None) + BODY_STATUSES * (route.request_type is not None)
    return tuple(sorted({*always, *route.error_statuses}))


def build_json_content(schema: Any) -> dict[str, Any]:
    """Return the content of a JSON body."""
    return {"application/json": {"schema": schema}}
