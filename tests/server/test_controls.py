"""Modes, the canary's share and the kill switch are a fold of the log."""

from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.server.logs import Log

from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.controls import Controls, fold_controls, is_in_canary, parse_mode
from stagewise.server.decide import get_override_cause


def after(*told: dict[str, Any]) -> Controls:
    log = Log()
    for one in told:
        log.add("control", {"actor": "ada", "reason": "so", **one}, 0)
    return fold_controls(log.events)


def test_the_last_mode_holds() -> None:
    controls = after({"what": "mode", "mode": "live", "share": 1.0}, {"what": "mode", "mode": "canary", "share": 0.1})
    assert controls == Controls(row=2, mode="canary", share=0.1)


def test_before_anybody_says_so_nothing_but_the_safe_action_is_served() -> None:
    told = get_override_cause(Controls(), Controls(), "id")
    assert told is not None
    assert told.reason is FallbackReason.SHADOW


def test_a_kill_switch_holds_until_somebody_resumes() -> None:
    live, killed = (
        {"what": "mode", "mode": "live", "share": 1.0},
        ReasonDetails.of(FallbackReason.KILLED, actor="ada", note="so"),
    )
    assert get_override_cause(after(live), Controls(), "id") is None
    assert get_override_cause(after(live, {"what": "kill"}, live), Controls(), "id") == killed
    assert get_override_cause(after(live, {"what": "kill"}, {"what": "resume"}), Controls(), "id") is None
    assert get_override_cause(after(live), after({"what": "kill"}), "id") == killed
    why = {"trip": "feedback_stopped", "details": {"decisions": 120, "seconds": 60.0}}
    tripped = ReasonDetails.of(FallbackReason.TRIPPED, actor="ada", **why)
    assert get_override_cause(after(live, {"what": "trip", **why}), Controls(), "id") == tripped


def test_a_canary_takes_its_share_of_ids_and_a_larger_one_takes_those_too() -> None:
    ids = [f"user-{i}" for i in range(2000)]
    few, more = ({i for i in ids if is_in_canary(i, share)} for share in (0.1, 0.3))
    assert few < more
    assert 150 < len(few) < 250


@pytest.mark.parametrize(
    ("mode", "share", "code"),
    [
        ("on", None, ErrorCode.INVALID_CHOICE),
        ("live", 0.5, ErrorCode.CONFLICTING_SETTINGS),
        ("canary", None, ErrorCode.MISSING_VALUE),
        ("canary", 5, ErrorCode.OUT_OF_RANGE),
    ],
)
def test_an_invalid_mode_is_rejected(mode: str, share: float | None, code: ErrorCode) -> None:
    with refused(InvalidProblem, code):
        parse_mode(mode, share)
