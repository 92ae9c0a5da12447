"""A sweep goes through limits by name: every value of a list, every combination of several."""

from pathlib import Path

import pytest
from tests.cli.commands import called, spec

import stagewise as sw

TEXT = """
[simulation]
rounds = 30
[world]
kind = "arms"
reward = [0.0, 0.5, 0.9]
[world.cost]
complaint = [0.0, 0.3, 0.1]
opt_out = [0.0, 0.02, 0.6]
[policy]
kind = "OPB"
arms = 3
safe_action = { arm = 0, reward = 0.0, cost = [0.0, 0.0] }
threshold = { opt_out = 0.4, complaint = 0.2 }
[sweep.limits]
"""
PROBLEM = """
[simulation]
rounds = 20
[problem]
action_names = ["nothing", "offer"]
safe_name = "nothing"
reward = { name = "click" }
[problem.limits]
spend = { at_most = 3.0, high = 10.0, safe_bound = 0.5 }
kept = { at_least = 0.5, safe_bound = 0.9 }
[world]
kind = "context"
features = "plain"
reward = [[0.1], [0.2]]
cost = { kept = [[0.95], [0.9]], spend = [[0.05], [0.3]] }
[sweep.limits]
"""


def swept(tmp_path: Path, text: str) -> tuple[int, str]:
    return called("sweep", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")


def thresholds_below(folder: Path) -> list[dict[str, float]]:
    found = sorted(path.parent for path in folder.glob("*/*/*/*/manifest.json"))
    return [sw.Result.load(place).manifest["thresholds"] for place in found]


def test_every_combination_is_played_and_named(tmp_path: Path) -> None:
    code, said = swept(tmp_path, TEXT + "opt_out = [0.1, 0.4]\ncomplaint = [0.05, 0.15, 0.2]")
    assert code == 0, said
    rows = [line for line in said.splitlines() if line.startswith("| policy, world")]
    assert len(rows) == 6
    assert "| policy, world, opt_out 0.1, complaint 0.05, seed 0 |" in rows[0]
    told = thresholds_below(tmp_path / "out")
    assert len({tuple(sorted(one.items())) for one in told}) == 6
    for one in told:
        assert set(one) == {"opt_out", "complaint"}


def test_limits_that_are_not_named_stay(tmp_path: Path) -> None:
    code, said = swept(tmp_path, TEXT + "opt_out = [0.1, 0.2]")
    assert code == 0, said
    assert thresholds_below(tmp_path / "out") == [
        {"opt_out": 0.1, "complaint": 0.2},
        {"opt_out": 0.2, "complaint": 0.2},
    ]


def test_a_problem_has_them_in_its_own_units_and_directions(tmp_path: Path) -> None:
    code, said = swept(tmp_path, PROBLEM + "spend = [2, 5]\nkept = [0.4]")
    assert code == 0, said
    assert thresholds_below(tmp_path / "out") == [{"spend": 0.2, "kept": 0.4}, {"spend": 0.5, "kept": 0.4}]
    one = sw.Result.load(next((tmp_path / "out").glob("*/*/*/*/manifest.json")).parent)
    assert one.violations.sum() == 0  # 0.9 is at least 0.4: read as "at most" it would break in every round


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ("optout = [0.1]", ["'optout'", "did you mean 'opt_out'?"]),
        ("opt_out = [0.1, 0.1]", ["unique"]),
        ("opt_out = []", ["need entries"]),
        ("opt_out = 0.1", ["opt_out", "list"]),
        ("opt_out = [2]", ["2 % is 0.02"]),
        ("opt_out = ['a']", ["limits of 'opt_out'", "must be a number"]),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(more: str, parts: list[str], tmp_path: Path) -> None:
    code, said = swept(tmp_path, TEXT + more)
    assert code == 2
    for part in parts:
        assert part in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_each_cell_is_what_simulate_plays() -> None:
    safe = sw.SafeAction(arm=0, reward=0.0, cost=[0.0, 0.0])
    policy = sw.OPB(arms=2, safe_action=safe, threshold={"a": 0.2, "b": sw.AtLeast(-0.5)}, noise=0.5)
    world = sw.ArmsWorld(reward=[0.0, 0.9], cost={"b": [0.0, 0.1], "a": [0.0, 0.5]}, outcomes="gaussian")
    cells = sw.sweep(policies={"p": policy}, worlds={"w": world}, limits={"b": [-0.4, -0.3]}, rounds=30, progress=False)
    assert [str(cell) for cell in cells] == ["p, w, b -0.4, seed 0", "p, w, b -0.3, seed 0"]
    for cell, result in cells.items():
        (_, value) = cell.limits[0]
        same = sw.OPB(arms=2, safe_action=safe, threshold={"a": 0.2, "b": sw.AtLeast(value)}, noise=0.5)
        assert (sw.simulate(same, world, rounds=30, progress=False).regret == result.regret).all()
