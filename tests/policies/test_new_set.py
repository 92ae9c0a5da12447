"""A new action set is one class and its export: an l1 ball, in everything that takes convex sets."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.cli.commands import called
from tests.exporting import exported
from tests.policies.convex_instances import KINDS, dense_rays, instance_of, learned
from tests.problem.refusal import refused

from stagewise import (
    OPLB,
    ROFUL,
    Agent,
    BoxSet,
    FiniteSet,
    InvalidActions,
    LinearWorld,
    PolytopeSet,
    Result,
    SafeAction,
    SafeLTS,
    certify,
    simulate,
    verify_certificate,
)
from stagewise.problem.checks import Floats, copy_read_only
from stagewise.problem.convex import Convex, build_hull
from stagewise.problem.errors import ErrorCode
from stagewise.rules.relaxation import compute_best_value
from stagewise.simulation.oracle import build_oracle


class Diamond(Convex):
    """The points x with ‖x − center‖₁ ≤ radius."""

    def __init__(self, radius: float, center: Any) -> None:
        self.radius, self.center = float(radius), copy_read_only(np.asarray(center, dtype=float))
        self.longest = float(np.linalg.norm(self.center)) + self.radius
        axes = self.radius * np.eye(self.center.size)
        self.hull = build_hull(self.center + np.vstack([axes, -axes]))

    @property
    def dimension(self) -> int:
        return int(self.center.size)

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the smallest t with <x, s> = radius for a face, whose normal s has ±1 for entries."""
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * self.dimension)).reshape(self.dimension, -1)
        slopes, rooms = directions @ signs, np.maximum(self.radius - (start - self.center) @ signs, 0.0)
        times = np.where(slopes > 1e-14, rooms / np.where(slopes > 1e-14, slopes, 1.0), np.inf).min(axis=1)
        return np.where(np.isfinite(times), times, 0.0)

    def support(self, directions: Floats) -> Floats:
        best = np.argmax(np.abs(directions), axis=1)
        signs = np.where(directions[np.arange(len(best)), best] < 0.0, -1.0, 1.0)
        return self.center + self.radius * signs[:, np.newaxis] * np.eye(self.dimension)[best]

    def description(self) -> dict[str, Any]:
        return {"kind": "diamond", "radius": self.radius, "center": self.center.tolist()}


class Rounded(Diamond):
    """The same set, which says nothing of its hull: the ellipsoid around its sides stands in."""

    def __init__(self, radius: float, center: Any) -> None:
        super().__init__(radius, center)
        del self.hull


def polytope(actions: Diamond) -> PolytopeSet:
    return PolytopeSet(actions.hull.points)


def around(safe: Floats, kind: type[Diamond] = Diamond) -> Diamond:
    room = 1.0 - float(np.linalg.norm(safe))
    return kind(0.7 * room, safe + 0.2 * room / safe.size)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["safe action elsewhere", "three constraints"])
def test_it_is_decided_in_like_the_polytope_that_it_is(name: str, kind: Any) -> None:
    for seed in range(2):
        instance = instance_of(name, seed)
        policy, state = learned(kind, instance)
        actions = around(instance.safe)
        ours, witness = policy.decide(state, actions), policy.decide(state, polytope(actions))
        rays = policy.decide(state, dense_rays(actions, instance.safe, 2000))
        assert ours.optimistic_reward == pytest.approx(witness.optimistic_reward, rel=1e-5)
        assert ours.optimistic_reward + ours.solver_gap == pytest.approx(
            witness.optimistic_reward + witness.solver_gap, rel=1e-5
        )
        assert ours.optimistic_reward >= rays.optimistic_reward - 1e-4
        assert ours.optimistic_reward + ours.solver_gap >= rays.optimistic_reward
        assert np.all(ours.pessimistic_cost <= ours.thresholds)
        assert actions.contains(ours.action)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_hull_of_its_own_it_is_as_safe_and_its_bound_still_holds(kind: Any) -> None:
    instance = instance_of("three constraints", 1)
    policy, state = learned(kind, instance)
    ours = policy.decide(state, around(instance.safe, Rounded))
    exact = policy.decide(state, around(instance.safe))
    assert ours.optimistic_reward + ours.solver_gap >= exact.optimistic_reward
    assert ours.optimistic_reward >= exact.optimistic_reward - 1e-3
    assert np.all(ours.pessimistic_cost <= ours.thresholds)
    assert around(instance.safe).contains(ours.action)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_optimistic_where_every_confidence_set_holds_the_truth(kind: Any) -> None:
    for seed in range(10, 14):
        instance = instance_of("safe action elsewhere", seed)
        assert instance.on_event()
        policy, state = learned(kind, instance)
        decision = policy.decide(state, around(instance.safe))
        truth = (instance.signals[0].truth, instance.costs, instance.thresholds)
        assert (
            decision.optimistic_reward + decision.solver_gap >= compute_best_value(around(instance.safe), *truth) - 1e-9
        )


