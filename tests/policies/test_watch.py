"""What was declared, held against the data: a contradiction is the fallback of every decision, and names itself."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.layout import MODEL_BLOCKS
from stagewise.models.regression import SQUARES
from stagewise.models.ridge import view_ridge

ZERO = sw.SafeAction(features=[0.0, 0.0])
OFF = sw.SafeAction(features=[0.4, 0.3], reward=0.1, cost=0.1)
ENDS = np.array([[1.0, 0.0], [0.0, 1.0]])
KINDS = {
    "LCLUCB": sw.LCLUCB,
    "ROFUL": sw.ROFUL,
    "SafeLTS": sw.SafeLTS,
    "OPLB": sw.OPLB,
    "CAPS": sw.SafePosteriorSampling,
}
linear = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
radii = pytest.mark.parametrize("interval", ["hoeffding", "kl"])


def assert_stays(agent: sw.Agent, actions: Any, *parts: str) -> None:
    """Assert that the safe action is played, and that the fallback is one sentence with these parts."""
    decision = agent.decide(actions)
    text = str(decision.message)
    assert all(part in text for part in parts), text
    assert "\n" not in text
    assert len(text) < 400
    safe = agent.policy.safe_action
    assert np.array_equal(decision.action, safe.features if safe.arm is None else safe.arm)
    if decision.probabilities is not None:
        assert decision.probabilities[-1 if safe.arm is None else safe.arm] == 1.0


def coins(share: float, count: int) -> np.ndarray:
    return (np.arange(count) % round(1 / share) == 0).astype(float)


# The safe action's declared cost


@pytest.mark.compiled
@radii
def test_a_safe_arm_dearer_than_declared_is_told(interval: str) -> None:
    """The issue's own: declared .001, 20,000 logged sends at .05, limit .02."""
    settings: dict[str, Any] = {"arms": 3, "threshold": {"opt_out": 0.02}, "interval": interval}
    safe = sw.SafeAction(arm=1, reward=0.0, cost=0.001)
    watched = sw.Agent(sw.OPB(safe_action=safe, **settings))
    blind = sw.Agent(sw.OPB(safe_action=safe, **settings, check_assumptions=False))
    for agent in (watched, blind):
        agent.learn_log(np.ones(20_000, dtype=int), np.zeros(20_000), coins(0.05, 20_000))
    assert_stays(watched, sw.ArmSet(3), "'opt_out'", "declared 0.001", "20,000 outcomes", "average 0.05")
    assert blind.decide(sw.ArmSet(3)).message is None
    for _ in range(3):
        decision = watched.decide(sw.ArmSet(3))
        assert decision.action == 1
        watched.learn(decision, reward=0.0, cost=0.0)


@pytest.mark.compiled
@radii
def test_a_safe_arm_as_declared_or_cheaper_is_not(interval: str) -> None:
    for share in (0.05, 0.01):
        safe = sw.SafeAction(arm=0, reward=0.0, cost=0.05)
        agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.1, interval=interval))
        agent.learn_log(np.zeros(20_000, dtype=int), np.zeros(20_000), coins(share, 20_000))
        assert agent.decide(sw.ArmSet(2)).message is None


@pytest.mark.parametrize("cost", [0.3, -0.1], ids=["dearer", "cheaper"])
@linear
def test_a_safe_action_that_is_not_as_declared_is_told(kind: Any, cost: float) -> None:
    """Both ways: a value that is too high passes its error on to the directions that are learned."""
    agent = sw.Agent(kind(safe_action=OFF, threshold=0.2, noise=0.1, ridge=1.0))
    agent.learn_log(np.tile(OFF.features, (40, 1)), np.full(40, 0.1), np.full(40, cost))
    assert_stays(agent, ENDS, "the safe action's 'cost'", "declared 0.1", "40 outcomes", f"average {cost:g}")


def test_decisions_at_the_safe_action_count_as_well_as_logs() -> None:
    policy = sw.LCLUCB(safe_action=ZERO, threshold=0.2, noise=0.1)
    agent = sw.Agent(policy)
    decision = agent.decide(ENDS)
    at_safe = decision._replace(action=np.zeros(2), action_index=None, step_size=0.0)._with(None, decision._offered)
    state = policy.cache_offered(policy.start(), decision)
    for _ in range(40):
        state = policy.learn(state, at_safe, sw.Outcome(0.0, 0.3))
    assert "40 outcomes" in str(policy.decide(state, ENDS).message)


