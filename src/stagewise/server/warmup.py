"""Compiles the kernels with one decision and one outcome in memory, before the first request."""

from typing import Any

from stagewise.server.controls import Controls
from stagewise.server.decision_engine import make_decision, make_decisions
from stagewise.server.event_log import DECISION, OUTCOME, Event, encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.state_fold import StateFold, build_initial_snapshot
from stagewise.server.versions import ProblemVersion


def warm_up(version: ProblemVersion) -> None:
    """Decide and learn once, in memory."""
    problem = version.problem
    context: dict[str, Any] = {name: (low + high) / 2.0 for name, (low, high) in problem.ranges}
    request = DecisionRequest({**context, **dict.fromkeys(problem.divisions, "warm-up")})
    snapshot, live = build_initial_snapshot(problem, version.number, version.retired), Controls(mode="live")
    make_decisions(snapshot, live, live, bytes(32), [("warm-up", request)])
    body = make_decision(snapshot, live, live, bytes(32), "warm-up", request)
    fold = StateFold(problem, version.number, version.retired)
    values = {name: signal.low for name, signal in problem.signals.items()}
    fold.take(
        [
            Event(1, 0, DECISION, "warm-up", 0, encode_canonical(body), b""),
            Event(2, 0, OUTCOME, "1", 0, encode_canonical({"decision_id": "warm-up", "values": values}), b""),
        ]
    )
