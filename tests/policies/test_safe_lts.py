"""Safe-LTS plays LC-LUCB's safe steps, and ranks them by one parameter drawn from the numbers of its round."""

import math
from typing import Any

import numpy as np
import pytest
from tests.policies.reading import BASELINES, Problem, Reading, random_problem, reading_of
from tests.problem.refusal import refused
from tests.sizes import sized

from stagewise import LCLUCB, InvalidProblem, RandomKey, RaySet, SafeAction, SafeLTS
from stagewise.engine.compile import Floats
from stagewise.engine.random import POLICY, normal
from stagewise.problem.errors import ErrorCode
from stagewise.records.decision import Decision

SEEDS = range(4)
DRAW = RandomKey(11, 3, 42)


def decided(problem: Problem, draw: RandomKey = DRAW, targets: Any = None, **more: Any) -> Decision:
    policy, state = problem.ready(SafeLTS, **more)
    return policy.decide(state, problem.targets if targets is None else targets, draw)


def learned_axes(safe: Floats, known: bool) -> Floats:
    """Return an orthonormal basis (d, n) of what is learned of the reward: a reflection of x₀ onto the last axis."""
    d = safe.size
    if not known or not safe.any():
        return np.eye(d)
    mirror = safe / np.linalg.norm(safe)
    mirror[-1] += math.copysign(1.0, mirror[-1])
    return (np.eye(d) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror))[:, :-1]


def sampled(problem: Problem, reading: Reading, inflation: float, draw: RandomKey) -> Floats:
    """Return θ̃ = θ̂ + inflation · β_r Uη, with V⁻¹ = UUᵀ, U upper triangular, and η the round's normal numbers."""
    safe = problem.settings["safe_action"]
    axes = learned_axes(safe.features, safe.reward is not None)
    learned = problem.actions @ axes
    inverse = np.linalg.inv(problem.settings["ridge"] * np.eye(axes.shape[1]) + learned.T @ learned)
    factor = np.linalg.cholesky(inverse[::-1, ::-1])[::-1, ::-1]
    numbers = np.array([normal(draw.seed, draw.run, draw.round, POLICY, i) for i in range(axes.shape[1])])
    return reading.reward.parameter + inflation * reading.radii[0] * axes @ factor @ numbers


def inflation_of(kind: str, problem: Problem, reading: Reading) -> float:
    if kind == "theory":
        return 1.0 + 2.0 / float(reading.slack.min())
    return 1.0 if kind == "none" else math.sqrt(reading.reward.dimension) / min(1.0, *problem.settings["threshold"])


@pytest.mark.long
@sized((5, 1), (40, 3))
@pytest.mark.parametrize("inflation", ["theory", "none", "authors"])
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_ray_is_the_best_for_the_parameter_drawn_from_the_rounds_numbers(
    baseline: str, inflation: str, size: tuple[int, int]
) -> None:
    chosen = set()
    for seed in range(size[0]):
        problem = random_problem(seed, baseline, 3)
        problem.settings["threshold"] = np.maximum(problem.settings["threshold"], 0.05)
        reading = reading_of(problem)
        theta = sampled(problem, reading, inflation_of(inflation, problem, reading), DRAW)
        ends = [reading.along(x, step) for x, step in zip(problem.targets, steps_on_rays(problem), strict=True)]
        values = [float(theta @ end) for end in [*ends, reading.safe]]
        decision, best = decided(problem, inflation=inflation), int(np.argmax(values))
        assert decision.action_index == (best if best < len(ends) else None)
        assert decision.optimistic_reward == pytest.approx(values[best], rel=1e-8, abs=1e-9)
        np.testing.assert_allclose(decision.action, [*ends, reading.safe][best], rtol=0.0, atol=1e-9)
        chosen.add(decision.action_index)
    assert len(chosen) > size[1]


def steps_on_rays(problem: Problem) -> list[float]:
    """Return LC-LUCB's steps, as its table shows them: there are no more rays than it shows."""
    policy, state = problem.ready(LCLUCB)
    steps = {row.label: row.weight for row in policy.decide(state, problem.targets, RandomKey())._table().rows}
    return [float(steps[f"ray {ray}"]) for ray in range(len(problem.targets))]


@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_safe_steps_are_lc_lucbs(baseline: str, constraints: int) -> None:
    for seed in SEEDS:
        problem = random_problem(seed, baseline, constraints)
        policy, state = problem.ready(SafeLTS)
        steps = steps_on_rays(problem)
        for row in policy.decide(state, problem.targets, DRAW)._table().rows[:-1]:
            assert row.weight == steps[int(row.label.split()[1])]


def hoped_of_ray(policy: SafeLTS, state: Any, target: Floats, draw: RandomKey) -> float:
    return float(policy.decide(state, target[np.newaxis], draw)._table().rows[0].optimistic_reward)


@pytest.mark.long
def test_sampled_values_spread_as_the_posterior_does() -> None:
    """Over 4,000 rounds mean and variance of <x, θ̃> are <x, θ̂> and (β ‖x‖)², within five standard errors."""
    problem = random_problem(5, "known")
    reading, target = reading_of(problem), problem.targets[0]
    policy, state = problem.ready(SafeLTS, inflation="none", threshold=np.array([50.0]))
    hopes = np.array([hoped_of_ray(policy, state, target, RandomKey(1, 0, round_)) for round_ in range(4000)])
    spread = float(reading.radii[0] * reading.reward.widths(target))
    assert abs(hopes.mean() - float(reading.reward.estimates(target))) < 5.0 * spread / math.sqrt(4000)
    assert abs(hopes.var() / spread**2 - 1.0) < 5.0 * math.sqrt(2.0 / 4000)


def test_of_equal_rays_the_first_is_played_and_masks_are_respected() -> None:
    problem = random_problem(6, "origin", 3)
    decision = decided(problem)
    assert decision.action_index is not None
    twice = np.repeat(problem.targets, 2, axis=0)
    assert decided(problem, targets=twice).action_index == 2 * decision.action_index
    rest = [ray for ray in range(5) if ray != decision.action_index]
    assert decided(problem, targets=RaySet(problem.targets).only(rest)).action_index in {None, *rest}


def test_a_draw_that_finds_no_ray_good_plays_the_safe_action() -> None:
    policy = SafeLTS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    decisions = [policy.decide(policy.start(), [[1.0, 0.0]], RandomKey(0, 0, round_)) for round_ in range(200)]
    away = [decision for decision in decisions if decision.action_index is None]
    assert 60 < len(away) < 140  # the sampled slope is as often negative as positive
    assert all(decision.optimistic_reward == 0.0 and not decision.action.any() for decision in away)


def test_unknown_inflations_and_optimism_are_refused() -> None:
    safe = SafeAction(features=np.zeros(2))
    with refused(InvalidProblem, ErrorCode.INVALID_CHOICE):
        SafeLTS(safe_action=safe, threshold=0.5, noise=0.1, inflation="paper")
    with pytest.raises(TypeError, match="optimism"):
        SafeLTS(safe_action=safe, threshold=0.5, noise=0.1, optimism="directional")
