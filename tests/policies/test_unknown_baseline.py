"""An unknown baseline: the safe action is played until its slack is certain; then all is as safe and hopeful as ever.

The rule and its proofs stand in docs/theory/unknown-baseline.md.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.policies.arm_instances import unit_width
from tests.policies.linear_instances import UNKNOWN, Instance, direction, random_instance
from tests.policies.witness import Belief, Signal, believed, unlucky

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    Agent,
    ArmSet,
    FiniteSet,
    RaySet,
    SafeAction,
    SafeLTS,
    SafePosteriorSampling,
)
from stagewise.engine.compile import Floats
from stagewise.records.reason import Contradiction, FallbackReason

SEED = 20260802
WARMING = FallbackReason.SAFE_ACTION_COST_UNCERTAIN
PATIENCE = 2.0  # P = 1 + α_c: how many half-widths of slack must be certain
LINEAR = [LCLUCB, ROFUL, SafeLTS, OPLB, SafePosteriorSampling]
NOISE, RIDGE, DELTA = 0.1, 0.1, 0.05
ARMS = np.array([[0.2, 0.9, 0.6], [0.1, 0.8, 0.3]])  # mean rewards and costs; the first arm is the safe one
GOLDEN = json.loads((Path(__file__).parents[1] / "golden/unknown_baseline_counterexample.json").read_text())


class Run(NamedTuple):
    """What came of a run whose safe action's cost was not told."""

    warming: list[bool]  # whether the round was spent on learning that cost
    costs: list[float]  # the true expected cost of every decision
    first: float  # half-width of one play of the safe action times √n, at the start
    last: float  # and at the end
    held: bool  # whether the confidence sets contained the truth at the end


def learns_safe(decision: Any) -> bool:
    """Say whether the safe action is played because its own cost is uncertain, or certainly too high."""
    cause = decision.reason_details
    return cause is not None and (
        cause.reason is WARMING or cause.details.get("found") == Contradiction.SAFE_ACTION_UNSAFE
    )


def linear_run(kind: Any, safe_cost: float, threshold: float, rounds: int, seed: int) -> Run:
    """Play on fresh actions around x₀ = (1, 0)."""
    random, safe = np.random.default_rng([SEED, seed]), np.array([1.0, 0.0])
    reward, cost = np.array([0.3, 0.8]), np.array([safe_cost, 0.7])
    policy = kind(safe_action=SafeAction(features=safe), threshold=threshold, noise=NOISE, ridge=RIDGE, delta=DELTA)
    agent, warming, costs = Agent(policy, seed=seed), [], []
    actions, seen = np.empty((0, 2)), np.empty(0)
    for _ in range(rounds):
        targets = np.array([direction(random, 2) for _ in range(3)])
        decision = agent.decide(targets)
        warming.append(learns_safe(decision))
        if warming[-1]:
            np.testing.assert_array_equal(decision.action, safe)
        listed = np.append(targets @ cost, safe_cost)
        costs.append(decision.action @ cost if decision.probabilities is None else decision.probabilities @ listed)
        actions = np.vstack([actions, decision.action])
        seen = np.append(seen, decision.action @ cost + NOISE * random.normal())
        agent.learn(decision, reward=decision.action @ reward + NOISE * random.normal(), cost=seen[-1])
    signal = Signal(cost, safe, False, NOISE, DELTA / 2, RIDGE)
    belief = believed(signal, actions, seen)
    return Run(warming, costs, believed(signal, actions[:0], seen[:0]).radius, belief.radius, belief.holds())


