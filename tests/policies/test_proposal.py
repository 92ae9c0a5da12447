"""Any proposal under CAPS' certificate: limits hold, and no round costs more than C times what is unknown of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.policies.caps import Intervals, get_intervals
from stagewise.problem.errors import ErrorCode

REWARD, COST = np.array([0.6, 0.5, 0.2]), np.array([0.5, 0.1, 0.4])
TARGETS = np.vstack([np.eye(3), [[0.6, 0.6, 0.0], [-0.5, 0.1, -0.5]]])
WORST = 4  # its reward is below the safe action's, and it costs nothing
OFF = np.array([0.2, 0.1, 0.0])


class Worst(sw.SafePosteriorSampling):
    """Proposes the worst of all candidates, for ever."""

    def propose(self, known: Intervals, draw: sw.RandomKey) -> int:
        return WORST


class Greedy(sw.SafePosteriorSampling):
    """Proposes what looks best, as if the middle of every interval were the truth."""

    def propose(self, known: Intervals, draw: sw.RandomKey) -> int:
        looks: Floats = (known.reward_low + known.reward_high)[:-1]
        return int(np.argmax(np.where(known.eligible, looks, -np.inf)))


class Safest(sw.SafePosteriorSampling):
    """Proposes the safe action."""

    def propose(self, known: Intervals, draw: sw.RandomKey) -> int:
        return -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Named(sw.SafePosteriorSampling):
    """Proposes whatever it is told to."""

    what: Any = None

    def propose(self, known: Intervals, draw: sw.RandomKey) -> Any:
        return self.what


def policy_of(kind: Any, known: bool = True, **settings: Any) -> Any:
    values = {"reward": float(REWARD @ OFF), "cost": float(COST @ OFF)} if known else {}
    safe = sw.SafeAction(features=OFF, **values)
    told: dict[str, Any] = {"safe_action": safe, "threshold": 0.3, "noise": 0.05, "mean_cost_bound": 1.0, "delta": 0.05}
    return kind(**{**told, **settings})


def unknown_of(policy: Any, known: Intervals, decision: Any) -> tuple[float, float]:
    """Return r⁻ and w of what is played, for a safe action of known value, as docs/theory/caps.md has them."""
    high = np.minimum(known.cost_high[0], 1.0)
    price = (decision.optimistic_reward - known.reward_low[-1]) / (0.3 - high[-1])
    widths = np.minimum(known.reward_high, 1.0) - known.reward_low + price * (high - known.cost_low[0])
    shares = decision.probabilities
    if shares is None:
        shares = np.zeros(len(TARGETS) + 1)
        shares[-1] = 1.0 - decision.step_size
        if decision.action_index is not None:
            shares[decision.action_index] = decision.step_size
    return float(known.reward_low @ shares), float(widths @ shares)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "max_regret_ratio"), [(Worst, 5.0), (Greedy, 1.0), (Safest, 5.0)])
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_no_round_costs_more_than_patience_times_what_is_unknown(
    kind: Any, max_regret_ratio: float, mixtures: bool
) -> None:
    policy, random = policy_of(kind, mixtures=mixtures, max_regret_ratio=max_regret_ratio), np.random.default_rng(3)
    plain, agent, overruled, followed = (
        policy_of(sw.SafePosteriorSampling, mixtures=mixtures),
        sw.Agent(policy, seed=1),
        0,
        0,
    )
    best = sw.simulate(plain, world(), rounds=1, progress=False).optimum[0, 0]
    for t in range(250):
        seen = policy.rounds.play(agent.state.memory, TARGETS, np.empty(0, dtype=bool), sw.RandomKey(1, 0, t))
        known = get_intervals(seen)
        decision = agent.decide(TARGETS)
        proposal = policy.propose(known, sw.RandomKey(1, 0, t))
        shares = np.zeros(len(TARGETS)) if decision.probabilities is None else decision.probabilities[:-1]
        proposed = (
            (-1 if decision.action_index is None else decision.action_index) == proposal
            if not mixtures
            else not np.delete(shares, max(proposal, 0)).any()
        )
        overruled, followed = overruled + (not proposed), followed + proposed
        low, unknown = unknown_of(policy, known, decision)
        mean = (
            REWARD @ decision.action
            if not mixtures
            else np.append(TARGETS @ REWARD, REWARD @ OFF) @ decision.probabilities
        )
        assert decision.optimistic_reward >= best - 1e-9
        assert decision.optimistic_reward - low <= policy.max_regret_ratio * unknown + 1e-7
        assert best - mean <= policy.max_regret_ratio * unknown + 1e-7
        assert decision.pessimistic_cost[0] <= 0.3
        outcome = np.array([REWARD, COST]) @ decision.action + 0.05 * random.normal(size=2)
        agent.learn(decision, reward=outcome[0], cost=outcome[1])
    assert overruled > 0
    assert followed > 0 or kind is Safest  # of whom nothing is unknown


def world() -> sw.LinearWorld:
    return sw.LinearWorld(reward=REWARD, cost=COST, actions=sw.RaySet(TARGETS), noise=0.05)


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_limits_hold_and_the_worst_proposal_is_overruled_more_and_more(mixtures: bool, known: bool) -> None:
    """Whatever is known of the safe action; simulated as it is played by hand."""
    policy = policy_of(Worst, known, mixtures=mixtures)
    result = sw.simulate(policy, world(), rounds=600, runs=1, seed=4, backend="python", record_points=3, progress=False)
    assert not result.violations.any()
    grown = np.diff(np.concatenate([[0.0], result.regret[0]]))
    assert grown[-1] < 0.7 * grown[0]


@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_no_proposal_is_the_draws_own(mixtures: bool) -> None:
    told: dict[str, Any] = {"mixtures": mixtures}
    one, other = (
        sw.simulate(policy_of(kind, **told), world(), rounds=60, seed=2, backend="python", progress=False)
        for kind in (Named, sw.SafePosteriorSampling)
    )
    np.testing.assert_array_equal(one.regret, other.regret)


@pytest.mark.parametrize("what", [5, -2, 1, True, 0.0, "0", 2**70])
def test_what_cannot_be_proposed_is_refused(what: Any) -> None:
    policy = policy_of(Named, what=what)
    with refused(sw.InvalidProblem, ErrorCode.INVALID_DECISION):
        policy.decide(policy.start(), sw.RaySet(TARGETS).only([0, 2, 3]))
