"""Masked arrays are refused wherever numbers come in: NumPy would drop the mask and take what it hid for data."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

MASKED = np.ma.MaskedArray(np.eye(2), mask=[[False, True], [False, False]])
AT_ORIGIN: dict[str, Any] = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.5, "noise": 0.1}


@pytest.mark.parametrize("table", [MASKED, list(MASKED), np.ma.MaskedArray(np.eye(2))], ids=["masked", "rows", "none"])
def test_masked_actions_are_refused(table: Any) -> None:
    for kind in (sw.RaySet, sw.FiniteSet):
        with refused(sw.InvalidActions, ErrorCode.MISSING_VALUE):
            kind(table)
    with refused(sw.InvalidActions, ErrorCode.MISSING_VALUE):
        sw.Agent(sw.LCLUCB(**AT_ORIGIN)).decide(table)
    with refused(sw.InvalidActions, ErrorCode.MISSING_VALUE):
        sw.Agent(sw.LCLUCB(**AT_ORIGIN)).learn_log(table, [0.1, 0.1], [0.1, 0.1])


def test_masked_settings_and_choices_are_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.MISSING_VALUE):
        sw.SafeAction(features=MASKED[0])
    with refused(sw.InvalidProblem, ErrorCode.MISSING_VALUE):
        sw.LCLUCB(**{**AT_ORIGIN, "threshold": np.ma.MaskedArray([0.5, 0.4], mask=[False, True])})
    with refused(sw.InvalidActions, ErrorCode.MISSING_VALUE):
        sw.RaySet(np.eye(2)).only(np.ma.MaskedArray([True, True], mask=[False, True]))
    with refused(sw.InvalidActions, ErrorCode.MISSING_VALUE):
        sw.Agent(sw.UCB(arms=2)).learn_log(np.ma.MaskedArray([0, 1], mask=[False, True]), [0.1, 0.2])


def test_masked_outcomes_are_refused() -> None:
    agent = sw.Agent(sw.LCLUCB(**{**AT_ORIGIN, "threshold": [0.5, 0.4]}))
    decision = agent.decide(np.eye(2))
    with refused(sw.InvalidOutcome, ErrorCode.MISSING_VALUE):
        agent.learn(decision, reward=0.1, cost=np.ma.MaskedArray([0.1, 0.2], mask=[False, True]))
