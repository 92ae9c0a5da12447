"""Costs in a world by name meet the limits of their names, whatever the order in which either is written."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import called, spec

import stagewise as sw

HEAD = "[simulation]\nrounds = 60\nruns = 2\n"
ARMS = """
[world]
kind = "arms"
reward = [0.0, 0.5, 0.9]
{noise}
[world.cost]
{first}
{second}
[policy]
kind = "OPB"
arms = 3
safe_action = {{ arm = 0, reward = 0.0, cost = {{ complaint = 0.0, opt_out = 0.0 }} }}
threshold = {limits}
"""
OPT_OUT, COMPLAINT = "opt_out = [0.0, 0.02, 0.6]", "complaint = [0.0, 0.3, 0.1]"
LIMITS = ["{ opt_out = 0.4, complaint = 0.2 }", "{ complaint = 0.2, opt_out = 0.4 }"]
NOISE = 'outcomes = "clipped-gaussian"\nnoise = { complaint = 0.2, reward = 0.3, opt_out = 0.1 }'


def played(tmp_path: Path, first: str, second: str, limits: str, noise: str = "") -> tuple[int, str, Path]:
    text = HEAD + ARMS.format(first=first, second=second, limits=limits, noise=noise)
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    code, said = called("simulate", spec(tmp_path, text), "--out", out, "--quiet")
    return code, said, out


@pytest.mark.parametrize("noise", ["", NOISE], ids=["rates", "noise by name"])
def test_the_order_in_which_costs_and_limits_are_written_changes_nothing(noise: str, tmp_path: Path) -> None:
    largest = []
    for limits in LIMITS:
        pair = []
        for first, second in ((OPT_OUT, COMPLAINT), (COMPLAINT, OPT_OUT)):
            code, said, out = played(tmp_path, first, second, limits, noise)
            assert code == 0, said
            pair.append(sw.Result.load(out))
        assert (pair[0].cost == pair[1].cost).all()
        assert (pair[0].regret == pair[1].regret).all()
        names = list(pair[0].manifest["thresholds"])
        largest.append(dict(zip(names, pair[0].max_cost.max(axis=0).tolist(), strict=True)))
    for told in largest:
        assert 0.0 < told["opt_out"] <= 0.4
        assert 0.0 < told["complaint"] <= 0.2


@pytest.mark.parametrize(
    ("first", "noise", "parts"),
    [
        ("optout = [0.0, 0.02, 0.6]", "", ["'optout'", "'opt_out'?"]),
        ("opt_out = [0.0, 0.02]", "", ["'opt_out' (2,)", "must agree"]),
        ("reward = [0.0, 0.02, 0.6]", "", ["'reward', 'complaint'", "unique"]),
        (OPT_OUT, NOISE.replace("reward", "rewrd"), ["in noise", "did you mean 'reward'?"]),
    ],
)
def test_a_name_that_no_limit_has_is_refused(first: str, noise: str, parts: list[str], tmp_path: Path) -> None:
    code, said, out = played(tmp_path, first, COMPLAINT, LIMITS[0], noise)
    assert code == 2
    for part in parts:
        assert part in said
    assert not out.exists()


def test_limits_without_names_are_taken_in_order(tmp_path: Path) -> None:
    text = HEAD + ARMS.format(first=OPT_OUT, second=COMPLAINT, limits="[0.4, 0.2]", noise="")
    text = text.replace("{ complaint = 0.0, opt_out = 0.0 }", "[0.0, 0.0]")
    assert called("simulate", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")[0] == 0


def test_a_problem_meets_its_costs_by_name_and_so_does_a_certificate(tmp_path: Path) -> None:
    text = """
    [simulation]
    rounds = 20
    [problem]
    action_names = ["nothing", "offer"]
    safe_name = "nothing"
    context = ["age"]
    reward = { name = "click" }
    limits.complaint = { at_most = 0.2, safe_bound = 0.1, model = "rates" }
    limits.opt_out = { at_most = 0.5, safe_bound = 0.3, model = "rates" }
    [world]
    kind = "context"
    features = "plain"
    reward = [[0.1, 0.0], [0.2, 0.1]]
    [world.cost]
    opt_out = [[0.2, 0.0], [0.4, 0.0]]
    complaint = [[0.05, 0.0], [0.1, 0.0]]
    """
    file = spec(tmp_path, text)
    assert called("simulate", file, "--out", tmp_path / "out", "--quiet")[0] == 0
    result = sw.Result.load(tmp_path / "out")
    assert list(result.manifest["thresholds"]) == ["complaint", "opt_out"]
    np.testing.assert_allclose(result.cost[0, 0], [0.05, 0.2])  # the first round is the safe action
    claim = ("--runs", 20, "--exhaustive", "--delta", 0.9, "--confidence", 0.5, "--quiet")
    assert called("certify", file, "--out", tmp_path / "page", *claim)[0] == 0
    assert called("certify", "--verify", tmp_path / "page" / "certificate.json", "--fraction", 1)[0] == 0


def test_a_world_can_be_built_again_from_what_it_says_of_itself() -> None:
    from stagewise.worlds.world_families import build_world

    zeros = [[0.0, 0.0], [0.0, 0.0]]
    world = sw.ContextWorld(
        reward=[[0.1, 0.0], [0.2, 0.1]],
        cost={"a": [[0.2, 0.0], [0.4, 0.0]], "b": [[0.05, 0.0], [0.1, 0.0]]},
        noise={"b": 0.2, "a": 0.1, "reward": 0.3},
        outcomes="gaussian",
        segments=[0.5, 0.5],
        segment_offsets={"reward": zeros, "b": zeros, "a": [[0.0, 0.1], [0.0, 0.0]]},
    )
    again = build_world(world.description())
    assert again.description() == world.description()
    turned = world.reorder_costs(("b", "a"))
    assert turned.noise.tolist() == [0.3, 0.2, 0.1]
    assert (turned.parameters == world.parameters[[0, 2, 1]]).all()
    assert world.reorder_costs(("a", "b")) is world
