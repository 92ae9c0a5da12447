"""The route for decisions: one, or a list that is answered item by item."""

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.server.messages import MAX_BATCH_SIZE, DecisionRequest, DecisionResponse, ErrorResponse
from stagewise.server.web.error_mapping import BODY_ERRORS, RETRY_AFTER, build_item_error
from stagewise.server.web.http_types import HTTPError, RouteRequest, RouteResponse, json_response

_request_decoder = msgspec.json.Decoder(DecisionRequest)
_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])


async def post_decisions(call: RouteRequest) -> RouteResponse:
    """Decide for one user, or for many."""
    if is_list(call.body):
        return await _post_batch(call)
    request = _request_decoder.decode(call.body)
    decision = await call.server.decide(call.path_params[0], request)
    return _build_response(decision, has_failed=not decision.logged and not request.dry_run)


async def _post_batch(call: RouteRequest) -> RouteResponse:
    """Decide for a list: an item that cannot be parsed is an error, and the others are decided."""
    items = [_parse_item(item) for item in split_items(call)]
    requests = [item for item in items if isinstance(item, DecisionRequest)]
    decisions = iter(await call.server.decide_many(call.path_params[0], requests))
    answers = [item if isinstance(item, ErrorResponse) else next(decisions) for item in items]
    has_failed = any(
        isinstance(answer, DecisionResponse)
        and not answer.logged
        and isinstance(item, DecisionRequest)
        and not item.dry_run
        for item, answer in zip(items, answers, strict=True)
    )
    return _build_response(answers, has_failed=has_failed)


def _parse_item(item: msgspec.Raw) -> DecisionRequest | ErrorResponse:
    try:
        return _request_decoder.decode(item)
    except BODY_ERRORS as error:
        return build_item_error(error)


def _build_response(
    content: DecisionResponse | list[DecisionResponse | ErrorResponse], *, has_failed: bool
) -> RouteResponse:
    """Return the response; 503 if a decision could not be written."""
    return json_response(content, 503)._replace(headers=RETRY_AFTER) if has_failed else json_response(content)


def is_list(body: bytes) -> bool:
    """Return whether a body begins as a list."""
    return body[:1] != b"{" and body.lstrip(b" \t\r\n")[:1] == b"["


def split_items(call: RouteRequest) -> list[msgspec.Raw]:
    """Return the raw items of a batch."""
    items = _list_decoder.decode(call.body)
    if len(items) > MAX_BATCH_SIZE:
        message = f"the list has {len(items)} items; it may have at most {MAX_BATCH_SIZE}"
        raise HTTPError(422, ErrorCode.TOO_LARGE, message)
    if items:
        call.charge(len(items))
    return items
