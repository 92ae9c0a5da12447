"""Mode, canary share and kill switch of an experiment, folded from the control rows of its log."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import msgspec

from stagewise.problem.checks import check_choice, check_number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.event_log import CONTROL, Event
from stagewise.server.messages import Mode

MODES = get_args(Mode)
MODE, KILL, RESUME, ACKNOWLEDGE, TRIP = "mode", "kill", "resume", "acknowledge", "trip"
FORGET_COSTS = "forget_costs"
ERASE = "erase"
RESTORED = "restored"


class Controls(NamedTuple):
    """The controls after a row of the log."""

    row: int = 0
    """The number of the last control or problem row that was applied."""
    mode: Mode = "shadow"
    share: float = 1.0
    """In mode canary, the share of decisions that the policy makes."""
    killed: ReasonDetails | None = None
    """Why the kill switch is on, and who turned it on; None if it is off."""

    def apply(self, event: Event) -> "Controls":
        """Return the controls after one more row; a problem row only sets `row`.

        >>> body = b'{"what":"kill","actor":"ada","reason":"complaints doubled"}'
        >>> Controls().apply(Event(3, 0, "control", "3", -1, body)).killed.message
        'killed by ada: complaints doubled'
        """
        now = self._replace(row=event.number)
        if event.kind != CONTROL:
            return now
        body = msgspec.json.decode(event.body)
        what = body.get("what")
        if what == MODE:
            return now._replace(mode=body["mode"], share=float(body["share"]))
        if what == KILL:
            return now._replace(
                killed=ReasonDetails.of(FallbackReason.KILLED, actor=body["actor"], note=body["reason"])
            )
        if what == TRIP:
            details = {"trip": body["trip"], "details": body["details"]}
            return now._replace(killed=ReasonDetails.of(FallbackReason.TRIPPED, actor=body["actor"], **details))
        return now._replace(killed=None) if what == RESUME else now


def fold_controls(events: Iterable[Event], controls: Controls | None = None) -> Controls:
    """Apply rows to controls."""
    controls = Controls() if controls is None else controls
    for event in events:
        controls = controls.apply(event)
    return controls


def parse_mode(mode: Any, share: Any) -> tuple[Mode, float]:
    checked: Any = check_choice(mode, MODES, "mode")
    if checked != "canary":
        if share is not None:
            template = "share is {share} and mode is {mode!r}; only mode 'canary' has a share"
            raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, template, share=safe_repr(share), mode=checked)
        return checked, 1.0
    if share is None:
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE, "mode is 'canary' and share is missing; give the share of decisions, such as 0.05"
        )
    fraction = check_number(share, "share")
    if not 0.0 < fraction < 1.0:
        percent = "; was it a percentage?" if 1.0 <= fraction <= 100.0 else ""
        template = "share is {fraction:g}; the share of a canary must be between 0 and 1{percent}"
        raise InvalidProblem(ErrorCode.OUT_OF_RANGE, template, fraction=fraction, percent=percent)
    return checked, fraction


def is_in_canary(id_: str, share: float) -> bool:
    """Return whether a decision is in the canary's share; it depends only on the id, so a retry agrees.

    >>> sum(is_in_canary(f"user-{i}", 0.1) for i in range(10_000))
    1009
    """
    return int.from_bytes(hashlib.sha256(b"canary\0" + id_.encode()).digest()[:8]) < share * 2**64
