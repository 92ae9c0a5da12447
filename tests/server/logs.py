"""Logs of a small experiment, written by hand."""

from typing import Any

import numpy as np

import stagewise as sw
from stagewise.server.event_log import Event, encode_canonical

MINUTE = 60 * 10**6
DAY = 24 * 60 * MINUTE


def problem(**changes: Any) -> sw.Problem:
    """Return three messages with two limits, of which one holds in every country."""
    told: dict[str, Any] = {
        "action_names": ["nothing", "digest", "offer"],
        "safe_name": "nothing",
        "context": {"age": (0, 100), "tenure": (-1, 1)},
        "reward": sw.Reward("click"),
        "limits": {
            "opt_out": sw.Limit(0.05, safe_bound=0.001, window="7d", model="rates"),
            "complaint": sw.Limit(0.04, safe_bound=0.0, window="7d", by="country"),
        },
    }
    return sw.Problem(**{**told, **changes})


class Log:
    """Rows that follow each other."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: Any, body: Any, at: int, decision: int = -1) -> None:
        """Add a row of whatever kind."""
        seq = len(self.events) + 1
        self.events.append(Event(seq, at, kind, str(seq), decision, encode_canonical(body), seq=seq))

    def decide(
        self, action: str, at: int, reason: str | None = None, country: str = "NZ", age: float = 40.0, version: int = 0
    ) -> int:
        """Add a decision; return its number."""
        context = {"age": age, "tenure": 0.25, "country": country}
        body = {"action": action, "request": {"context": context}, "reason": reason, "problem": version}
        self.add("decision", body, at)
        return len(self.events)

    @property
    def decisions(self) -> int:
        """The number of decisions."""
        return sum(event.kind == "decision" for event in self.events)

    def tell(self, decision: int, at: int, **values: float) -> None:
        """Add an outcome."""
        self.add("outcome", {"decision_id": str(decision), "values": values}, at, decision)


def month(users: int, seed: int = 0) -> Log:
    """Return a log of users from more and more countries: outcomes in any order, some of them never."""
    rng, log, late = np.random.default_rng(seed), Log(), []
    for user in range(users):
        at = user * 60 * MINUTE
        action = str(rng.choice(["nothing", "digest", "offer"]))
        place = log.decide(action, at, country=f"C{rng.integers(1 + user // 20)}", age=float(rng.integers(101)))
        if rng.random() < 0.9:
            late.append((place, {"click": float(rng.random() < 0.2)}))
        if rng.random() < 0.05:
            late.append((place, {"opt_out": 1.0, "complaint": float(rng.random() < 0.5)}))
        if rng.random() < 0.05:
            log.tell(place, at, shown=0.0)
        while late and rng.random() < 0.6:
            where, values = late.pop(int(rng.integers(len(late))))
            log.tell(where, at + 1, **values)
    log.add("tick", {}, users * 60 * MINUTE + 8 * DAY)
    return log
