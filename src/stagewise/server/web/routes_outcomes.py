"""The route for outcomes: one, or a list that is answered item by item."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import SHOWN
from stagewise.server.messages import OUTCOME_FIELDS, ErrorResponse, Id, OutcomeUpdate
from stagewise.server.web.error_mapping import BODY_ERRORS, build_item_error
from stagewise.server.web.http_types import RouteRequest, RouteResponse, json_response
from stagewise.server.web.routes_decisions import is_list, split_items

OutcomeBody = dict[Annotated[str, Meta(max_length=200)], bool | float | str | None]

_outcome_decoder = msgspec.json.Decoder(OutcomeBody)


async def post_outcomes(call: RouteRequest) -> RouteResponse:
    """Learn the outcome of one decision, or of many."""
    if is_list(call.body):
        return await _post_batch(call)
    return json_response(
        await call.server.learn(call.path_params[0], parse_outcome(_outcome_decoder.decode(call.body)))
    )


async def _post_batch(call: RouteRequest) -> RouteResponse:
    items = [_parse_item(item) for item in split_items(call)]
    outcomes = [item for item in items if isinstance(item, OutcomeUpdate)]
    answers = iter(await call.server.learn_many(call.path_params[0], outcomes))
    return json_response([item if isinstance(item, ErrorResponse) else next(answers) for item in items])


def _parse_item(item: msgspec.Raw) -> OutcomeUpdate | ErrorResponse:
    try:
        return parse_outcome(_outcome_decoder.decode(item))
    except (StagewiseError, *BODY_ERRORS) as error:
        return build_item_error(error)


def parse_outcome(body: dict[str, Any]) -> OutcomeUpdate:
    """Return the outcome of a body.

    >>> parse_outcome({"decision_id": "a", "click": True, "shown": False})
    OutcomeUpdate(decision_id='a', values={'click': 1.0, 'shown': False}, outcome_id=None)
    """
    values = {name: _parse_number(name, value) for name, value in body.items() if name not in OUTCOME_FIELDS}
    if SHOWN in body:
        if not isinstance(body[SHOWN], bool):
            raise InvalidOutcome(
                ErrorCode.WRONG_TYPE, "shown is {value}; it must be true or false", value=safe_repr(body[SHOWN])
            )
        values[SHOWN] = body[SHOWN]
    if not values:
        raise InvalidOutcome(ErrorCode.OUTCOME_MISSING, "the outcome is empty; it needs a signal by name, or shown")
    outcome_id = None if body.get("outcome_id") is None else _parse_id(body, "outcome_id")
    return OutcomeUpdate(_parse_id(body, "decision_id"), values, outcome_id)


def _parse_number(name: str, value: Any) -> float:
    if not isinstance(value, bool | float):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "the signal {name!r} is {value}; it must be a number, true or false",
            name=name,
            value=safe_repr(value),
        )
    return float(value)


def _parse_id(body: dict[str, Any], name: str) -> str:
    try:
        return msgspec.convert(body.get(name), Id)
    except msgspec.ValidationError:
        raise InvalidOutcome(
            ErrorCode.INVALID_NAME,
            "{name} is {value}; it must be text of 1 to 256 characters, without control characters",
            name=name,
            value=safe_repr(body.get(name)),
        ) from None
