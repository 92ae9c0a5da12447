"""Modes, the canary's share and the kill switch are a fold of the log."""

from typing import Any

import pytest
from tests.service.logs import Log

from stagewise.problem.errors import InvalidProblem
from stagewise.records.reason import Cause, Reason
from stagewise.service.controls import Controls, chosen_for_canary, folded, mode_of
from stagewise.service.deciding import why_safe


def after(*told: dict[str, Any]) -> Controls:
    log = Log()
    for one in told:
        log.add("control", {"actor": "ada", "reason": "so", **one}, 0)
    return folded(log.events)


def test_the_last_mode_holds() -> None:
    controls = after({"what": "mode", "mode": "live", "share": 1.0}, {"what": "mode", "mode": "canary", "share": 0.1})
    assert controls == Controls(row=2, mode="canary", share=0.1)


def test_before_anybody_says_so_nothing_but_the_safe_action_is_served() -> None:
    told = why_safe(Controls(), Controls(), "id")
    assert told is not None
    assert told.reason is Reason.SHADOW


def test_a_kill_switch_holds_until_somebody_revives() -> None:
    live, killed = {"what": "mode", "mode": "live", "share": 1.0}, Cause.of(Reason.KILLED, actor="ada", note="so")
    assert why_safe(after(live), Controls(), "id") is None
    assert why_safe(after(live, {"what": "kill"}, live), Controls(), "id") == killed
    assert why_safe(after(live, {"what": "kill"}, {"what": "revive"}), Controls(), "id") is None
    assert why_safe(after(live), after({"what": "kill"}), "id") == killed
    why = {"trip": "feedback_stopped", "details": {"decisions": 120, "seconds": 60.0}}
    tripped = Cause.of(Reason.TRIPPED, actor="ada", **why)
    assert why_safe(after(live, {"what": "trip", **why}), Controls(), "id") == tripped


def test_a_canary_takes_its_share_of_ids_and_a_larger_one_takes_those_too() -> None:
    ids = [f"user-{i}" for i in range(2000)]
    few, more = ({i for i in ids if chosen_for_canary(i, share)} for share in (0.1, 0.3))
    assert few < more
    assert 150 < len(few) < 250


@pytest.mark.parametrize(
    ("mode", "share", "words"),
    [("on", None, "off"), ("live", 0.5, "only a canary"), ("canary", None, "no share"), ("canary", 5, "percentage")],
)
def test_a_mode_that_makes_no_sense_is_refused(mode: str, share: float | None, words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        mode_of(mode, share)
