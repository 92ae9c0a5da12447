"""How close to its limits a policy plays: rounds at the limit are counted one by one, and told on the page."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FIXED, POLICY, certified

import stagewise as sw
from stagewise.engine.loop import build_loop
from stagewise.problem.errors import ErrorCode
from stagewise.reports.certificate_page import list_margins
from stagewise.simulation.certify import measure_closeness
from stagewise.simulation.oracle import PolicyWorlds

PLAN: dict[str, Any] = {"rounds": 40, "seed": 5, "backend": "cpu"}


def test_rounds_at_the_limit_are_those_that_simulate_plays() -> None:
    found = measure_closeness(PolicyWorlds(POLICY, FIXED), PLAN, 150)
    result = sw.simulate(POLICY, FIXED, rounds=40, runs=3, seed=5, record_points=40, progress=False)
    left = 0.3 - result.cost[:, :, 0]
    assert (found["runs"], found["rounds"]) == (3, 120)
    assert found["limits"][0]["met"] == int((np.abs(left) < 1e-9).sum())
    assert found["limits"][0]["left"] == pytest.approx(left.mean())


def test_a_certificate_needs_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one would be compiled for as long again."""
    loops = []
    monkeypatch.setattr(
        "stagewise.simulation.compiled_run.build_loop", lambda *form: loops.append(form) or build_loop(*form)
    )
    certified(rounds=10, runs=100)
    assert len(loops) > 100
    assert len(set(loops)) == 1


def test_a_limit_from_below_is_met_from_above() -> None:
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.5)
    world = sw.ArmsWorld(reward=[0.1, 0.4], cost=[0.5, 0.9])
    policy = sw.AlwaysSafe(safe_action=safe, threshold={"stay": sw.AtLeast(0.4)})
    (one,) = measure_closeness(PolicyWorlds(policy, world), PLAN, 50)["limits"]
    assert (one["met"], one["left"]) == (0, pytest.approx(0.1))


def exact(**changes: Any) -> dict[str, Any]:
    """Return a certificate whose every run meets its limit exactly, or almost."""
    content = certified(rounds=10, runs=100, stop_early=False).content
    content["margins"]["cost"]["quantiles"] = dict.fromkeys(content["margins"]["cost"]["quantiles"], 4e-15) | changes
    return content


def test_the_table_of_margins_has_the_worst_cost_the_distances_and_the_rounds_at_the_limit() -> None:
    content = exact(**{"0": -0.02, "1": 0.2})
    content["closeness"] = {"runs": 2, "rounds": 20, "limits": [{"met": 5, "left": 0.125}]}
    rows = list_margins(content)
    assert [row[0] for row in rows] == ["cost", *[""] * 6]
    assert [row[2] for row in rows] == ["0.32", "-0.02", "0", "0", "0.2", "25 %", "0.125"]
    del content["closeness"]
    assert len(list_margins(content)) == 5


@pytest.mark.parametrize("name", ["", 3, "x" * 201])
def test_a_name_must_fit_a_heading(name: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.INVALID_NAME):
        certified(name=name)


def test_time_to_compile_is_told_apart_from_time_to_play() -> None:
    made = certified(rounds=10, runs=100, name=" Spring\n campaign ").content["made"]
    assert made["name"] == "Spring campaign"
    assert made["compile_seconds"] >= 0.0
    assert made["seconds"] >= 0.0
