"""The route for outcomes: one, or a list that is answered item by item."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import NEW, SHOWN, AppendRequest, AppendResult
from stagewise.server.experiment import Experiment
from stagewise.server.messages import OUTCOME_FIELDS, ErrorResponse, Id, OutcomeUpdate
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.error_mapping import BODY_ERRORS, build_item_error
from stagewise.server.web.http_types import RouteRequest, RouteResponse, json_response
from stagewise.server.web.routes_decisions import is_list, split_items

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

OutcomeBody = dict[Annotated[str, Meta(max_length=200)], bool | float | str | None]

_outcome_decoder = msgspec.json.Decoder(OutcomeBody)


async def post_outcomes(call: RouteRequest) -> RouteResponse:
    """Learn the outcome of one decision, or of many."""
    if is_list(call.body):
        return await _post_batch(call)
    return json_response(
        await call.server.learn(call.path_params[0], parse_outcome(_outcome_decoder.decode(call.body)))
    )


class ParsedOutcome(NamedTuple):
    """A request with one outcome."""

    server: "DecisionServer"
    experiment: Experiment
    outcome: OutcomeUpdate
    append_request: AppendRequest


class FastOutcomes:
    """The fast path of single outcomes."""

    def read(self, server: "DecisionServer", path_params: tuple[str, ...], body: bytes) -> ParsedOutcome | None:
        """Parse a request; None: it is a list."""
        if is_list(body):
            return None
        experiment, outcome = server.experiment(path_params[0]), parse_outcome(_outcome_decoder.decode(body))
        return ParsedOutcome(server, experiment, outcome, server.build_append_request(experiment, outcome))

    def prepare(self, requests: Sequence[ParsedOutcome]) -> Sequence[ParsedOutcome]:
        """Return the outcomes unchanged."""
        return requests

    def build_response(self, prepared: ParsedOutcome, result: AppendResult | StoreUnavailable) -> RouteResponse | None:
        """Return the response to an outcome that is logged."""
        if isinstance(result, StoreUnavailable) or result.status != NEW:
            return None
        return json_response(prepared.server.build_response(prepared.experiment, prepared.outcome, result))


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
