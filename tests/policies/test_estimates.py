"""The estimates beside the bounds: of what is played, of every action, and what was sampled."""

import pickle
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.agent.decision_analysis import compute_estimates
from stagewise.policies.problem import Problem

SAID = Problem(
    action_names=["nothing", "digest", "offer"],
    safe_name="nothing",
    context={"age": (18.0, 98.0)},
    reward=sw.Reward("minutes", low=0.0, high=30.0),
    limits={
        "opt_out": sw.Limit(0.1, safe_bound=0.0, by="country"),
        "stars": sw.Limit(sw.AtLeast(2.0), low=1.0, high=5.0, safe_bound=4.0, model="rates"),
    },
    delta=0.05,
)
MEANS = {"nothing": (0.1, 0.0, 4.5), "digest": (6.0, 0.02, 4.0), "offer": (9.0, 0.15, 3.0)}


def taught(rounds: int = 400, **settings: Any) -> tuple[sw.Agent, Any]:
    """Return an agent that has learned, and its next decision, of which nothing is learned yet."""
    agent, people = sw.Agent(SAID, seed=3, **settings), np.random.default_rng(0)
    for _ in range(rounds):
        decision = agent.decide({"age": people.uniform(18, 98), "country": people.choice(["NZ", "FR"])})
        reward, leave, stars = MEANS[decision.action]
        told = {"minutes": people.uniform(0, 2 * reward), "opt_out": float(people.random() < leave), "stars": stars}
        agent.learn(decision.id, **told)
    return agent, agent.decide({"age": 40.0, "country": "NZ"})


def test_they_are_what_the_models_estimate_and_not_the_middle_of_an_interval() -> None:
    agent, decision = taught()
    seen = decision._round_result
    bounds = seen.workspace.bounds
    fits = compute_estimates(seen, agent.state.memory, bounds[:, 0], bounds[:, 1])
    assert seen.estimates == pytest.approx(fits, abs=1e-12)
    assert np.abs(seen.estimates - bounds[:, 0]).max() > 0.01
    weights = np.append(list(decision.probabilities.values()), 0.0)
    assert decision.estimated_reward == pytest.approx(30.0 * weights @ fits[0])
    assert decision.estimated_cost == pytest.approx(
        {"opt_out": weights @ fits[1], "stars": 1.0 - 4.0 * weights @ fits[2]}
    )


def test_every_limit_has_its_estimate_within_its_bound() -> None:
    for rounds in (0, 40, 400):
        decision: Any = taught(rounds)[1]
        limits = decision.limits
        assert {name: one.estimate for name, one in limits.items()} == decision.estimated_cost
        assert limits["opt_out"].estimate <= limits["opt_out"].pessimistic_cost <= limits["opt_out"].threshold
        assert limits["stars"].estimate >= limits["stars"].pessimistic_cost >= limits["stars"].threshold
        assert decision.to_dict()["limits"]["stars"]["estimate"] == limits["stars"].estimate
        assert decision.to_dict()["estimated_reward"] == decision.estimated_reward <= decision.optimistic_reward


def test_learning_later_changes_no_estimate_of_a_decision() -> None:
    agent, decision = taught()
    before = decision.estimated_reward, decision.estimated_cost, decision.explain()
    agent.learn(decision.id, minutes=30.0, opt_out=1.0, stars=1.0)
    assert (decision.estimated_reward, decision.estimated_cost, decision.explain()) == before


def test_they_travel_with_a_decision() -> None:
    agent, decision = taught()
    copy = pickle.loads(pickle.dumps(decision))
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    for one in (copy, decision._replace(solver_gap=0.1)):
        assert (one.estimated_reward, one.estimated_cost) == (decision.estimated_reward, decision.estimated_cost)
        assert one.explain() == decision.explain()
    assert replica.decide({"age": 40.0, "country": "NZ"}).estimated_reward is not None


def test_a_contradiction_shows_what_the_data_say() -> None:
    agent = sw.Agent(SAID, seed=1)
    for _ in range(200):
        decision: Any = agent.decide({"age": 40.0, "country": "NZ"})
        agent.learn(decision.id, minutes=1.0, opt_out=1.0, stars=4.5)
    decision = agent.decide({"age": 40.0, "country": "NZ"})
    assert decision.message is not None
    assert decision.estimated_cost["opt_out"] == 1.0 > decision.limits["opt_out"].threshold


def test_where_nothing_is_estimated_nothing_is_shown() -> None:
    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    decision = pickle.loads(pickle.dumps(policy.decide(policy.start(), sw.ArmSet(2))))
    assert (decision.estimated_reward, decision.estimated_cost) == (None, None)
    assert decision.to_dict()["estimated_reward"] is None
    (line,) = [line for line in decision.explain().splitlines() if line.startswith("* ")]
    assert line.split() == ["*", "arm", "0", "-", "0.1000", "-", "0.0000", "1.0000"]


