"""The route for decisions: one, or a list that is answered item by item."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import NEW, AppendResult
from stagewise.server.experiment import Experiment
from stagewise.server.ids import new_id
from stagewise.server.messages import MAX_BATCH_SIZE, DecisionRequest, DecisionResponse, ErrorResponse
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.error_mapping import BODY_ERRORS, RETRY_AFTER, build_item_error
from stagewise.server.web.http_types import HTTPError, RouteRequest, RouteResponse, json_response

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.decision_service import PendingDecision

_request_decoder = msgspec.json.Decoder(DecisionRequest)
_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])


async def post_decisions(call: RouteRequest) -> RouteResponse:
    """Decide for one user, or for many."""
    if is_list(call.body):
        return await _post_batch(call)
    request = _request_decoder.decode(call.body)
    decision = await call.server.decide(call.path_params[0], request)
    return _build_response(decision, has_failed=not decision.logged and not request.dry_run)


class ParsedDecision(NamedTuple):
    """A request for one decision."""

    server: "DecisionServer"
    experiment: Experiment
    id_: str
    request: DecisionRequest


class FastDecisions:
    """The fast path of single decisions; a batch of them is decided in one call."""

    def read(self, server: "DecisionServer", path_params: tuple[str, ...], body: bytes) -> ParsedDecision | None:
        """Parse a request."""
        if is_list(body):
            return None
        request = _request_decoder.decode(body)
        experiment = server.experiment(path_params[0])
        if request.dry_run:
            return None
        return ParsedDecision(server, experiment, request.decision_id or new_id(), request)

    def prepare(self, requests: Sequence[ParsedDecision]) -> "list[PendingDecision | None]":
        """Decide for all requests; None: that one needs the regular path."""
        decisions: list[PendingDecision | None] = [None] * len(requests)
        for experiment in {request.experiment for request in requests}:
            indices = [i for i, request in enumerate(requests) if request.experiment is experiment]
            pairs = [(requests[i].id_, requests[i].request) for i in indices]
            for i, decision in zip(indices, requests[0].server.prepare_all(experiment, pairs), strict=True):
                decisions[i] = decision
        return decisions

    def build_response(
        self, prepared: "PendingDecision", result: AppendResult | StoreUnavailable
    ) -> RouteResponse | None:
        """Return the response to a decision that is logged, or could not be."""
        if isinstance(result, StoreUnavailable):
            return _build_response(prepared.server.build_unlogged(prepared, str(result)), has_failed=True)
        return json_response(prepared.server.confirm(prepared)) if result.status == NEW else None


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