def arm_run(threshold: float, rounds: int, seed: int, truth: Floats = ARMS) -> Run:
    """Play Bernoulli arms, the safe one being arm 0."""
    random, count = np.random.default_rng([SEED, seed]), truth.shape[1]
    policy = OPB(arms=count, safe_action=SafeAction(arm=0), threshold=threshold, delta=DELTA, interval="hoeffding")
    agent, warming, costs = Agent(policy, seed=seed), [], []
    pulls, totals = np.zeros(count), np.zeros(count)
    for _ in range(rounds):
        decision = agent.decide(ArmSet(count))
        arm = decision.action
        warming.append(learns_safe(decision))
        assert arm == 0 or not warming[-1]
        costs.append(decision.probabilities[:count] @ truth[1])
        seen = (random.uniform(size=2) < truth[:, arm]).astype(float)
        agent.learn(decision, reward=seen[0], cost=seen[1])
        pulls[arm], totals[arm] = pulls[arm] + 1, totals[arm] + seen[1]
    halves = [0.5 * math.sqrt(n) * unit_width(n, count, 2, None, DELTA) for n in range(1, rounds + 1)]
    means = totals / np.maximum(pulls, 1)
    inside = [abs(means[a] - truth[1, a]) <= halves[int(n) - 1] / math.sqrt(n) for a, n in enumerate(pulls) if n]
    return Run(warming, costs, min(halves), max(halves), all(inside))


@pytest.mark.parametrize("kind", LINEAR)
def test_the_first_round_is_the_safe_action_and_says_why(kind: Any) -> None:
    policy = kind(safe_action=SafeAction(features=[1.0, 0.0]), threshold=0.9, noise=0.1)
    decision = Agent(policy).decide(np.eye(2))
    np.testing.assert_array_equal(decision.action, [1.0, 0.0])
    assert decision.reason is WARMING
    assert decision.action_index is None


def test_the_first_pull_is_the_safe_arm_and_says_why() -> None:
    decision = Agent(OPB(arms=3, safe_action=SafeAction(arm=1), threshold=0.9)).decide(ArmSet(3))
    assert (decision.action, decision.reason) == (1, WARMING)
    np.testing.assert_array_equal(decision.probabilities, [0.0, 1.0, 0.0, 0.0])


def check_price(run: Run, slack: float) -> None:
    """The safe action is first left after P² (β/Δ)² rounds or more, and played for want of certainty in few.

    N ≤ 1 + (P + 1 + α_c)² (β/Δ)²        (Theorem 2; not all of them need come first)
    """
    assert run.held
    assert run.warming.index(False) >= (PATIENCE * run.first / slack) ** 2 - 1.0
    assert sum(run.warming) <= 1.0 + ((PATIENCE + 2.0) * run.last / slack) ** 2
    assert not run.warming[-1]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "slack"), [*((kind, 0.5) for kind in LINEAR), (LCLUCB, 0.25)])
def test_the_safe_action_is_left_after_about_the_squared_radius_over_the_slack(kind: Any, slack: float) -> None:
    run = linear_run(kind, safe_cost=0.2, threshold=0.2 + slack, rounds=350, seed=1)
    check_price(run, slack)
    assert max(run.costs) <= 0.2 + slack + 1e-12
    assert max(run.costs) > 0.2, "something dearer than the safe action was dared"


@pytest.mark.long
@pytest.mark.parametrize("slack", [0.6, 0.4])
def test_the_safe_arm_is_left_after_about_the_squared_radius_over_the_slack(slack: float) -> None:
    run = arm_run(0.1 + slack, rounds=600, seed=2)
    check_price(run, slack)
    assert 0.1 < max(run.costs) <= 0.1 + slack + 1e-12


@pytest.mark.long
@pytest.mark.parametrize("kind", LINEAR)
def test_no_round_violates_on_the_event(kind: Any) -> None:
    held = 0
    for seed in range(4):
        run = linear_run(kind, safe_cost=0.3, threshold=0.6, rounds=120, seed=seed)
        held += run.held
        assert max(run.costs) <= 0.6 + 1e-12 or not run.held
        assert not run.warming[-1]
    assert held >= 3


@pytest.mark.long
@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("excess", [0.0, 0.05])
def test_a_safe_action_without_slack_is_never_left(kind: Any, excess: float) -> None:
    run = linear_run(kind, safe_cost=0.4 + excess, threshold=0.4, rounds=250, seed=1)
    assert run.held
    assert all(run.warming)


