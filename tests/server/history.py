"""Histories: what every client was told, held against the log.

A violation has a code: `lost` (acknowledged, and the log has no such row), `repeated` (an id or a number twice),
`order` (a row that was answered before another was asked for comes after it), `disobeyed` (a decision that was asked
for after a kill was answered is not the killed one), `fold` (a state is not the fold of the log), and codes of audits.
"""

import bisect
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.server.logs import problem
from tests.server.server_helpers import NAME

from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import decode_numbers
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store


class Call(NamedTuple):
    """One request of one client, and what it was told."""

    kind: str
    """decision, outcome, kill or resume."""
    began: float
    ended: float
    id_: str
    receipt: str | None
    """Of an acknowledged row; None: the client was not told of one."""
    mode: str = ""


class History:
    """The calls of all clients."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._lock = threading.Lock()

    def add(self, kind: str, began: float, id_: str = "", receipt: str | None = None, mode: str = "") -> None:
        """Note a call that is over now."""
        with self._lock:
            self.calls.append(Call(kind, began, time.monotonic(), id_, receipt, mode))


def find_violations(history: History, store: Store, servers: Sequence[DecisionServer] = ()) -> set[str]:
    """Return the codes of what is wrong."""
    while store.seal():
        pass
    parts = store.parts_of_seals(0, 2**62)
    seals = {number: part.seal for part in parts for number in decode_numbers(part.numbers)}
    rows = [row for name in store.logs() for row in store.iter_events(name)]
    ordered = sorted(rows, key=lambda row: (seals[row.number], row.number))
    places = {row.receipt: i for i, row in enumerate(ordered)}
    acknowledged = [call for call in history.calls if call.receipt is not None]
    decisions = [call for call in history.calls if call.kind == "decision"]
    asked = {call.id_: call.began for call in sorted(decisions, key=lambda one: one.began, reverse=True)}
    found = {str(fault.code) for fault in verify_store(store).faults}
    if any(call.receipt not in places for call in acknowledged):
        found.add("lost")
    ids = [row.key for row in rows if row.kind == "decision"]
    answers = {(call.kind, call.id_, call.receipt) for call in acknowledged if call.kind == "decision"}
    is_repeated = len(set(ids)) < len(ids) or len({id_ for _, id_, _ in answers}) < len(answers)
    if is_repeated or len({row.number for row in rows}) < len(rows):
        found.add("repeated")
    latest, ended = -1, sorted((c.ended, places[c.receipt]) for c in acknowledged if c.receipt in places)
    position = 0
    made = [call for call in acknowledged if call.kind == "decision" and call.receipt in places]
    for call in sorted(made, key=lambda one: asked[one.id_]):  # a retry is answered by the row that is there
        while position < len(ended) and ended[position][0] < asked[call.id_]:
            latest, position = max(latest, ended[position][1]), position + 1
        if places[call.receipt] < latest:
            found.add("order")
    controls = sorted((call for call in history.calls if call.kind in ("kill", "resume")), key=lambda one: one.began)
    if any(is_disobeyed(call._replace(began=asked[call.id_]), controls) for call in made):
        found.add("disobeyed")
    events = store.events(NAME, limit=10**7)
    for fold in [one.learner.folds[NAME] for one in servers if NAME in one.learner.folds]:
        whole = StateFold(problem(), 1)
        whole.take(events[: fold.seq])
        if fold.encode() != whole.encode():
            found.add("fold")
    if Replay(store, NAME).run().first_difference is not None:
        found.add("fold")
    return found


def is_disobeyed(call: Call, controls: Sequence[Call]) -> bool:
    """Return whether a decision was asked for after a kill was answered, and before a resume began, and is another."""
    before = bisect.bisect_left(controls, call.ended, key=lambda one: one.began)
    last = controls[before - 1] if before else None
    return last is not None and last.kind == "kill" and last.ended < call.began and call.mode != "killed"
