"""OPNLB at its door: settings and actions that it refuses."""

from typing import Any

import numpy as np
import pytest
from tests.policies.classes import BASE, COSTS, FEATURED, GRID, SAFE, line
from tests.problem.refusal import refused

from stagewise import OPNLB, ArmSet, InvalidActions, InvalidProblem, SafeAction
from stagewise.problem.errors import ErrorCode


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_class": None}, ErrorCode.WRONG_TYPE),
        ({"reward_class": [[0.1, np.nan, 0.3]]}, ErrorCode.NOT_FINITE),
        ({"reward_class": [[0.2, 0.5, 0.9]]}, ErrorCode.SAFE_ACTION_INVALID),
        ({"cost_class": [[0.1, 0.2, 0.6]]}, ErrorCode.SAFE_ACTION_INVALID),
        ({"cost_class": [[0.3, 0.2, 0.6]], "safe_action": SafeAction(arm=0)}, ErrorCode.SAFE_ACTION_INVALID),
        ({"cost_class": [[0.0, 0.2]]}, ErrorCode.CONFLICTING_SETTINGS),
        ({"cost_class": {"spend": COSTS}}, ErrorCode.UNKNOWN_NAME),
        ({"cost_class": [COSTS, COSTS]}, ErrorCode.WRONG_SHAPE),
        ({"cost_class": [line]}, ErrorCode.CONFLICTING_SETTINGS),
        ({"safe_action": SafeAction(features=[1.0], cost=0.0)}, ErrorCode.SAFE_ACTION_INVALID),
        ({"safe_action": SafeAction(arm=3, cost=0.0)}, ErrorCode.SAFE_ACTION_INVALID),
        ({"safe_action": 0}, ErrorCode.WRONG_TYPE),
        ({"threshold": 0.0}, ErrorCode.SAFE_ACTION_OVER_LIMIT),
        ({"threshold": np.nan}, ErrorCode.NOT_FINITE),
        ({"noise": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"noise": [0.1, 0.1, 0.1]}, ErrorCode.WRONG_SHAPE),
        ({"delta": 1.0}, ErrorCode.OUT_OF_RANGE),
        ({"method": "magic"}, ErrorCode.INVALID_CHOICE),
        ({"method": "exact"}, ErrorCode.UNSUPPORTED),
        ({"optimism": "none"}, ErrorCode.INVALID_CHOICE),
        ({"optimism": "directional", "method": "rows"}, ErrorCode.CONFLICTING_SETTINGS),
        ({"reward_confidence_scale": -0.1}, ErrorCode.OUT_OF_RANGE),
        ({"reward_confidence_scale": np.inf}, ErrorCode.NOT_FINITE),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with refused(InvalidProblem, words):
        OPNLB(**{**BASE, **changes})


def test_a_safe_action_without_features_is_refused_where_they_are_needed() -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        OPNLB(**{**FEATURED, "safe_action": SAFE})


@pytest.mark.parametrize(
    ("settings", "actions", "words"),
    [
        (BASE, ArmSet(4), ErrorCode.UNSUPPORTED_ACTIONS),
        (BASE, GRID, ErrorCode.UNSUPPORTED_ACTIONS),
        (FEATURED, ArmSet(3), ErrorCode.UNSUPPORTED_ACTIONS),
        (FEATURED, [[0.1, 0.2]], ErrorCode.DIMENSION_MISMATCH),
        (FEATURED, [[np.nan]], ErrorCode.NOT_FINITE),
        (FEATURED, [], ErrorCode.WRONG_SHAPE),
        (FEATURED, [[-1.0]], ErrorCode.CALLBACK_FAILED),
    ],
)
def test_bad_actions_are_refused_in_one_sentence(settings: dict[str, Any], actions: Any, words: str) -> None:
    policy = OPNLB(**settings)
    with refused(InvalidActions, words):
        policy.decide(policy.start(), actions)
