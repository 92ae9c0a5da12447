"""A log by hand: rows in their order, at moments in seconds."""

from typing import Any

import msgspec

import stagewise as sw
from stagewise.server.event_log import Event


class Log:
    """Rows of one experiment."""

    def __init__(self, problem: sw.Problem | None = None, at: float = 0.0) -> None:
        self.events: list[Event] = []
        self.numbers: dict[str, int] = {}
        if problem is not None:
            self.row("problem", at, {"version": 1, "problem": problem.to_dict(), "actor": "ada", "reason": "a start"})

    def row(self, kind: Any, at: float, body: dict[str, Any], key: str = "", decision: int = -1) -> None:
        seq = len(self.events) + 1
        row = Event(seq, round(1e6 * at), kind, key or str(seq), decision, msgspec.json.encode(body), seq=seq)
        self.events.append(row)

    def decision(self, at: float, key: str, action: str, **body: Any) -> None:
        self.numbers[key] = len(self.events) + 1
        body = {"mode": "live", "reason": None, "details": {}, "probabilities": {action: 1.0}, "limits": {}, **body}
        self.row("decision", at, {"action": action, **body}, key)

    def outcome(self, at: float, of: str, **values: float) -> None:
        self.row("outcome", at, {"decision_id": of, "values": values}, "", self.numbers[of])

    def control(self, at: float, what: str, actor: str, reason: str, **more: Any) -> None:
        self.row("control", at, {"what": what, "actor": actor, "reason": reason, **more})

    def tick(self, at: float) -> None:
        self.row("tick", at, {})


def feared(**pessimistic_cost: float) -> dict[str, dict[str, float | None]]:
    return {name: bound(value, 0.02) for name, value in pessimistic_cost.items()}


def bound(pessimistic_cost: float | None, threshold: float) -> dict[str, float | None]:
    return {"estimate": None, "pessimistic_cost": pessimistic_cost, "threshold": threshold}
