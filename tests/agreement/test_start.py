"""Runs from what was learned before, among listed users: in Python and compiled they are the same to the bit."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import same
from tests.simulation.test_start import FRAME, PROBLEM, learned, users

import stagewise as sw

pytestmark = pytest.mark.compiled


def test_a_problem_goes_on_from_an_agent_and_from_a_log() -> None:
    plan: dict[str, Any] = {"rounds": 400, "runs": [0, 3], "seed": 5, "record": 40}
    agent = learned()
    runs = [
        sw.simulate(PROBLEM, users(), start=start, backend=backend, **plan)
        for start, backend in ((agent, "cpu"), (agent, "python"), (FRAME, "cpu"))
    ]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])
    assert not np.array_equal(runs[0].reward, sw.simulate(PROBLEM, users(), **plan).reward)
