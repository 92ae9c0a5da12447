"""ROFUL: rays compared at their longest plausible step, and the safe part of it played."""

import numpy as np
import pytest
from tests.policies.reading import BASELINES, Reading, decided, longest, random_problem, reading_of
from tests.sizes import sized

from stagewise import LCLUCB, ROFUL, RandomKey, SafeAction
from stagewise.engine.compile import Floats
from stagewise.policies.policy import PlayedAction


def directional(reading: Reading, targets: Floats) -> tuple[int | None, float]:
    """Return the ray and step by spec 5, "in our notation": slopes along v = x − x₀ beside a known safe action."""
    slack, best, chosen = reading.slack, 0.0, (None, 0.0)
    for ray, target in enumerate(targets):
        way = target - reading.safe
        estimates = np.array([fit.estimates(way) for fit in reading.costs])
        doubts = np.array([beta * fit.widths(way) for fit, beta in reading.each_cost()])
        dear = np.minimum(estimates + doubts, reading.ceilings - (reading.thresholds - slack))
        cheap = estimates - doubts
        hope = reading.reward.estimates(way) + reading.radii[0] * reading.reward.widths(way)
        reach = min([1.0, *(slack / cheap)[cheap > slack]])
        if reach * hope > best:
            best, chosen = reach * hope, (ray, min([reach, *(slack / dear)[dear > slack]]))
    return chosen


@sized(15, 40)
@pytest.mark.parametrize("mean_cost_bound", [None, 0.85])
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("baseline", ["origin", "known"])
def test_roful_is_the_specified_formula(
    baseline: str, constraints: int, mean_cost_bound: float | None, size: int
) -> None:
    for seed in range(size):
        problem = random_problem(seed, baseline, constraints)
        decision = decided(ROFUL, problem, mean_cost_bound=mean_cost_bound)
        ray, step = directional(reading_of(problem, mean_cost_bound=mean_cost_bound), problem.targets)
        assert decision.action_index == ray
        assert decision.step_size == pytest.approx(step, rel=1e-9)


@pytest.mark.long
@sized(10, 60)
@pytest.mark.parametrize("baseline", BASELINES)
def test_roful_compares_rays_at_their_longest_plausible_step_and_plays_the_safe_part(baseline: str, size: int) -> None:
    cut = 0
    for seed in range(size):
        problem = random_problem(seed, baseline, 3)
        reading, decision = reading_of(problem), decided(ROFUL, problem)
        plausible = [longest(reading.is_plausible, target) for target in problem.targets]
        ends = [reading.along(target, step) for target, step in zip(problem.targets, plausible, strict=True)]
        hopes = [float(reading.optimistic_reward(end, lift=0.0)) for end in [*ends, reading.safe]]
        best = int(np.argmax(hopes))
        assert decision.action_index == (best if best < len(ends) else None)
        if decision.action_index is not None:
            safe = longest(reading.is_safe, problem.targets[best])
            assert decision.step_size == pytest.approx(min(safe, plausible[best]), abs=1e-9)
            assert decision.optimistic_reward == pytest.approx(hopes[best], rel=1e-8)
            cut += plausible[best] < 1.0
    assert cut > 0


def test_roful_steps_no_farther_than_is_plausible_though_a_bound_on_mean_costs_would_let_it() -> None:
    safe = SafeAction(features=np.zeros(2))
    policy = ROFUL(safe_action=safe, threshold=0.5, noise=0.01, mean_cost_bound=0.6, check_assumptions=False)
    state = policy.start()
    for _ in range(2000):  # costs above the bound that was promised
        state = policy.learn_in_place(state, PlayedAction(np.array([1.0, 0.0])), np.array([0.9, 1.0]))
    decision = policy.decide(state, [[1.0, 0.0]], RandomKey())
    assert 0.5 < decision.step_size < 0.55 < 0.5 / 0.6


def test_roful_is_lc_lucb_with_directional_optimism() -> None:
    problem = random_problem(4, "known", 3)
    one, other = decided(ROFUL, problem), decided(LCLUCB, problem, optimism="directional")
    assert (one.action_index, one.step_size, one.optimistic_reward) == (
        other.action_index,
        other.step_size,
        other.optimistic_reward,
    )
    with pytest.raises(TypeError):
        ROFUL(**problem.settings, optimism="inflated")
