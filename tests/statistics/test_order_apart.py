"""The order of learning as a statistic, where signals come apart, replicas decide, or windows close.

The application of `test_order` sees what was not learned yet, and offers only what teaches nothing once it saw luck.
"""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.statistics.test_order import DELTA, LIMIT, SEED, WINDOWS, Trap, rays

from stagewise import LCLUCB, OPB, Agent, ArmSet, OutcomeWindow, RaySet, Replica, SafeAction

pytestmark = pytest.mark.compiled

RUNS = 7
SIZES = [pytest.param(RUNS, 1000, id="few"), pytest.param(2_000, 1000, id="many", marks=pytest.mark.slow)]
sizes = pytest.mark.parametrize(("runs", "rounds"), SIZES)


def lucky(telling: list[float], luck: dict[int, float]) -> bool:
    """Say whether the last of these sums end a window of costs that would mislead who knows nothing else."""
    return any(n < len(telling) and telling[-1] - telling[-1 - n] <= most for n, most in luck.items())


def violating(trap: Trap, luck: dict[int, float], play: Any, run: int, rounds: int, **settings: Any) -> bool:
    """Say whether one run violates: T decisions, then all their costs, the last one first."""
    random, driver = np.random.default_rng([SEED, run]), play(trap.policy, run, **settings)
    costs, telling, quiet = [], [0.0], False
    for _ in range(rounds):
        decision = driver.decide(trap.tiny if quiet else trap.offer)
        costs.append(trap.cost(random, decision))
        if not quiet and np.array_equal(decision.action, trap.played.action):
            telling.append(telling[-1] + costs[-1])
            quiet = lucky(telling, luck)
    return any(trap.breaks(state) for state in driver.told(costs))


class Apart:
    """The reward is learned at once, in order; the costs come later."""

    def __init__(self, policy: Any, run: int, learning_order: str = "decision") -> None:
        self.agent = Agent(policy, seed=run, learning_order=learning_order)

    def decide(self, offer: Any) -> Any:
        decision = self.agent.decide(offer)
        self.agent.learn(decision, reward=0.5)
        assert self.agent.buffered_count == 0
        return decision

    def told(self, costs: list[float]) -> Any:
        for round_ in range(len(costs) - 1, -1, -1):
            self.agent.learn(round_, cost=costs[round_])
            if self.agent.buffered_count == 0:
                yield self.agent.state


class Replicas:
    """Two deciders; the learner registers a decision before its cost exists, or (the control) when it is known."""

    def __init__(self, policy: Any, run: int, early: bool = True) -> None:
        self.agent, self.early, self.made = Agent(policy, seed=run), early, []
        self.deciders = [Replica(self.agent.replica_snapshot(), name=name) for name in ("a", "b")]

    def decide(self, offer: Any) -> Any:
        decision = self.deciders[len(self.made) % 2].decide(offer)
        self.made.append(decision.to_dict())
        if self.early:
            self.agent.register_decision(self.made[-1])
        return decision

    def told(self, costs: list[float]) -> Any:
        for decision, cost in zip(reversed(self.made), reversed(costs), strict=True):
            if not self.early:
                self.agent.register_decision(decision)
            self.agent.learn(decision["id"], reward=0.5, cost=cost)
            if self.agent.buffered_count == 0:
                yield self.agent.state


def apart_rays() -> Trap:
    """The trap on a ray, for a policy with a part for each signal; at x₀ = 0 both are known, so δ is the same."""
    safe = SafeAction(features=[0.0], reward=0.0, cost=0.0)
    told: dict[str, Any] = {"ridge": 0.25, "split_delta": False, "delta": DELTA, "separate_models": True}
    return rays()._replace(policy=LCLUCB(safe_action=safe, threshold=LIMIT, noise=1.0, **told))


