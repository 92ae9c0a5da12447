"""How close to its limits a policy plays: rounds at the limit are counted one by one, and told on the page."""

from typing import Any

import numpy as np
import pytest
from tests.simulation.certified import FIXED, POLICY, certified

import stagewise as sw
from stagewise.kernels.loop.play import play_for
from stagewise.reports.certificate_nearness import how_close
from stagewise.simulation.closeness import closeness
from stagewise.simulation.pairs import Pairs

PLAN: dict[str, Any] = {"rounds": 40, "seed": 5, "backend": "cpu"}


def test_rounds_at_the_limit_are_those_that_simulate_plays() -> None:
    found = closeness(Pairs(POLICY, FIXED), PLAN, 150)
    result = sw.simulate(POLICY, FIXED, rounds=40, runs=3, seed=5, record=40, progress=False)
    left = 0.3 - result.cost[:, :, 0]
    assert (found["runs"], found["rounds"]) == (3, 120)
    assert found["limits"][0]["met"] == int((np.abs(left) < 1e-9).sum())
    assert found["limits"][0]["left"] == pytest.approx(left.mean())


def test_a_certificate_needs_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one would be compiled for as long again."""
    loops = []
    monkeypatch.setattr("stagewise.simulation.compiled.play_for", lambda *form: loops.append(form) or play_for(*form))
    certified(rounds=10, runs=100)
    assert len(loops) > 100
    assert len(set(loops)) == 1


def test_a_limit_from_below_is_met_from_above() -> None:
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.5)
    world = sw.ArmsWorld(reward=[0.1, 0.4], cost=[0.5, 0.9])
    policy = sw.AlwaysSafe(safe_action=safe, threshold={"stay": sw.AtLeast(0.4)})
    (one,) = closeness(Pairs(policy, world), PLAN, 50)["limits"]
    assert (one["met"], one["left"]) == (0, pytest.approx(0.1))


def exact(**changes: Any) -> dict[str, Any]:
    """Return a certificate whose every run meets its limit exactly, or almost."""
    content = certified(rounds=10, runs=100, early=False).content
    content["margins"]["cost"]["quantiles"] = dict.fromkeys(content["margins"]["cost"]["quantiles"], 4e-15) | changes
    return content


def test_a_limit_that_is_met_exactly_is_told_so() -> None:
    content = exact()
    content["closeness"] = {"runs": 2, "rounds": 20, "limits": [{"met": 5, "left": 0.125}]}
    words = how_close(content)
    assert "was exactly the limit of 0.3." in words[0]
    assert "All 100 runs met it exactly" in words[0]
    assert "Of 20 rounds of the first 2 runs, 25 % were exactly at the limit" in words[0]
    assert "0.125 to it on average" in words[0]
    assert words[1].startswith("Met is not broken")


def test_runs_that_broke_a_limit_are_told_beside_those_that_met_it() -> None:
    content = exact(**{"0": -0.02})
    content["violations"]["happened"] = 1
    words = how_close(content)[0]
    assert "was 0.32, 0.02 beyond the limit of 0.3" in words
    assert "All 99 runs that did not break it met it exactly" in words


def test_where_some_runs_have_room_left_the_share_of_the_others_is_told() -> None:
    words = how_close(exact(**{"0.9": 0.1, "0.99": 0.1, "1": 0.2}))[0]
    assert "at least 50 % of runs met it exactly; the run with most to spare left 0.2" in words


def test_runs_that_break_a_limit_are_told_by_how_much() -> None:
    broken = exact(**dict.fromkeys(["0", "0.01", "0.1", "0.5", "0.9", "0.99"], -0.2), **{"1": -0.1})
    assert "the middle run was 0.2 beyond it, and the run that did best 0.1 beyond." in how_close(broken)[0]


def test_a_certificate_of_before_says_nothing_of_rounds() -> None:
    content = exact()
    del content["closeness"]
    assert "rounds of the first" not in how_close(content)[0]


@pytest.mark.parametrize("name", ["", 3, "x" * 201])
def test_a_name_must_fit_a_heading(name: Any) -> None:
    with pytest.raises(sw.InvalidProblem, match="name is"):
        certified(name=name)


def test_time_to_compile_is_told_apart_from_time_to_play() -> None:
    made = certified(rounds=10, runs=100, name=" Spring\n campaign ").content["made"]
    assert made["name"] == "Spring campaign"
    assert made["compiling"] >= 0.0
    assert made["seconds"] >= 0.0