def test_a_kernel_and_a_class_hold_the_safe_action_to_its_word() -> None:
    safe = sw.SafeAction(features=[0.0], reward=0.1, cost=0.1)
    kernel = sw.Agent(
        sw.KernelOPLB(kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=0.2, noise=0.1, norm_bound=1.0)
    )
    kernel.learn_log(np.zeros((40, 1)), np.full(40, 0.1), np.full(40, 0.3))
    assert_stays(kernel, [[0.5]], "declared 0.1", "40 outcomes", "average 0.3")
    arm = sw.SafeAction(arm=0, reward=0.1, cost=0.1)
    table = [[0.1, 0.6], [0.1, 0.2]]
    classes = sw.Agent(sw.OPNLB(reward_class=table, cost_class=table, safe_action=arm, threshold=0.4))
    classes.learn_log(np.zeros(2000, dtype=int), np.full(2000, 0.1), np.full(2000, 0.5))
    assert_stays(classes, sw.ArmSet(2), "declared 0.1", "2,000 outcomes", "average 0.5")


# The declared noise


@linear
def test_coins_do_not_have_a_noise_of_a_hundredth(kind: Any) -> None:
    agent = sw.Agent(kind(safe_action=ZERO, threshold=0.5, noise=0.01))
    agent.learn_log(np.tile(ENDS[0], (20, 1)), np.zeros(20), coins(0.5, 20))
    assert_stays(agent, ENDS, "the noise of 'cost'", "declared 0.01", "20 outcomes")


@pytest.mark.parametrize("dared", [True, False], ids=["dearer arms", "the safe arm"])
def test_nor_do_those_of_arms(dared: bool) -> None:
    agent = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.5), threshold=0.9, noise=0.01))
    agent.learn_log(np.full(20, int(dared)), np.zeros(20), coins(0.5, 20))
    assert_stays(agent, sw.ArmSet(2), "the noise of 'cost'", "declared 0.01", "20 outcomes")


def test_nor_do_those_of_a_kernel_or_a_class() -> None:
    safe = sw.SafeAction(features=[0.0], reward=0.0, cost=0.5)
    kernel = sw.KernelOPLB(kernel=sw.RBF(lengthscale=1.0), safe_action=safe, threshold=0.9, noise=0.01, norm_bound=1.0)
    agent = sw.Agent(kernel)
    agent.learn_log(np.full((40, 1), 0.2), np.zeros(40), coins(0.5, 40))
    assert_stays(agent, [[0.5]], "the noise of 'cost'", "declared 0.01", "40 outcomes")
    table = [[0.1, 0.6], [0.1, 0.2]]
    arm = sw.SafeAction(arm=0, reward=0.1, cost=0.1)
    classes = sw.Agent(sw.OPNLB(reward_class=table, cost_class=table, safe_action=arm, threshold=0.4, noise=0.01))
    classes.learn_log(np.ones(40, dtype=int), np.zeros(40), coins(0.5, 40))
    assert_stays(classes, sw.ArmSet(2), "the noise of 'cost'", "declared 0.01", "40 outcomes")


@linear
def test_a_reward_that_is_noisier_than_declared_stops_nobody(kind: Any) -> None:
    agent = sw.Agent(kind(safe_action=ZERO, threshold=0.5, noise=0.01))
    agent.learn_log(np.tile(ENDS[0], (20, 1)), coins(0.5, 20), np.zeros(20))
    assert agent.decide(ENDS).message is None


