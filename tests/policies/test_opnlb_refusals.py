"""OPNLB at its door: settings and actions that it refuses."""

from typing import Any

import numpy as np
import pytest
from tests.policies.classes import BASE, COSTS, FEATURED, GRID, SAFE, line
from tests.problem.refusal import refused

from stagewise import OPNLB, Arms, InvalidActions, InvalidProblem, SafeAction


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_class": None}, "must be a FunctionClass"),
        ({"reward_class": [[0.1, np.nan, 0.3]]}, "nan"),
        ({"reward_class": [[0.2, 0.5, 0.9]]}, "'reward' is 0.1 at the safe action"),
        ({"cost_class": [[0.1, 0.2, 0.6]]}, "does not contain the truth there"),
        ({"cost_class": [[0.3, 0.2, 0.6]], "safe_action": SafeAction(arm=0)}, "keeps the safe action"),
        ({"cost_class": [[0.0, 0.2]]}, "the same arms"),
        ({"cost_class": {"spend": COSTS}}, "['spend']"),
        ({"cost_class": [COSTS, COSTS]}, "2 classes"),
        ({"cost_class": [line]}, "all of features"),
        ({"safe_action": SafeAction(features=[1.0], cost=0.0)}, "functions of 3 arms"),
        ({"safe_action": SafeAction(arm=3, cost=0.0)}, "functions of 3 arms"),
        ({"safe_action": 0}, "SafeAction"),
        ({"threshold": 0.0}, "no slack"),
        ({"threshold": np.nan}, "finite"),
        ({"noise": 0.0}, "noise"),
        ({"noise": [0.1, 0.1, 0.1]}, "3 entries"),
        ({"delta": 1.0}, "delta"),
        ({"method": "magic"}, "'pointwise', 'rows'"),
        ({"method": "exact"}, "ExactOPNLB of stagewise_reproduction.exact"),
        ({"optimism": "none"}, "'inflated', 'directional'"),
        ({"optimism": "directional", "method": "rows"}, "only the method 'pointwise'"),
        ({"reward_scale": -0.1}, "at least 0"),
        ({"reward_scale": np.inf}, "finite"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with refused(InvalidProblem, words):
        OPNLB(**{**BASE, **changes})


def test_a_safe_action_without_features_is_refused_where_they_are_needed() -> None:
    with refused(InvalidProblem, "give its features"):
        OPNLB(**{**FEATURED, "safe_action": SAFE})


@pytest.mark.parametrize(
    ("settings", "actions", "words"),
    [
        (BASE, Arms(4), "3 arms"),
        (BASE, GRID, "Arms(3)"),
        (FEATURED, Arms(3), "no features"),
        (FEATURED, [[0.1, 0.2]], "2 features"),
        (FEATURED, [[np.nan]], "nan"),
        (FEATURED, [], "shape"),
        (FEATURED, [[-1.0]], "function 1"),
    ],
)
def test_bad_actions_are_refused_in_one_sentence(settings: dict[str, Any], actions: Any, words: str) -> None:
    policy = OPNLB(**settings)
    with refused(InvalidActions, words):
        policy.decide(policy.start(), actions)
