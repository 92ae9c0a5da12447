"""Whether an answer is one that the desk's OpenAPI promises; every answer to a test is held to it."""

from functools import cache
from typing import Any

import jsonschema_rs
import msgspec

from stagewise.server.web.openapi import build_openapi
from stagewise.server.web.routes import ROUTES, Router

TABLE, TOLD = Router(ROUTES), build_openapi(ROUTES)
UNDESCRIBED = (405, 500)  # of a method that has no description; of a mistake of ours


@cache
def validator(path: str, method: str, status: int, kind: str) -> Any:
    """Return what checks a body."""
    answers = TOLD["paths"][path][method]["responses"]
    assert str(status) in answers, f"{method} {path} answers {status}, which it does not promise"
    if "content" not in answers[str(status)]:
        return None
    schema = answers[str(status)]["content"][kind]["schema"]
    return jsonschema_rs.Draft202012Validator({**schema, "components": TOLD["components"]})


def as_described(method: str, path: bytes, status: int, kind: str, content: bytes) -> None:
    """Refuse an answer that is not as described."""
    route = TABLE.find(path)[0].get(method)
    if status in UNDESCRIBED or route is None:
        return
    told = validator(route.path, method.lower(), status, kind.partition(";")[0])
    if told is None:
        assert content == b""
    elif kind == "application/json":
        told.validate(msgspec.json.decode(content))