def counted(trap: Trap, play: Any, runs: int, rounds: int, **settings: Any) -> int:
    luck = {window: trap.luck(window) for window in WINDOWS}
    count = sum(violating(trap, luck, play, run, rounds, **settings) for run in range(runs))
    told = " ".join(map(str, settings.values()))
    print(f"{play.__name__} {told}: {count} of {runs} runs violate, {allowed(runs, DELTA)} may")  # pytest -rP shows it
    return count


@sizes
def test_rewards_that_are_learned_before_the_costs_leave_the_costs_in_order(runs: int, rounds: int) -> None:
    count = counted(apart_rays(), Apart, runs, rounds)
    assert count <= allowed(runs, DELTA)


@sizes
def test_costs_learned_apart_by_arrival_violate(runs: int, rounds: int) -> None:
    count = counted(apart_rays(), Apart, runs, rounds, learning_order="arrival")
    assert count > allowed(runs, DELTA)


@sizes
def test_replicas_whose_decisions_are_registered_before_their_outcomes_exist_are_safe(runs: int, rounds: int) -> None:
    count = counted(rays(), Replicas, runs, rounds)
    assert count <= allowed(runs, DELTA)


@sizes
def test_replicas_whose_decisions_are_registered_once_their_outcomes_are_known_are_not(runs: int, rounds: int) -> None:
    count = counted(rays(), Replicas, runs, rounds, early=False)
    assert count > allowed(runs, DELTA)


# Windows: what is told and what gets lost.

MEAN, CAP = 0.3, 0.2
CLICKS = OPB(
    arms=2,
    safe_action=SafeAction(arm=0, reward=0.0, cost=0.0),
    threshold=CAP,
    delta=DELTA,
    interval="kl",
    separate_models=True,
)


def broken(run: int, missing: Any, tells: Any) -> bool:
    """Say whether a run breaks its limit: costs are ones and zeros, and `tells` says of each whether anybody hears."""
    random = np.random.default_rng([SEED, run])
    windows = {"reward": OutcomeWindow(60.0, missing=0.0), "cost": OutcomeWindow(100.0, missing=missing)}
    agent, reports = Agent(CLICKS, seed=run, windows=windows, clock=lambda: 0.0), {}
    for now in range(1000):
        decision = agent.decide(ArmSet(2), now=float(now))
        if MEAN * float(decision.probabilities[1]) > CAP + 1e-12:
            return True
        cost = decision.action == 1 and random.random() < MEAN
        if tells(cost):
            reports.setdefault(now + int(random.integers(0, 100)), []).append((decision.id, cost))
        for id_, observed in reversed(reports.pop(now, [])):
            agent.learn(id_, cost=observed, now=float(now))
    return False


@pytest.mark.parametrize(
    ("missing", "tells"),
    [
        (0.0, lambda cost: cost),
        pytest.param(0.0, lambda cost: True, marks=pytest.mark.slow),
        pytest.param("drop", lambda cost: True, marks=pytest.mark.slow),
    ],
    ids=["only what happens is told", "all is told", "all is told, else left out"],
)
def test_with_windows_that_say_what_a_missing_cost_means_few_violate(missing: Any, tells: Any) -> None:
    count = sum(broken(run, missing, tells) for run in range(RUNS))
    assert count <= allowed(RUNS, DELTA)


@pytest.mark.parametrize(
    ("missing", "tells"),
    [("drop", lambda cost: not cost), (0.0, lambda cost: not cost)],
    ids=["costs get lost and are left out", "costs get lost and count as none"],
)
def test_where_costs_get_lost_because_they_are_costs_no_window_helps(missing: Any, tells: Any) -> None:
    """The control: whether an outcome is heard of depends on what it is, which the promise excludes."""
    count = sum(broken(run, missing, tells) for run in range(RUNS))
    assert count > allowed(RUNS, DELTA)


def test_rays_are_what_they_were() -> None:
    """The trap's policy apart decides as the one together, so that what is counted above is the order alone."""
    one, other = rays().policy, apart_rays().policy
    assert np.array_equal(
        one.decide(one.start(), RaySet([[1.0]])).action, other.decide(other.start(), RaySet([[1.0]])).action
    )
