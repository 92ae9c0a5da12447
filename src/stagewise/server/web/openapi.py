"""The OpenAPI 3.1 description, generated from the table of routes and the types of their messages."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

import stagewise
from stagewise.server.messages import MAX_BATCH_SIZE, DecisionRequest, ErrorResponse
from stagewise.server.web.schemas import OutcomeRequest

if TYPE_CHECKING:
    from stagewise.server.web.routes import Route

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


BATCH_TYPES = (list[DecisionRequest], list[OutcomeRequest])


@cache
def encode_openapi(routes: Sequence["Route"]) -> bytes:
    """Return the OpenAPI description as JSON."""
    return msgspec.json.encode(build_openapi(routes))


def build_openapi(routes: Sequence["Route"]) -> dict[str, Any]:
    """Return the OpenAPI description of routes."""
    kinds = [kind for route in routes for kind in (route.request, route.response, route.unavailable)]
    kinds = [ErrorResponse, *(kind for kind in kinds if kind not in (None, str))]
    single = list(dict.fromkeys(part for kind in kinds for part in flatten_types(kind)))
    references, schemas = msgspec.json.schema_components(single, ref_template=REF_TEMPLATE)
    single_schemas = dict(zip(single, references, strict=True))
    schemas["OutcomeRequest"]["additionalProperties"] = {"type": ["number", "boolean"]}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = build_operation(route, single_schemas)
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


def build_content(kind: Any, single_schemas: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the content of a body of a type."""
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    return {"application/json": {"schema": build_schema(kind, single_schemas)}}


def build_schema(kind: Any, single_schemas: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the schema of a type from the schemas of its members."""
    if isinstance(kind, UnionType):
        return {"anyOf": [build_schema(part, single_schemas) for part in get_args(kind)]}
    if get_origin(kind) is list:
        limit = {"maxItems": MAX_BATCH_SIZE} if kind in BATCH_TYPES else {}
        return {"type": "array", "items": build_schema(get_args(kind)[0], single_schemas), **limit}
    return dict(single_schemas[kind])


def build_operation(route: "Route", single_schemas: Mapping[Any, Any]) -> dict[str, Any]:
    path_parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall("{(.*?)}", route.path)
    ]
    query_parameters = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "integer", "minimum": 0}}
        for name, (_, text) in route.query.items()
    ]
    success: dict[str, Any] = {"description": "Created." if route.status == 201 else "Success."}
    if route.response is not None:
        success["content"] = build_content(route.response, single_schemas)
    responses: dict[int, Any] = {route.status: success}
    for status in get_error_statuses(route):
        kind = route.unavailable if status == 503 and route.unavailable is not None else ErrorResponse
        content = build_content(kind, single_schemas)
        responses[status] = {"description": ERROR_DESCRIPTIONS[status], "content": content}
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub('[^a-z0-9]+', '_', route.path)}".rstrip("_"),
        "summary": route.summary,
        "description": f"Needs a key with the role {route.role}." if route.role else "Needs no key.",
        "parameters": path_parameters + query_parameters,
        "responses": {str(status): response for status, response in sorted(responses.items())},
        "security": [] if route.role is None else [{"key": []}],
    }
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": build_content(route.request, single_schemas)}
    return operation


def get_error_statuses(route: "Route") -> tuple[int, ...]:
    with_key, with_body = KEY_STATUSES * (route.role is not None), BODY_STATUSES * (route.request is not None)
    return tuple(sorted({*with_key, *with_body, *route.errors, *((503,) if route.unavailable is not None else ())}))


if __name__ == "__main__":  # for clients that are generated: python -m stagewise.server.web.openapi > openapi.json
    from stagewise.server.web.routes import ROUTES

    print(encode_openapi(ROUTES).decode())
