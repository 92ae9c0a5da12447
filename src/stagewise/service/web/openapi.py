"""The routes as OpenAPI 3.1: made of the table and of the messages' types, so that it cannot say anything else."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType

import stagewise
from stagewise.service.messages import LARGEST_BATCH, Asked, Id, Refusal
from stagewise.service.web.call import Answer, Call, plain_refusal
from stagewise.service.web.personalizer import PersonalizerRefusal
from stagewise.service.web.route import Route

PLACE = "#/components/schemas/{name}"
WITH_KEY, WITH_BODY = (401, 403, 429), (400, 408, 413, 415, 422)
REFUSALS = {
    400: "The body is no JSON.",
    401: "There is no key, or it is not known, or it was revoked.",
    403: "The key's role may not do this.",
    404: "There is nothing of that name or id.",
    408: "The body did not come.",
    409: "The same id came with other content, or the change contradicts what is there.",
    413: "The body is too large.",
    415: "The body is not declared to be JSON.",
    422: "It cannot be used; the sentence says why.",
    429: "The key asked too much; Retry-After says when to come again.",
    503: "The store cannot be reached; nothing was written, and the same call may be sent again.",
}
FINE = {200: "It is done.", 201: "It is made.", 204: "It is done.", 503: REFUSALS[503]}


class Sent(Struct):
    """An outcome as it is sent: besides these fields, the problem's signals by name, each a number, true or false."""

    decision_id: Id
    outcome_id: Id | UnsetType = UNSET
    """The client's own id of this call: a retry with the same is answered the same."""
    shown: bool | UnsetType = UNSET
    """False: it was not carried out, and nothing is learned of it."""


BATCHES = (list[Asked], list[Sent])


async def openapi(call: Call) -> Answer:
    """Tell the routes."""
    return Answer(200, _described())


@cache
def _described() -> bytes:
    from stagewise.service.web.routes import ROUTES

    return msgspec.json.encode(described(ROUTES))


def described(routes: Sequence[Route]) -> dict[str, Any]:
    """Return routes as OpenAPI tells them."""
    kinds = [kind for route in routes for kind in (route.takes, *route.answers.values()) if kind not in (None, str)]
    single = list(dict.fromkeys([Refusal, PersonalizerRefusal, *(one for kind in kinds for one in singles(kind))]))
    told, schemas = msgspec.json.schema_components(single, ref_template=PLACE)
    known = dict(zip(single, told, strict=True))
    schema = {kind: composed(kind, known) for kind in (Refusal, PersonalizerRefusal, *kinds)}
    schemas["Sent"]["additionalProperties"] = {"type": ["number", "boolean"]}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, schema)
    security = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key of the desk: sw_..."},
        "personalizer": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "stagewise desk", "version": stagewise.__version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
    }


def singles(kind: Any) -> list[Any]:
    """Return the types that a type is composed of, by "or" and by lists."""
    if isinstance(kind, UnionType) or get_origin(kind) is list:
        return [one for part in get_args(kind) for one in singles(part)]
    return [kind]


def composed(kind: Any, known: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the schema of a type from those that it is composed of."""
    if isinstance(kind, UnionType):
        return {"anyOf": [composed(part, known) for part in get_args(kind)]}
    if get_origin(kind) is list:
        most = {"maxItems": LARGEST_BATCH} if kind in BATCHES else {}
        return {"type": "array", "items": composed(get_args(kind)[0], known), **most}
    return dict(known[kind])


def operation(route: Route, schema: Mapping[Any, Any]) -> dict[str, Any]:
    """Return one route as OpenAPI tells it."""
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall("{(.*?)}", route.path)
    ]
    asked = [
        {"name": name, "in": "query", "description": tells, "schema": {"type": "integer", "minimum": 0}}
        for name, tells in route.query.items()
    ]
    told: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub('[^a-z0-9]+', '_', route.path)}".rstrip("_"),
        "summary": route.tells,
        "description": f"Needs a key of a {route.role}." if route.role else "Needs no key.",
        "parameters": named + asked,
        "responses": {str(status): answered for status, answered in sorted(answers_of(route, schema).items())},
        "security": [] if route.role is None else [{"key": []}, *([{"personalizer": []}] if route.key_header else [])],
    }
    if route.takes is not None:
        told["requestBody"] = {"required": True, "content": content(schema[route.takes])}
    return told


def answers_of(route: Route, schema: Mapping[Any, Any]) -> dict[int, Any]:
    """Return what a route answers, by status."""
    refused = schema[Refusal] if route.refusal is plain_refusal else schema[PersonalizerRefusal]
    told = {status: {"description": REFUSALS[status], "content": content(refused)} for status in refusals_of(route)}
    for status, kind in route.answers.items():
        told[status] = {"description": FINE[status]}
        if kind is str:
            told[status]["content"] = {"text/plain": {"schema": {"type": "string"}}}
        elif kind is not None:
            told[status]["content"] = content(schema[kind])
    return told


def refusals_of(route: Route) -> tuple[int, ...]:
    """Return every status that a route refuses with."""
    always = WITH_KEY * (route.role is not None) + WITH_BODY * (route.takes is not None)
    return tuple(sorted({*always, *route.refuses}))


def content(schema: Any) -> dict[str, Any]:
    """Return a body of JSON."""
    return {"application/json": {"schema": schema}}
