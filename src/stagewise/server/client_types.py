"""Requests, responses and errors of the client."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.ids import new_id

MAX_BATCH_SIZE = 1000  # items that the server accepts in a list
MAX_BODY_BYTES = 1_000_000


class RequestRejected(StagewiseError):
    """The server rejected a request (4xx).

    Args:
        code: The server's error code.
        template: The sentence, with the names of its data in braces.
        status: The HTTP status.
        **details: The data of the sentence.

    Attributes:
        code: The server's error code.
        status: The HTTP status.

    Example:
        >>> error = RequestRejected(ErrorCode.UNKNOWN_EXPERIMENT, "no experiment {name!r}", status=404, name="mails")
        >>> error.code, error.status, str(error)
        (<ErrorCode.UNKNOWN_EXPERIMENT: 'unknown_experiment'>, 404, "no experiment 'mails'")
    """

    def __init__(self, code: ErrorCode, template: str, /, status: int = 400, **details: Any) -> None:
        super().__init__(code, template, **details)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_rejection, (self.code, self.template, self.status, self.details)


def restore_rejection(code: ErrorCode, template: str, status: int, details: dict[str, Any]) -> RequestRejected:
    """Return an error that another process raised."""
    return RequestRejected(code, template, status=status, **details)


class ServerUnavailable(StagewiseError):
    """An outcome could not be delivered: the server did not answer in time. Report it again.

    Example:
        >>> str(ServerUnavailable(ErrorCode.SERVER_UNAVAILABLE, "{id} was not delivered", id="mail-17"))
        'mail-17 was not delivered'
    """


class DecisionRequest(NamedTuple):
    """A request for a decision.

    Attributes:
        context: Every number and segment that the problem declares, by name.
        only: The available actions; None: all.
        decision_id: Your id; None: the client creates one.
    """

    context: Mapping[str, Any] = {}
    only: Sequence[str] | None = None
    decision_id: str | None = None


class DecisionResponse(NamedTuple):
    """A decision.

    Attributes:
        decision_id: The id for outcomes.
        action: The action to carry out.
        probabilities: The probability of each action.
        mode: The mode of the experiment; `away` if the server did not answer.
        version: The version of the problem.
        snapshot: The last row of the log that the policy snapshot had learned.
        limits: By name: `estimate`, `pessimistic_cost` and `threshold`.
        message: The reason as a sentence for people.
        estimated_reward: The estimated mean reward.
        logged: False: the action is the safe one, and outcomes are not accepted.
        reason: Why the safe action is served, as a code of `stagewise.Reason`; None if there is no special reason.
    """

    decision_id: str
    action: str
    probabilities: dict[str, float]
    mode: str = "away"
    version: int = 0
    snapshot: int = -1
    limits: Mapping[str, Mapping[str, float | None]] = {}
    message: str | None = None
    estimated_reward: float | None = None
    logged: bool = True
    reason: str | None = None


class ErrorResponse(NamedTuple):
    """An item of a batch that the server rejected.

    Attributes:
        code: The error code, a value of `stagewise.ErrorCode`.
        message: The error as a sentence for people.
        decision_id: The id of the item, if it has one.
    """

    code: str
    message: str
    decision_id: str | None = None


class OutcomeResponse(NamedTuple):
    """The server's response to an outcome.

    Attributes:
        decision_id: The id of the decision.
        accepted: Signals that this report added to the log.
        duplicate: Signals that were in the log with the same value.
        late: Signals that arrived after their window closed.
    """

    decision_id: str
    accepted: tuple[str, ...] = ()
    duplicate: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


def build_request(request: DecisionRequest) -> dict[str, Any]:
    """Return the body of a request, with an id, so that every retry has the same one."""
    if not isinstance(request.context, Mapping):
        raise StagewiseError(
            ErrorCode.WRONG_TYPE,
            "the context is {context}; it must be a mapping by name",
            context=safe_repr(request.context),
        )
    body: dict[str, Any] = {"context": dict(request.context), "decision_id": request.decision_id or new_id()}
    return body if request.only is None else {**body, "only": list(request.only)}


def split_batches(items: Sequence[Any], get_size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Split items into batches that the server accepts.

    >>> list(split_batches(["a", "b", "c"], lambda item: 400_000))
    [['a', 'b'], ['c']]
    """
    batch: list[Any] = []
    total = 0
    for item in items:
        size = get_size(item) + 1
        if batch and (len(batch) == MAX_BATCH_SIZE or total + size > MAX_BODY_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def parse_outcome_response(content: Mapping[str, Any]) -> OutcomeResponse:
    """Return the response to an outcome."""
    return OutcomeResponse(
        content["decision_id"], *(tuple(content.get(name, ())) for name in OutcomeResponse._fields[1:])
    )


def parse_error_response(content: Mapping[str, Any]) -> ErrorResponse:
    """Return the error of an item."""
    return ErrorResponse(content["code"], content["message"], content.get("decision_id"))


def parse_error_code(content: Any) -> ErrorCode:
    """Return the code of an error answer; INVALID_REQUEST if it has none that this version knows.

    >>> parse_error_code({"code": "not_found"}), parse_error_code("Bad Gateway")
    (<ErrorCode.NOT_FOUND: 'not_found'>, <ErrorCode.INVALID_REQUEST: 'invalid_request'>)
    """
    try:
        return ErrorCode(content["code"])
    except (TypeError, KeyError, ValueError):
        return ErrorCode.INVALID_REQUEST


def encode_json(content: Any) -> bytes:
    """Return content as JSON."""
    try:
        return json.dumps(content, allow_nan=False, default=to_builtin).encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, StagewiseError):
            raise
        raise StagewiseError(
            ErrorCode.NOT_SERIALIZABLE,
            "{content} cannot be sent as JSON: {error}",
            content=safe_repr(content),
            error=error,
        ) from None


def encoded_size(content: Any) -> int:
    """Return the size of content as JSON, in bytes."""
    return len(encode_json(content))


def to_builtin(value: Any) -> Any:
    """Return a NumPy scalar as a Python number."""
    if hasattr(value, "item"):
        return value.item()
    raise StagewiseError(
        ErrorCode.NOT_SERIALIZABLE,
        "{value} is not JSON; contexts and outcomes hold numbers, text and booleans",
        value=safe_repr(value),
    )
