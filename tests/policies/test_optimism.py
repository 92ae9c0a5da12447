"""Optimism: where the truth lies in the confidence sets, a decision hopes for at least the true optimum.

The data are the unluckiest that leave the truth inside (`witness.unlucky`), since lucky data need no optimism. In every
family the same decisions without the theorem's lift are shown to fail, so that a pass means something.
"""

from typing import Any

import numpy as np
import pytest
from tests.policies import arm_instances, linear_instances
from tests.policies.arm_instances import unit_width
from tests.policies.linear_instances import Case, direction, random_truths
from tests.policies.witness import Signal, believed, best_mixture, best_on_rays, unlucky
from tests.sizes import sized

from stagewise import LCLUCB, OPB, OPLB, ROFUL, Agent, ArmSet, FiniteSet, RaySet, SafeAction
from stagewise.engine.compile import Floats

SEED = 20260801
ROUNDING = 1e-9

LINEAR = {**linear_instances.KNOWN, **linear_instances.UNKNOWN}
ARMS = {**arm_instances.KNOWN, **arm_instances.UNKNOWN}


def instances_on_event(room: Any, case: Any, count: int) -> list[Any]:
    """Return random instances whose truth lies in every confidence set."""
    random = np.random.default_rng([SEED, *map(ord, repr(case))])
    drawn = [room.random_instance(random, case) for _ in range(count)]
    kept = [instance for instance in drawn if instance.on_event()]
    assert len(kept) == count, "the data are made to leave the truth in its sets"
    return kept