def test_on_a_ray_they_are_those_of_the_point_that_is_played() -> None:
    random, theta, mu = np.random.default_rng(4), np.array([0.6, 0.3]), np.array([0.2, -0.4])
    safe = sw.SafeAction(features=[0.1, 0.0], reward=0.06, cost=0.02)
    for policy in (
        sw.LCLUCB(safe_action=safe, threshold=0.2, noise=0.01),
        sw.SafePosteriorSampling(safe_action=safe, threshold=0.2, noise=0.01),
    ):
        agent = sw.Agent(policy, seed=1)
        for _ in range(300):
            targets = random.uniform(-0.7, 0.7, size=(4, 2))
            decision = agent.decide(sw.RaySet(targets))
            agent.learn(decision, reward=theta @ decision.action, cost=mu @ decision.action)
        decision = agent.decide(sw.RaySet(np.eye(2)))
        assert decision.estimated_reward == pytest.approx(theta @ decision.action, abs=0.02)
        assert decision.estimated_cost == pytest.approx([mu @ decision.action], abs=0.02)
        (played,) = [row for row in decision._table().rows if row.played]  # type: ignore[misc]
        assert (played.estimate, played.cost_estimates) == (decision.estimated_reward, tuple(decision.estimated_cost))


def decided(kind: str, max_regret_ratio: float) -> list[Any]:
    """Return decisions of a certified policy on its way, before each is learned from."""
    random, made = np.random.default_rng(2), []
    if kind == "arms":
        policy: Any = sw.SafeArmPosteriorSampling(
            arms=4,
            safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0),
            threshold=0.1,
            max_regret_ratio=max_regret_ratio,
        )
        offered: Any = sw.ArmSet(4)
    else:
        safe = sw.SafeAction(features=np.zeros(3), **({} if kind == "unknown" else {"reward": 0.0, "cost": 0.0}))
        settings: Any = {
            "threshold": 0.3,
            "noise": 0.05,
            "mixtures": kind == "mixtures",
            "max_regret_ratio": max_regret_ratio,
        }
        policy = sw.SafePosteriorSampling(safe_action=safe, **settings)
        targets = random.uniform(-0.5, 0.5, size=(5, 3))
        offered = sw.FiniteSet(targets) if kind == "mixtures" else sw.RaySet(targets)
    agent = sw.Agent(policy, seed=1)
    for _ in range(250):
        decision = agent.decide(offered)
        if kind == "arms":
            reward, cost = (
                float(random.random() < 0.2 * decision.action),
                float(random.random() < 0.04 * decision.action),
            )
        else:
            reward, cost = float(decision.action[0]), float(decision.action[1])
        made.append(decision)
        agent.learn(decision, reward=reward, cost=cost)
    return made


@pytest.mark.parametrize("kind", ["arms", "mixtures", "rays", "unknown"])
def test_what_was_sampled_tells_why_this_one(kind: str) -> None:
    """Where posterior sampling is said to have proposed it, what is played has the highest sampled value."""
    told: dict[bool, int] = {True: 0, False: 0}
    for decision in (*decided(kind, 1.0), *decided(kind, 5.0)):
        table = decision._table()
        if decision.message is not None:
            assert all(row.sampled is None for row in table.rows)
            continue
        certified = "not certified" not in table.why
        told[certified] += 1
        mixed = [row for row in table.rows if row.weight > 0.0 and row.label != "mixture"]
        single = mixed[0] if kind in ("arms", "mixtures") and len(mixed) == 1 else None
        if kind in ("rays", "unknown"):
            (single,) = [row for row in table.rows if row.played]
        assert all(row.sampled is not None for row in table.rows)
        if single is None or not certified:
            continue
        others = [
            row
            for row in table.rows
            if all(c <= t for c, t in zip(row.pessimistic_cost, table.thresholds, strict=True))
        ]
        values = [row.sampled if row.score is None else row.score for row in others]
        assert (single.sampled if single.score is None else single.score) == max(values)
    assert told[True] > 20
    assert kind == "arms" or told[False] > 0, "the optimistic choice never occurred"


def test_a_mixture_has_a_row_of_its_own() -> None:
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    decision = policy.decide(policy.start(), sw.ArmSet(2), sw.RandomKey(seed=1))
    *rows, mixture = decision._table().rows  # type: ignore[misc]
    assert mixture.label == "mixture"
    assert mixture.weight == pytest.approx(1.0)
    assert (
        mixture.estimate == pytest.approx(sum(row.weight * row.estimate for row in rows)) == decision.estimated_reward
    )
    assert mixture.pessimistic_cost == pytest.approx(tuple(decision.pessimistic_cost))
    assert mixture.cost_estimates == tuple(decision.estimated_cost)