@pytest.mark.parametrize("safe", [ZERO, OFF, sw.SafeAction(features=OFF.features)], ids=["zero", "known", "unknown"])
def test_the_running_sum_is_the_least_regularised_sum_of_squares(safe: sw.SafeAction) -> None:
    """Σ e²/(1 + w²) = min_θ Σ (y − <z, θ>)² + λ‖θ‖², solved for afresh."""
    random, ridge = np.random.default_rng(1), 0.3
    actions, costs = random.uniform(-0.6, 0.6, (50, 2)), random.normal(size=50)
    policy = sw.LCLUCB(safe_action=safe, threshold=0.5, noise=0.1, ridge=ridge)
    agent = sw.Agent(policy)
    agent.learn_log(actions, np.zeros(50), costs)
    learned, rest = actions, costs
    if safe is OFF:
        unit = OFF.features / np.linalg.norm(OFF.features)
        rest = costs - 0.1 * (actions @ unit) / np.linalg.norm(OFF.features)
        learned = actions @ np.array([-unit[1], unit[0]])[:, np.newaxis]
    weights = np.linalg.solve(ridge * np.eye(learned.shape[1]) + learned.T @ learned, learned.T @ rest)
    least = np.sum((rest - learned @ weights) ** 2) + ridge * weights @ weights
    memory = agent.state.memory
    part = as_python(view_ridge)(policy.layout, memory, policy.layout[MODEL_BLOCKS] - 1)
    squares = part.tally[SQUARES : SQUARES + part.signals]
    assert squares[-1] == pytest.approx(least, rel=1e-12)


# The declared bound on mean costs


@linear
def test_data_contradict_a_ceiling(kind: Any) -> None:
    """A true cost of 8 against a promise of 4: the first lower bound above it ends the play."""
    policy = kind(safe_action=ZERO, threshold=3.0, noise=0.1, norm_bound=12.0, mean_cost_bound=4.0)
    agent = sw.Agent(policy)
    agent.learn_log(np.tile(ENDS, (20, 1)), np.zeros(40), np.full(40, 8.0))
    assert_stays(agent, ENDS, "a mean of 'cost' above", "bound 4 ", "mean_cost_bound")
    if kind not in (sw.SafeLTS, sw.OPLB, sw.SafePosteriorSampling):
        assert_stays(agent, sw.BallSet(1.0), "a mean of 'cost' above", "bound 4 ")
    ignorant = sw.Agent(
        kind(safe_action=ZERO, threshold=3.0, noise=0.1, norm_bound=12.0, mean_cost_bound=4.0, check_assumptions=False)
    )
    ignorant.learn_log(np.tile(ENDS, (20, 1)), np.zeros(40), np.full(40, 8.0))
    assert ignorant.decide(ENDS).message is None


def test_the_solver_stops_as_well() -> None:
    settings: dict[str, Any] = {"threshold": 3.0, "noise": 0.1, "norm_bound": 12.0, "mean_cost_bound": 4.0}
    agent = sw.Agent(sw.OPLB(safe_action=ZERO, method="socp", **settings))
    agent.learn_log(np.tile(ENDS, (20, 1)), np.zeros(40), np.full(40, 8.0))
    assert_stays(agent, ENDS, "a mean of 'cost' above", "bound 4 ")


def test_the_ceiling_of_an_arm_is_contradicted_in_its_own_direction() -> None:
    safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
    agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"loss": 0.5}, noise=1.0))
    agent.learn_log(np.ones(100, dtype=int), np.zeros(100), np.full(100, 8.0))
    assert_stays(agent, sw.ArmSet(2), "a mean of 'loss' above", "bound 1 ")
    gains = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"gain": sw.AtLeast(-0.5)}, noise=1.0))
    gains.learn_log(np.ones(100, dtype=int), np.zeros(100), np.full(100, -8.0))
    assert_stays(gains, sw.ArmSet(2), "a mean of 'gain' below", "bound -1 ")


def test_a_safe_action_of_unknown_cost_that_is_not_safe_is_told() -> None:
    arms = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0), threshold=0.1))
    arms.learn_log(np.zeros(2000, dtype=int), np.zeros(2000), coins(0.5, 2000))
    assert_stays(arms, sw.ArmSet(2), "the safe action's own 'cost' above its threshold 0.1")
    rays = sw.Agent(sw.LCLUCB(safe_action=sw.SafeAction(features=OFF.features), threshold=0.1, noise=0.1))
    rays.learn_log(np.tile(OFF.features, (2000, 1)), np.zeros(2000), np.full(2000, 0.4))
    assert_stays(rays, ENDS, "the safe action's own 'cost' above its threshold 0.1")
