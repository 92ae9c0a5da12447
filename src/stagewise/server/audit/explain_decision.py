"""Explains one decision in sentences: request, bounds of each action, sample and outcomes."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.replay_log import DecisionOrigin, Replay
from stagewise.server.decide import PolicySnapshot, compute_draw, describe_decision, encode_context, format_time
from stagewise.server.event_log import DECISION, OUTCOME, SHOWN, Event
from stagewise.server.messages import DecisionRequest, UnknownDecision
from stagewise.server.store.base import Store


def explain_logged_decision(store: Store, experiment: str, id_: str) -> str:
    """Explain a decision; its bounds are computed again from the log."""
    replay = Replay(store, experiment)
    event = store.find(experiment, DECISION, id_)
    if event is None:
        raise UnknownDecision(
            ErrorCode.UNKNOWN_DECISION,
            "{id} is no decision of {experiment}",
            id=safe_repr(id_),
            experiment=safe_repr(experiment),
        )
    body = msgspec.json.decode(event.body)
    origin = DecisionOrigin(body["problem"], body["snapshot"], event.seq)
    snapshot = next(snapshot for snapshot, _ in replay.iter_snapshots([origin]))
    problem = replay.versions[origin.version].problem
    lines = [
        *describe_decision(problem, event, body, describe_snapshot_time(store, experiment, origin.snapshot)),
        *describe_request(body),
    ]
    if snapshot is not None:
        lines += describe_bounds(snapshot, replay.key, id_, body)
    difference = replay.find_difference(snapshot, event)
    lines.append("Replay: identical." if difference is None else f"Replay: {difference}.")
    return "\n".join([*lines, *describe_outcomes(store, experiment, event, problem)])


def describe_request(body: Any) -> Iterator[str]:
    """Yield the request."""
    context = ", ".join(f"{name} = {value!r}" for name, value in body["request"]["context"].items())
    only = body["request"].get("only")
    offer = "all actions available" if only is None else f"available: {', '.join(map(repr, only))} and the safe action"
    yield f"Request: {context or 'no context'}; {offer}."


def describe_snapshot_time(store: Store, experiment: str, row: int) -> str:
    """Format the time of a row."""
    last = store.events(experiment, row - 1, 1) if row else []
    return f" ({format_time(last[0].at)})" if last else ""


def describe_bounds(snapshot: PolicySnapshot, key: bytes, id_: str, body: Any) -> Iterator[str]:
    """Yield the policy's table of the available actions."""
    context = encode_context(snapshot, msgspec.convert(body["request"], DecisionRequest))
    decision = snapshot.policy.choose(snapshot.state, context, compute_draw(key, id_))
    yield "Estimates, bounds and probability of each action:"
    table = decision.explain().splitlines()[1:]
    yield from (f"  {line}" for line in table)


def describe_outcomes(store: Store, experiment: str, event: Event, problem: Problem) -> Iterator[str]:
    """Yield reported and missing outcomes."""
    reported: set[str] = set()
    for row in store.iter_events_of_kind(experiment, OUTCOME, event.seq):
        if row.decision_index == event.decision_index:
            values = msgspec.json.decode(row.body)["values"]
            reported |= set(values)
            body = ", ".join("it was not shown" if n == SHOWN and not v else f"{n} = {v:g}" for n, v in values.items())
            yield f"Outcome (row {row.seq}, {format_time(row.at)}, {(row.at - event.at) / 1e6:.1f} s later): {body}."
            if values.get(SHOWN) == 0.0:
                yield "Nothing is learned from it."
                return
    if msgspec.json.decode(event.body)["request"].get("deferred") and SHOWN not in reported:
        yield "It is deferred and was not reported as shown: nothing is learned from it."
        return
    now = store.head(experiment).at
    for name in problem.signals:
        window = problem.windows.get(name)
        if name in reported:
            continue
        if window is None:
            yield f"No {name} was reported; it has no window and stays pending."
        elif now - event.at < window.seconds * 1e6:
            closes = format_time(event.at + round(window.seconds * 1e6))
            yield f"No {name} was reported yet; its window closes at {closes}."
        else:
            yield f"No {name} was reported; {window.description}."