@pytest.mark.long
@pytest.mark.parametrize("excess", [0.0, 0.05])
def test_a_safe_arm_without_slack_is_never_left(excess: float) -> None:
    truth = np.array([[0.2, 0.9], [0.3 + excess, 0.1]])
    run = arm_run(0.3, rounds=1000, seed=1, truth=truth)
    assert run.held
    assert all(run.warming)


def longest_step(instance: Instance, target: Floats) -> float:
    """Return how far all pessimistic costs, full norm and no clip, allow to go: by halving, since they are convex."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        point = (instance.safe + middle * (target - instance.safe))[np.newaxis]
        dearest = np.array([(b.estimates(point) + b.widths(point))[0] for b in instance.beliefs[1:]])
        low, high = (middle, high) if np.all(dearest <= instance.thresholds) else (low, middle)
    return low


def hoped_by(scale: float, reward: Belief, points: Floats) -> float:
    """Return max <x, θ̂> + α_r β_r ‖x‖, the paper's hoped reward."""
    return float(np.max(reward.estimates(points) + scale * reward.widths(points)))


@pytest.mark.long
def test_the_paper_s_ratio_of_scalings_loses_optimism_and_ours_does_not() -> None:
    random = np.random.default_rng(SEED)
    lost, checked = 0, 0
    for _ in range(120):
        instance = random_instance(random, UNKNOWN["unknown reward and cost"])
        decision = instance.decided(LCLUCB, RaySet)
        if not instance.on_event() or decision.message is not None:
            continue
        best, checked = instance.best_point(), checked + 1
        shortfall = 1.0 - float(instance.safe @ instance.signals[0].truth)
        slack = float((instance.thresholds - instance.costs @ instance.safe)[0])
        steps = [longest_step(instance, target) for target in instance.targets]
        reached = instance.safe + np.array(steps)[:, np.newaxis] * (instance.targets - instance.safe)
        points = np.vstack([instance.safe, reached])
        assert decision.optimistic_reward >= best - 1e-9
        assert hoped_by(1.0 + 2.0 * shortfall / slack, instance.beliefs[0], points) >= best - 1e-9
        lost += hoped_by(max(1.0, shortfall / slack), instance.beliefs[0], points) < best - 1e-3
    assert checked >= 30
    assert lost >= 2


class Counterexample(NamedTuple):
    """The golden counterexample, brought back to the data it stands for."""

    beliefs: list[Belief]
    actions: Floats
    observed: list[Floats]  # of the reward and of the cost

    @property
    def points(self) -> Floats:
        """The two candidates: the safe action and the longest safe step."""
        safe, target = np.array(GOLDEN["safe_action"]), np.array(GOLDEN["target"])
        return np.array([safe, (1.0 - GOLDEN["step"]) * safe + GOLDEN["step"] * target])


@pytest.fixture(scope="module")
def counterexample() -> Counterexample:
    played, times = np.array([p["action"] for p in GOLDEN["plays"]]), [p["times"] for p in GOLDEN["plays"]]
    actions = np.repeat(played, times, axis=0)
    observed = []
    for fit in (GOLDEN["theta_hat"], GOLDEN["mu_hat"]):
        sums = np.array(GOLDEN["gram"]) @ fit  # Σ y x, of two unknown outcomes
        observed.append(np.repeat(np.linalg.solve(played.T * times, sums), times))
    safe, bound = np.array(GOLDEN["safe_action"]), GOLDEN["norm_bound"]
    beliefs = []
    for truth, seen in zip((GOLDEN["theta_star"], GOLDEN["mu_star"]), observed, strict=True):
        signal = Signal(np.array(truth), safe, False, GOLDEN["noise"], GOLDEN["delta_per_signal"], GOLDEN["ridge"])
        belief = believed(signal, actions, seen)
        radius = math.sqrt(belief.radius**2 + GOLDEN["ridge"] * (bound**2 - 1.0))  # the witness takes S = 1
        beliefs.append(belief._replace(radius=radius))
    return Counterexample(beliefs, actions, observed)


