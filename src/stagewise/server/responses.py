"""Responses and descriptions, built from rows of the log."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.errors import StagewiseError
from stagewise.server.decision_engine import decode_cause
from stagewise.server.event_log import Event
from stagewise.server.messages import DecisionResponse, ErrorResponse, LimitStatus
from stagewise.server.store.base import StoreUnavailable


def describe_decision(problem: Problem, event: Event, body: dict[str, Any], learned: str = "") -> list[str]:
    """Return a decision as sentences; `learned` is the time of the last learned row."""
    row = body["snapshot"]
    snapshot = f"the policy had learned up to row {row}{learned}" if row else "the policy had learned no row"
    basis = f"Version {body['problem']} of the problem; {snapshot}."
    return [*describe_served(event, body), basis, *describe_reward(problem, body), *describe_limits(problem, body)]


def format_time(at: int) -> str:
    """Format a time in UTC.

    >>> format_time(1_700_000_000_250_000)
    '2023-11-14 22:13:20.250 UTC'
    """
    moment = datetime.fromtimestamp(at / 1e6, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def describe_served(event: Event, body: Any) -> Iterator[str]:
    """Yield what was served and why."""
    chance = body["probabilities"][body["action"]]
    how = "with probability 1" if chance == 1.0 else f"sampled with probability {chance:.4g}"
    served = f"{body['action']!r} was served, {how}, in mode {body['mode']}"
    yield f"Decision {event.key} (row {event.seq}, {format_time(event.at)}): {served}."
    cause = decode_cause(body)
    if cause is not None:
        yield f"The safe action was served ({cause.reason}): {cause.message}."
    if "choice" in body:
        probabilities = format_probabilities(body["choice"]["probabilities"])
        yield f"The policy would have sampled {body['choice']['action']!r} from {probabilities}."
    elif chance < 1.0:
        yield f"It was sampled from {format_probabilities(body['probabilities'])}, the best mixture under every limit."


def format_probabilities(probabilities: dict[str, float]) -> str:
    """Format the probabilities above zero."""
    return ", ".join(f"{name!r} {chance:.4g}" for name, chance in probabilities.items() if chance > 0.0)


def describe_reward(problem: Problem, body: Any) -> Iterator[str]:
    """Yield the estimated reward."""
    if body["estimated_reward"] is not None:
        yield f"{problem.reward.name}: estimated at {body['estimated_reward']:.6g}."


def describe_limits(problem: Problem, body: Any) -> Iterator[str]:
    """Yield estimate, bound and threshold of each limit, as logged in the row."""
    for name, limit in body["limits"].items():
        word = "at least" if problem.limits[name].at_least else "at most"
        pessimistic_cost = (
            "no finite bound" if limit["pessimistic_cost"] is None else f"{limit['pessimistic_cost']:.6g}"
        )
        mean = "no estimate" if limit["estimate"] is None else f"estimated at {limit['estimate']:.6g}"
        yield f"{name}: {mean}, bound {word} {pessimistic_cost}; the limit is {word} {limit['threshold']:.6g}."


def build_decision_response(id_: str, body: dict[str, Any], logged: bool = True) -> DecisionResponse:
    """Return the response of a decision row."""
    limits = {
        name: LimitStatus(limit["estimate"], limit["pessimistic_cost"], limit["threshold"])
        for name, limit in body["limits"].items()
    }
    cause = decode_cause(body)
    return DecisionResponse(
        id_, body["action"], body["probabilities"], body["mode"], body["problem"], body["snapshot"], limits,
        None if cause is None else cause.reason, None if cause is None else cause.message, body["estimated_reward"],
        logged,
    )  # fmt: skip


def to_response(result: Any, id_: str | None = None) -> Any:
    """Return a result, or an ErrorResponse for an expected error; other errors and StoreUnavailable are raised."""
    if isinstance(result, StagewiseError) and not isinstance(result, StoreUnavailable):
        return ErrorResponse(result.code, str(result), id_)
    if isinstance(result, BaseException):
        raise result
    return result
