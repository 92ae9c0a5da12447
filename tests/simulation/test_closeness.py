"""How close to its limits a policy plays: rounds at the limit are counted one by one, and told on the page."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FIXED, POLICY, certified

import stagewise as sw
from stagewise.engine.loop import build_loop
from stagewise.problem.errors import ErrorCode
from stagewise.reports.certificate_text import describe_margins
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


def test_a_limit_that_is_met_exactly_is_told_so() -> None:
    content = exact()
    content["closeness"] = {"runs": 2, "rounds": 20, "limits": [{"met": 5, "left": 0.125}]}
    words = describe_margins(content)
    assert "was exactly the limit of 0.3." in words[0]
    assert "All 100 runs met it exactly" in words[0]
    assert "Of 20 rounds of the first 2 runs, 25 % were exactly at the limit" in words[0]
    assert "the mean distance to it was 0.125" in words[0]
    assert words[1].startswith("A limit that is met exactly is kept")


def test_runs_that_broke_a_limit_are_told_beside_those_that_met_it() -> None:
    content = exact(**{"0": -0.02})
    content["violations"]["occurrences"] = 1
    words = describe_margins(content)[0]
    assert "was 0.32, 0.02 beyond the limit of 0.3" in words
    assert "All 99 runs that did not break it met it exactly" in words


def test_where_some_runs_have_room_left_the_share_of_the_others_is_told() -> None:
    words = describe_margins(exact(**{"0.9": 0.1, "0.99": 0.1, "1": 0.2}))[0]
    assert "at least 50 % of runs met it exactly; the largest distance was 0.2" in words


def test_runs_that_break_a_limit_are_told_by_how_much() -> None:
    broken = exact(**dict.fromkeys(["0", "0.01", "0.1", "0.5", "0.9", "0.99"], -0.2), **{"1": -0.1})
    assert "the median run was 0.2 beyond it, and the best run 0.1 beyond." in describe_margins(broken)[0]


def test_a_certificate_of_before_says_nothing_of_rounds() -> None:
    content = exact()
    del content["closeness"]
    assert "rounds of the first" not in describe_margins(content)[0]


@pytest.mark.parametrize("name", ["", 3, "x" * 201])
def test_a_name_must_fit_a_heading(name: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.INVALID_NAME):
        certified(name=name)


def test_time_to_compile_is_told_apart_from_time_to_play() -> None:
    made = certified(rounds=10, runs=100, name=" Spring\n campaign ").content["made"]
    assert made["name"] == "Spring campaign"
    assert made["compile_seconds"] >= 0.0
    assert made["seconds"] >= 0.0
