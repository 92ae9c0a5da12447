"""Every sentence of a reason worded otherwise, and campaigns that meet most reasons, as rows of a log by hand."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from tests.server.logs import problem

import stagewise as sw
from stagewise.server.controls import Controls
from stagewise.server.decide import DecisionRecord, decide
from stagewise.server.event_log import Event, Kind, encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.state_fold import StateFold

KEY = b"a key of thirty-two bytes, or so"
SECOND = 10**6


class Campaign(NamedTuple):
    """What came of a campaign."""

    rows: list[Event]
    fold: StateFold

    @property
    def reasons(self) -> set[str | None]:
        """Why the safe action was served, of all decisions."""
        return {body["reason"] for body in self.bodies("decision")}

    def bodies(self, kind: Kind) -> list[Any]:
        """Return what rows say."""
        return [msgspec.json.decode(event.body) for event in self.rows if event.kind == kind]


CHANGES: dict[int, list[dict[str, Any]]] = {
    0: [{"what": "mode", "mode": "live", "share": 1.0}],
    60: [{"what": "mode", "mode": "shadow", "share": 1.0}],
    70: [{"what": "mode", "mode": "canary", "share": 0.5}],
    90: [{"what": "mode", "mode": "off", "share": 1.0}],
    95: [{"what": "mode", "mode": "live", "share": 1.0}, {"what": "kill"}],
    100: [{"what": "resume"}],
    200: [{"what": "resume"}, {"what": "acknowledge", "name": "safe cost of opt_out"}],
}


def campaign(users: int = 480) -> Campaign:
    """Play a desk by hand, its clock and key the same every time: decide, write, fold, trip, and obey a person."""
    limits = {
        "opt_out": sw.Limit(0.3, safe_bound=0.02, model="rates"),
        "complaint": sw.Limit(0.2, safe_bound=0.0, by="country"),
    }
    told, rng, rows = problem(limits=limits), np.random.default_rng(3), list[Event]()
    fold, controls = StateFold(told, 1, feedback_timeout=50.0), Controls()
    known = build_initial_snapshot(told, 1, frozenset())

    def write(kind: Kind, body: Any, at: int, decision: int = -1) -> None:
        nonlocal controls
        row = len(rows) + 1
        rows.append(Event(row, at, kind, str(row), decision, encode_canonical(body), seq=row))
        controls = controls.apply(rows[-1]) if kind == "control" else controls
        fold.take(rows[-1:])

    for i in range(users):
        now = 10**15 + i * SECOND
        for change in CHANGES.get(i, []):
            write("control", {"actor": "ada", "reason": "so", **change}, now)
        asked = DecisionRequest(
            {"age": 20.0 + i % 50, "tenure": 0.25, "country": "NZ" if i % 2 else "AU"}, None, f"u-{i}"
        )
        (body,) = decide(known, controls, Controls(), KEY, [(f"u-{i}", asked)])
        assert isinstance(body, DecisionRecord)
        write("decision", body, now)
        number = len(rows)
        if i < 300:  # then feedback stops
            offered, worse = body.action != "nothing", 100 < i < 200
            values = {"click": float(rng.random() < (0.6 if offered else 0.1)), "complaint": 0.0}
            write("outcome", {"values": {**values, "opt_out": float(worse and i % 4 > 0)}}, now, number)
        why = fold.circuit_breaker.find_breach() or fold.find_feedback_cause()  # as the learner does
        if why is not None and not fold.circuit_breaker.is_logged(why):
            write("control", {"what": "trip", "actor": "the server", "trip": why.reason, "details": why.details}, now)
        if i % 7 == 0:
            known = fold.build_snapshot()
    return Campaign(rows, fold)