def check_optimism(excesses: list[float], bare: list[float], count: int, rounding: float = ROUNDING) -> None:
    """Every excess of the hoped reward over the optimum is at least 0, and without the lift many are not."""
    assert len(excesses) >= count // 8
    assert min(excesses) >= -rounding
    assert sum(excess < -1e-3 for excess in bare) >= max(1, count // 50)


HOPES: dict[str, tuple[Any, str, tuple[Any, ...]]] = {  # instances, what is best, and how they decide
    **{f"LC-LUCB {name}": (name, "best_point", (LCLUCB, RaySet)) for name in LINEAR},
    **{f"OPLB {name}": (name, "best_mixture", (OPLB, FiniteSet)) for name in LINEAR},
    **{f"OPB {name}": (name, "best_mixture", ()) for name in ARMS},
}


@pytest.mark.long
@sized(8, 400)
@pytest.mark.parametrize("kind", HOPES)
def test_a_decision_hopes_for_at_least_the_best(kind: str, size: int) -> None:
    (name, attribute, decided), excesses, bare = HOPES[kind], [], []
    room, case = (linear_instances, LINEAR[name]) if decided else (arm_instances, ARMS[name])
    for instance in instances_on_event(room, case, size):
        best = getattr(instance, attribute)()
        for scale, into in [(None, excesses), (1.0, bare)]:
            decision = instance.decided(*decided, reward_confidence_scale=scale)
            if decision.message is None or case.cost_known:
                into.append(decision.optimistic_reward - best)
    check_optimism(excesses, bare, size)


@pytest.mark.long
@sized(16, 400)
@pytest.mark.parametrize("name", LINEAR)
def test_roful_hopes_for_at_least_the_best_point(name: str, size: int) -> None:
    excesses, smallest = [], []
    for instance in instances_on_event(linear_instances, LINEAR[name], size):
        decision = instance.decided(ROFUL, RaySet)
        if decision.message is None or LINEAR[name].cost_known:
            excesses.append(decision.optimistic_reward - instance.best_point())
            smallest.append(abs(excesses[-1]) / instance.beliefs[0].radius)
    assert len(excesses) >= size // 15
    assert min(excesses) >= -ROUNDING
    assert min(smallest) < 0.05, "some of the data leave hardly any room"


def before_mixing_back(
    probabilities: Floats, optimistic_reward: float, safe_hoped: float, cheapest: Floats, limits: Floats
) -> float:
    """Return the hoped reward of the most hopeful mixture, from the one it was mixed back to.

    The most hopeful mixture lies on the line from the safe action through the mixture played, as far as probabilities
    and the optimistic costs (m, K + 1) allow; the safe action stands last in both.
    """
    if probabilities[-1] == 1.0:
        return optimistic_reward
    safe, mixed = cheapest[:, -1], cheapest @ probabilities
    stretches = [1.0 / (1.0 - probabilities[-1])]
    stretches += [(limits[j] - safe[j]) / (mixed[j] - safe[j]) for j in range(len(limits)) if mixed[j] > safe[j]]
    return safe_hoped + min(stretches) * (optimistic_reward - safe_hoped)


@pytest.mark.long
@sized(8, 400)
@pytest.mark.parametrize("name", LINEAR)
def test_directional_oplb_hopes_for_at_least_the_best_mixture_before_it_mixes_back(name: str, size: int) -> None:
    excesses, bare = [], []
    for instance in instances_on_event(linear_instances, LINEAR[name], size):
        decision = instance.decided(OPLB, FiniteSet, optimism="directional")
        if decision.message is not None and not LINEAR[name].cost_known:
            continue
        points = np.vstack([instance.targets, instance.safe])
        reward, costs = instance.beliefs[0], instance.beliefs[1:]
        cheapest = np.array(
            [b.estimates(points) - LINEAR[name].cost_confidence_scale * b.widths(points) for b in costs]
        )
        safe_hoped = float((reward.estimates(points) + reward.widths(points))[-1])
        best = instance.best_mixture()
        hopeful = before_mixing_back(
            decision.probabilities, decision.optimistic_reward, safe_hoped, cheapest, instance.thresholds
        )
        excesses.append(hopeful - best)
        bare.append(decision.optimistic_reward - best)
    check_optimism(excesses, bare, size, 1e-7)


@pytest.mark.long
@sized(8, 400)
@pytest.mark.parametrize("name", ARMS)
def test_directional_opb_hopes_for_at_least_the_best_mixture_before_it_mixes_back(name: str, size: int) -> None:
    excesses, bare = [], []
    for instance in instances_on_event(arm_instances, ARMS[name], size):
        decision = instance.decided(optimism="directional")
        if decision.message is not None and not ARMS[name].cost_known:
            continue
        order = [*instance.others, instance.safe]
        half, means = instance.half.copy(), instance.means.copy()
        for known, rows in [(ARMS[name].reward_known, slice(0, 1)), (ARMS[name].cost_known, slice(1, None))]:
            if known:
                half[rows, instance.safe], means[rows, instance.safe] = 0.0, instance.truth[rows, instance.safe]
        cheapest = (means - ARMS[name].cost_confidence_scale * half)[1:, order]
        safe_hoped = float((means + half)[0, instance.safe])
        best = instance.best_mixture()
        shares = decision.probabilities[order]
        hopeful = before_mixing_back(shares, decision.optimistic_reward, safe_hoped, cheapest, instance.thresholds)
        excesses.append(hopeful - best)
        bare.append(decision.optimistic_reward - best)
    check_optimism(excesses, bare, size, 1e-7)


def tightest(case: Case, cost_confidence_scale: float) -> tuple[dict[str, Any], Floats, Floats, Floats]:
    """Return a policy's settings, its only target, actions and outcomes (2, n) that leave optimism no room at all.

    The target is worth 1, the most there is, and costs exactly τ; the truth is on the boundary of both sets.
    """
    target, other = np.eye(2)
    safe = np.zeros(2) if case.origin else 0.6 * other
    reward, cost = target, 0.5 * target + (0.0 if case.origin else 0.2) * other
    known = {"safe": safe, "known": True, "ridge": 0.1, "level": 0.1}
    signals = [Signal(truth=reward, noise=case.noise[0], **known), Signal(truth=cost, noise=case.noise[1], **known)]
    actions = np.vstack([0.3 * target, 0.2 * other, 0.1 * target + 0.1 * other])
    observed = [unlucky(s, actions, target, sign, 1.0) for s, sign in zip(signals, [-1.0, 1.0], strict=True)]
    settings = {
        "safe_action": SafeAction(features=safe, reward=0.0, cost=float(cost @ safe)),
        "threshold": 0.5,
        "noise": case.noise,
        "delta": 0.2,
        "ridge": 0.1,
        "mean_cost_bound": None,
        "cost_confidence_scale": cost_confidence_scale,
        "check_assumptions": False,  # the data are made up to be as unfavourable as the confidence sets allow
    }
    return settings, target[np.newaxis], actions, np.array(observed)


@pytest.mark.parametrize("kind", [LCLUCB, OPLB])
@pytest.mark.parametrize("cost_confidence_scale", [1.0, 2.5])
@pytest.mark.parametrize("case", [Case(), Case(origin=True), Case(noise=(0.01, 0.3)), Case(noise=(0.3, 0.01))])
def test_the_lift_is_exactly_as_large_as_optimism_needs(kind: Any, cost_confidence_scale: float, case: Case) -> None:
    settings, target, actions, observed = tightest(case, cost_confidence_scale)
    slack = 0.5 - settings["safe_action"].cost
    needed = (1.0 + cost_confidence_scale) / slack
    hopes = []
    for scale in [None, 1.0 + needed, 1.0 + 0.99 * needed]:
        agent = Agent(kind(reward_confidence_scale=scale, **settings))
        agent.learn_log(actions, observed[0], observed[1])
        hopes.append(agent.decide(target).optimistic_reward)
    # The bound is tight up to α_c: a pessimism beyond what is needed, α_c > 1, is paid for in full.
    assert hopes[0] == pytest.approx(1.0, abs=1e-9)
    assert hopes[1] == pytest.approx(1.0, abs=1e-9)
    assert hopes[2] < 1.0 - 1e-4


RUNS = {
    "from zero": Case(origin=True),
    "three constraints": Case(constraints=3, noise=(0.05, 0.02)),
    "unknown cost": Case(cost_known=False),
    "unknown reward and cost": Case(reward_known=False, cost_known=False),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL, OPLB])
