"""Who may decide: mode, canary share and kill switch of an experiment, as a fold of the control rows of its log."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import msgspec

from stagewise.problem.checks import number, one_of, shown
from stagewise.problem.errors import InvalidProblem
from stagewise.records.reason import Cause, Reason
from stagewise.service.messages import Mode
from stagewise.service.records import CONTROL, Event

MODES = get_args(Mode)
MODE, KILL, REVIVE, ACKNOWLEDGE, TRIP = "mode", "kill", "revive", "acknowledge", "trip"


class Controls(NamedTuple):
    """What holds after the last control row."""

    row: int = 0
    """The last control or problem row that it knows."""
    mode: Mode = "shadow"
    share: float = 1.0
    """canary: the share of decisions that are the policy's."""
    killed: Cause | None = None
    """Why the kill switch is pulled, with who did it; None: it is not."""

    def after(self, event: Event) -> "Controls":
        """Return what holds after one more row; a problem's changes nothing but its number.

        >>> told = b'{"what":"kill","actor":"ada","reason":"complaints doubled"}'
        >>> Controls().after(Event(3, 0, "control", "3", -1, told, b"")).killed.sentence
        'killed by ada: complaints doubled'
        """
        now = self._replace(row=event.seq)
        if event.kind != CONTROL:
            return now
        told = msgspec.json.decode(event.body)
        what = told.get("what")
        if what == MODE:
            return now._replace(mode=told["mode"], share=float(told["share"]))
        if what == KILL:
            return now._replace(killed=Cause.of(Reason.KILLED, actor=told["actor"], note=told["reason"]))
        if what == TRIP:
            why = {"trip": told["trip"], "details": told["details"]}
            return now._replace(killed=Cause.of(Reason.TRIPPED, actor=told["actor"], **why))
        return now._replace(killed=None) if what == REVIVE else now


def folded(events: Iterable[Event], controls: Controls | None = None) -> Controls:
    """Return what holds after these rows."""
    controls = Controls() if controls is None else controls
    for event in events:
        controls = controls.after(event)
    return controls


def mode_of(mode: Any, share: Any) -> tuple[Mode, float]:
    """Return a mode and its share, or refuse them."""
    told: Any = one_of(mode, MODES, "mode")
    if told != "canary":
        if share is not None:
            raise InvalidProblem(f"share is {shown(share)} and mode is {told!r}; only a canary has a share")
        return told, 1.0
    if share is None:
        raise InvalidProblem("mode is 'canary' and there is no share; say which part of the decisions, such as 0.05")
    part = number(share, "share")
    if not 0.0 < part < 1.0:
        percent = "; was it a percentage?" if 1.0 <= part <= 100.0 else ""
        raise InvalidProblem(f"share is {part:g}; a canary has a part between 0 and 1{percent}")
    return told, part


def chosen_for_canary(id_: str, share: float) -> bool:
    """Say whether a decision is among the canary's share: by its id alone, so that a retry is too.

    >>> sum(chosen_for_canary(f"user-{i}", 0.1) for i in range(10_000))
    1009
    """
    return int.from_bytes(hashlib.sha256(b"canary\0" + id_.encode()).digest()[:8]) < share * 2**64
