"""Outcomes of a log: validated at the door, then reported to the queue of the learner and to that of the statistics."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from stagewise.agent.outcome_queue import OutcomeQueue, SignalWindow
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.problem.signals import Limit, Reward, scale_outcome
from stagewise.server.event_log import SHOWN, Event

Scale = Callable[[str, float], float]
"""A reported value as a queue keeps it."""


class LoggedOutcome(msgspec.Struct):
    """The fields of an outcome row that are learned."""

    values: dict[str, float]


decode_outcome = msgspec.json.Decoder(LoggedOutcome).decode


def validate_outcome(problem: Problem, given: Mapping[str, Any]) -> dict[str, float]:
    """Return the validated signals of an outcome, and `shown` if it is given."""
    names = [*problem.reported, SHOWN]
    for name, value in given.items():
        if name not in names:
            template = "the outcome names {name}; the signals are {names}{suggestion}"
            data = {"name": safe_repr(name), "names": ", ".join(names), "suggestion": suggest_name(name, names)}
            raise InvalidOutcome(ErrorCode.UNKNOWN_SIGNAL, template, **data)
        if name != SHOWN:
            scale_outcome(problem.reported[name], name, value)
        elif not isinstance(value, bool):
            raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, SHOWN, value, "true or false")
    if not given:
        raise InvalidOutcome(
            ErrorCode.OUTCOME_MISSING, "no outcome is given; give at least one of {signals}", signals=", ".join(names)
        )
    return {name: float(value) for name, value in given.items()}


def build_queue(signals: Mapping[str, Reward | Limit], width: int, scale: Scale) -> OutcomeQueue:
    """Return the queue of a log: each signal is learned by itself, in the order of decisions."""
    windows = [(k, name, signal.outcome_window) for k, (name, signal) in enumerate(signals.items())]
    return OutcomeQueue(
        list(signals),
        [(k,) for k in range(len(signals))],
        [
            SignalWindow(k, round(waits.seconds * 1e6), math.nan if waits.drops else scale(name, float(waits.missing)))
            for k, name, waits in windows
            if waits is not None
        ],
        width,
        first=sum(not signal.is_reported for signal in signals.values()),
    )


def report_outcome(queue: OutcomeQueue, index: int, values: Mapping[str, float], scale: Scale) -> list[str]:
    """Report an outcome of the log; return the signals that are new and in time. Undeclared signals are ignored."""
    if values.get(SHOWN, 1.0) == 0.0:
        queue.drop(index)
    elif SHOWN in values:
        queue.confirm(index)
    new, scaled = list[int](), [0.0] * len(queue.names)
    for k, name in enumerate(queue.names):
        if name not in values:
            continue
        if index < max(queue.closed[k], queue.heads[k]):
            queue.late[k] += 1
        elif queue.is_missing(index, k):
            new.append(k)
            scaled[k] = scale(name, values[name])
    queue.report(index, new, scaled)
    return [queue.names[k] for k in new]


def order_times(events: Sequence[Event], at: int) -> list[Event]:
    """Return rows whose times never decrease, from a time on: clocks of writers differ, and windows close once."""
    ordered = list[Event]()
    for event in events:
        at = max(at, event.at)
        ordered.append(event if event.at == at else event._replace(at=at))
    return ordered


def forget_indices(indices: dict[int, int], queue: OutcomeQueue) -> None:
    """Forget the numbers of decisions that the queue has left out; they are in the order of decisions."""
    for number in list(islice(indices, queue.base - (queue.end - len(indices)))):
        del indices[number]