@pytest.mark.parametrize("kind", [Diamond, Rounded])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_its_best_point_is_that_of_the_polytope(m: int, kind: type[Diamond]) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, m])
        reward, costs, limits = rng.normal(size=3), rng.normal(size=(m, 3)), rng.uniform(0.02, 0.5, size=m)
        actions = kind(1.0, 0.1 * rng.normal(size=3) * (rng.uniform(size=3) < 0.5))
        if np.all(costs @ actions.center <= limits):
            witness = compute_best_value(polytope(Diamond(1.0, actions.center)), reward, costs, limits)
            assert compute_best_value(actions, reward, costs, limits) == pytest.approx(witness, abs=1e-9)


def test_the_best_point_of_a_box_with_too_many_corners_is_that_of_the_linear_program() -> None:
    rng = np.random.default_rng(0)
    low, high = -rng.uniform(0.1, 1.0, size=20), rng.uniform(0.1, 1.0, size=20)
    for m in (1, 2, 4):
        reward, costs, limits = rng.normal(size=20), rng.normal(size=(m, 20)), rng.uniform(0.1, 1.0, size=m)
        witness = -linprog(-reward, costs, limits, bounds=np.column_stack([low, high])).fun
        assert compute_best_value(BoxSet(low, high), reward, costs, limits) == pytest.approx(witness, rel=1e-9)


@pytest.mark.long
def test_a_run_in_it_is_safe_and_measured_against_its_best_point() -> None:
    actions, safe = Diamond(1.0, np.zeros(2)), SafeAction(features=np.zeros(2))
    world = LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=actions, noise=0.1)
    for kind in KINDS:
        policy = kind(safe_action=safe, threshold=0.3, noise=0.1)
        result = simulate(policy, world, rounds=30, progress=False)
        assert result.violations.tolist() == [0]
        assert np.all(np.diff(result.regret[0]) >= -1e-7)
        assert build_oracle(policy, world).best(actions) == pytest.approx(best_of_edges(), abs=1e-4)
    assert world.description()["features"] == actions.description()


def best_of_edges() -> float:
    """Return the largest reward under the limit on the diamond's edges and on the line of the limit, by brute force."""
    angles = np.linspace(0.0, 2.0 * np.pi, 200_001)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    points /= np.abs(points).sum(axis=1, keepdims=True)
    points *= np.minimum(1.0, 0.3 / np.maximum(points @ [0.8, 0.6], 1e-9))[:, np.newaxis]
    return float((points @ [0.6, 0.8]).max())


def test_policies_over_lists_take_its_vertices_and_those_on_rays_refuse_it() -> None:
    actions, safe = Diamond(1.0, np.zeros(2)), SafeAction(features=np.zeros(2))
    policy = OPLB(safe_action=safe, threshold=0.3, noise=0.1)
    ours, witness = (policy.decide(policy.start(), each) for each in (actions, FiniteSet(actions.vertices)))
    assert np.array_equal(ours.action, witness.action)
    with refused(InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        policy.decide(policy.start(), Rounded(1.0, np.zeros(2)))
    sampler = SafeLTS(safe_action=safe, threshold=0.3, noise=0.1)
    with refused(InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        sampler.decide(sampler.start(), actions)


def test_it_travels_to_another_process_and_back() -> None:
    actions = pickle.loads(pickle.dumps(Diamond(0.5, [0.1, 0.2])))
    agent = Agent(KINDS[0](safe_action=SafeAction(features=np.zeros(2)), threshold=0.3, noise=0.1))
    assert actions.contains(agent.decide(actions).action)
    assert Diamond.from_description(actions.description()).contains([0.1, 0.7])
    assert not actions.contains([0.4, 0.5])
    with refused(InvalidActions, ErrorCode.DIMENSION_MISMATCH):
        agent.policy.decide(agent.state, Diamond(1.0, np.zeros(3)))


FILE = """
[simulation]
rounds = 5
[world]
kind = "linear"
reward = [0.6, 0.8]
cost = [0.8, 0.6]
noise = 0.1
actions = { kind = "diamond", radius = 1.0, center = [0.0, 0.0] }
[policy]
kind = "ROFUL"
threshold = 0.3
noise = 0.1
[policy.safe_action]
features = [0.0, 0.0]
"""


def test_with_its_export_commands_files_and_certificates_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with exported(Diamond, "problem.diamond"):
        policy = ROFUL(safe_action=SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.1)
        diamond = Diamond(1.0, [0.0, 0.0])
        world = LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=diamond, noise=0.1)
        Path("diamond.toml").write_text(FILE, encoding="utf-8")
        assert called("simulate", "diamond.toml", "--out", "kept", "--quiet")[0] == 0
        played = simulate(policy, world, rounds=5, progress=False)
        assert Result.load("kept").regret.tolist() == played.regret.tolist()
        agent = Agent(policy)
        agent.learn(agent.decide(diamond), reward=0.1, cost=0.05)
        agent.save("agent.json")
        assert agent.decide(diamond).action.tolist() == Agent.load("agent.json").decide(diamond).action.tolist()
        certify(policy, world, rounds=3, runs=2, out="certificate", progress=False)
        assert verify_certificate("certificate", seed=0, replay_fraction=1.0).stands