def test_the_counterexample_is_what_it_says(counterexample: Counterexample) -> None:
    reward, cost = counterexample.beliefs
    np.testing.assert_allclose(reward.gram, GOLDEN["gram"], atol=1e-9)
    np.testing.assert_allclose(reward.fit, GOLDEN["theta_hat"], atol=1e-9)
    np.testing.assert_allclose(cost.fit, GOLDEN["mu_hat"], atol=1e-9)
    assert reward.radius == pytest.approx(GOLDEN["radius"], abs=1e-9)
    assert reward.holds()
    assert cost.holds()
    dearest = cost.estimates(counterexample.points) + cost.widths(counterexample.points)
    assert dearest[0] == pytest.approx(GOLDEN["threshold"] - GOLDEN["slack_left"], abs=1e-9)
    assert dearest[1] == pytest.approx(GOLDEN["threshold"], abs=1e-9)


@pytest.mark.parametrize("recipe", GOLDEN["reward_scales"])
def test_each_recipe_of_the_counterexample_hopes_for_what_is_written(
    counterexample: Counterexample, recipe: str
) -> None:
    hoped = hoped_by(GOLDEN["reward_scales"][recipe], counterexample.beliefs[0], counterexample.points)
    assert hoped == pytest.approx(GOLDEN["hoped"][recipe], abs=1e-9)
    fails = recipe.startswith("paper") or recipe == "lemma_scale_allowed_estimates"
    assert (hoped < GOLDEN["best_reward"]) == fails


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
def test_stagewise_is_optimistic_on_the_counterexample(counterexample: Counterexample, kind: Any) -> None:
    policy = kind(
        safe_action=SafeAction(features=GOLDEN["safe_action"]),
        threshold=GOLDEN["threshold"],
        noise=GOLDEN["noise"],
        delta=GOLDEN["delta"],
        norm_bound=GOLDEN["norm_bound"],
        ridge=GOLDEN["ridge"],
        mean_cost_bound=None,
    )
    agent = Agent(policy)
    agent.learn_log(counterexample.actions, *counterexample.observed)
    decision = agent.decide(RaySet([GOLDEN["target"]]))
    assert decision.message is None
    assert decision.step_size == pytest.approx(GOLDEN["step"], abs=1e-9)
    assert decision.optimistic_reward >= GOLDEN["best_reward"]
    if kind is LCLUCB:
        assert decision.optimistic_reward == pytest.approx(GOLDEN["hoped"]["stagewise"], abs=1e-9)


@pytest.mark.parametrize(("kind", "actions"), [(LCLUCB, RaySet), (OPLB, FiniteSet)])
def test_a_safe_action_whose_unknown_reward_is_negative_leaves_optimism_whole(kind: Any, actions: Any) -> None:
    target, safe = np.eye(2)
    reward, cost, noise, ridge = np.array([0.6, -0.8]), np.array([0.5, 0.0]), (0.01, 0.3), 0.01
    signals = [Signal(reward, safe, False, noise[0], 0.1, ridge), Signal(cost, safe, True, noise[1], 0.1, ridge)]
    played = np.vstack([np.tile(safe, (400, 1)), [0.3 * target] * 3, [[0.1, 0.2]] * 3])
    observed = [unlucky(s, played, target, sign, 0.999) for s, sign in zip(signals, (-1.0, 1.0), strict=True)]
    assert all(believed(s, played, y).holds() for s, y in zip(signals, observed, strict=True))
    known = SafeAction(features=safe, cost=0.0)
    agent = Agent(kind(safe_action=known, threshold=0.5, noise=noise, delta=0.2, ridge=ridge, mean_cost_bound=None))
    agent.learn_log(played, *observed)
    assert agent.decide(actions([target])).optimistic_reward >= target @ reward


@pytest.mark.long
def test_a_safe_action_that_is_preferred_is_reported_with_the_hope_it_was_preferred_for() -> None:
    random, preferred = np.random.default_rng(5), 0
    for _ in range(150):
        instance = random_instance(random, UNKNOWN["unknown scaled costs"])
        decision = instance.decided(LCLUCB, RaySet)
        if decision.reason is FallbackReason.NO_BETTER_ACTION:
            preferred += 1
            assert instance.on_event()
            assert decision.optimistic_reward >= instance.best_point() - 1e-9
    assert preferred >= 2