@pytest.mark.parametrize("name", RUNS)
@sized((2, 40, 15), (6, 80, 100))
def test_every_round_of_a_gaussian_run_is_optimistic_on_the_event(kind: Any, name: str, size: tuple[int, ...]) -> None:
    random, case = np.random.default_rng([SEED, *map(ord, name)]), RUNS[name]
    runs, rounds, least = size
    assert sum(optimistic_rounds(random, case, kind, rounds) for _ in range(runs)) >= least


def optimistic_rounds(random: np.random.Generator, case: Case, kind: Any, rounds: int) -> int:
    """Play with fresh targets every round; return in how many the claim was made, and held."""
    d, m = 3, case.constraints
    safe = np.zeros(d) if case.origin else direction(random, d)
    truths = random_truths(random, d, m, safe)
    noise, known = np.array([case.noise[0], *[case.noise[1]] * m]), [case.reward_known, *[case.cost_known] * m]
    signals = [Signal(truths[k], safe, known[k], noise[k], 0.2 / (1 + m), 0.01) for k in range(1 + m)]
    costs = np.array(truths[1:])
    thresholds = costs @ safe + random.uniform(0.1, 0.5, size=m)
    baseline = SafeAction(
        features=safe,
        reward=float(safe @ truths[0]) if case.reward_known else None,
        cost=costs @ safe if case.cost_known else None,
    )
    agent = Agent(
        kind(safe_action=baseline, threshold=thresholds, noise=noise, delta=0.2, ridge=0.01, mean_cost_bound=2.0)
    )
    actions, observed = np.empty((0, d)), np.empty((0, 1 + m))
    checked = 0
    for _ in range(rounds):
        targets = np.array([direction(random, d) for _ in range(4)])
        decision = agent.decide(targets)
        beliefs = [believed(signal, actions, observed[:, k]) for k, signal in enumerate(signals)]
        if all(belief.holds() for belief in beliefs) and (decision.message is None or case.cost_known):
            best, _ = best_on_rays(safe, targets, truths[0], costs, thresholds)
            if kind is OPLB:
                limits = thresholds
                best = best_mixture(targets @ truths[0], costs @ targets.T, safe @ truths[0], costs @ safe, limits)
            assert decision.optimistic_reward >= best - ROUNDING
            checked += 1
        seen = np.array(truths) @ decision.action + noise * random.normal(size=1 + m)
        agent.learn(decision, reward=seen[0], cost=seen[1:])
        actions, observed = np.vstack([actions, decision.action]), np.vstack([observed, seen])
    return checked


@pytest.mark.long
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("horizon", [None, 400])
@pytest.mark.parametrize("known", [True, False])
@sized((2, 150, 80), (4, 400, 400))
def test_every_round_of_a_run_over_bernoulli_arms_is_optimistic_on_the_event(
    constraints: int, horizon: int | None, known: bool, size: tuple[int, ...]
) -> None:
    random = np.random.default_rng([SEED, constraints, horizon or 0, known])
    arms, checked = 4, 0
    runs, rounds, least = size
    for _ in range(runs):
        truth = random.uniform(size=(1 + constraints, arms))
        truth[1:, 0] = 0.05
        safe = SafeAction(arm=0, reward=float(truth[0, 0]) if known else None, cost=truth[1:, 0] if known else None)
        limits = np.full(constraints, 0.75)
        agent = Agent(
            OPB(arms=arms, safe_action=safe, threshold=limits, horizon=horizon, interval="hoeffding", delta=0.2), seed=1
        )
        pulls, sums = np.zeros(arms), np.zeros((1 + constraints, arms))
        best = best_mixture(truth[0, 1:], truth[1:, 1:].copy(), truth[0, 0], truth[1:, 0], limits)
        for _ in range(rounds):
            decision = agent.decide(ArmSet(arms))
            half = np.array([0.5 * unit_width(max(n, 1), arms, 1 + constraints, horizon, 0.2) for n in pulls])
            inside = np.abs(sums / np.maximum(pulls, 1) - truth) <= half
            if inside[:, pulls > 0].all() and (decision.message is None or known):
                assert decision.optimistic_reward >= best - ROUNDING
                checked += 1
            arm = decision.action
            seen = (random.uniform(size=1 + constraints) < truth[:, arm]).astype(float)
            agent.learn(decision, reward=seen[0], cost=seen[1:])
            pulls[arm], sums[:, arm] = pulls[arm] + 1, sums[:, arm] + seen
    assert checked >= least
