"""Convex sets in simulations, and in files that ask for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPLB,
    ROFUL,
    AlwaysSafe,
    BallSet,
    BoxSet,
    EllipsoidSet,
    InvalidFile,
    InvalidProblem,
    LinearWorld,
    PolytopeSet,
    SafeAction,
    simulate,
)
from stagewise.cli.spec import read_spec
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.oracle import build_oracle

SETS: dict[str, Any] = {
    "ball": BallSet(1.0),
    "ellipsoid": EllipsoidSet(np.diag([1.0, 0.5])),
    "box": BoxSet([-0.7, -0.7], [0.7, 0.7]),
    "polytope": PolytopeSet([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]),
}
SAFE = SafeAction(features=np.zeros(2))


def world(actions: Any) -> LinearWorld:
    return LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=actions, noise=0.1)


@pytest.mark.long
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("actions", SETS.values(), ids=SETS)
def test_a_run_is_safe_and_its_regret_is_against_the_whole_set(kind: Any, actions: Any) -> None:
    result = simulate(kind(safe_action=SAFE, threshold=0.3, noise=0.1), world(actions), rounds=15, progress=False)
    assert result.violations.tolist() == [0]
    assert np.all(np.diff(result.regret[0]) >= -1e-7)
    assert result.manifest["backend"] == "python"


def test_the_best_of_a_ball_is_known() -> None:
    policy = LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.1)
    angles = np.linspace(0.0, 2.0 * np.pi, 200_001)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    points *= np.minimum(1.0, 0.3 / np.maximum(points @ [0.8, 0.6], 1e-9))[:, np.newaxis]
    ball = world(BallSet(1.0))
    assert build_oracle(policy, ball).best(ball.actions) == pytest.approx((points @ [0.6, 0.8]).max(), abs=1e-4)
    free = build_oracle(AlwaysSafe(safe_action=SAFE, threshold=5.0), ball)
    assert free.best(ball.actions) == pytest.approx(1.0)


def test_mixtures_play_a_polytope_in_a_simulation() -> None:
    policy = OPLB(safe_action=SAFE, threshold=0.3, noise=0.1)
    result = simulate(policy, world(SETS["polytope"]), rounds=20, progress=False)
    assert result.violations.tolist() == [0]


@pytest.mark.parametrize("actions", SETS.values(), ids=SETS)
def test_a_description_is_plain_json(actions: Any) -> None:
    plain = json.loads(json.dumps(world(actions).description()))
    assert plain["actions"] == type(actions).__name__
    assert plain["features"]["kind"] == type(actions).__name__.removesuffix("Set").lower()


def test_a_set_of_another_dimension_than_the_world_is_refused() -> None:
    with refused(InvalidProblem, ErrorCode.DIMENSION_MISMATCH):
        world(BallSet(1.0, np.zeros(3)))


FILE = """
[simulation]
rounds = 5

[world]
kind = "linear"
reward = [0.6, 0.8]
cost = [0.8, 0.6]
noise = 0.1

[world.actions]
{actions}

[policy]
kind = "ROFUL"
safe_action = {{features = [0.0, 0.0]}}
threshold = 0.3
noise = 0.1
mean_cost_bound = 2.0
bounds_solver_gap = false
"""
GOOD = {
    'kind = "ball"\nradius = 1.0': BallSet,
    'kind = "ball"\nradius = 1.0\ncenter = [0.1, 0.0]': BallSet,
    'kind = "ellipsoid"\nshape = [[1.0, 0.0], [0.0, 2.0]]': EllipsoidSet,
    'kind = "box"\nlow = [-0.7, -0.7]\nhigh = [0.7, 0.7]': BoxSet,
    'kind = "polytope"\nvertices = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]': PolytopeSet,
    'kind = "polytope"\nA = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]\nb = [1.0, 1.0, 1.0]': PolytopeSet,
}
BAD = {
    'kind = "ball"': "radius",
    'kind = "ball"\nradius = 1.0\nlow = [0.0, 0.0]': "low",
    'kind = "ball"\nradius = -1.0': "-1.0",
    'kind = "box"\nlow = [0.0, 0.0]': "high",
    'kind = "polytope"\nA = [[1.0, 0.0]]': "vertices",
    'kind = "rays"\nfeatures = [[1.0, 0.0]]\nradius = 1.0': "radius",
}


@pytest.mark.long
@pytest.mark.parametrize(("text", "kind"), GOOD.items())
def test_a_file_may_ask_for_a_convex_set(text: str, kind: type, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(FILE.format(actions=text))
    spec = read_spec(path)
    assert isinstance(spec.world.actions, kind)
    (policy,) = spec.policies.values()
    assert simulate(policy, spec.world, rounds=3, progress=False).violations.tolist() == [0]


@pytest.mark.parametrize(("text", "part"), BAD.items())
def test_a_file_that_asks_for_no_set_is_refused(text: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(FILE.format(actions=text))
    with refused(InvalidFile, ErrorCode.FILE_INVALID, part):
        read_spec(path)
