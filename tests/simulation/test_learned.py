"""Runs that begin with what was learned before: by hand, in Python and in the loop they are the same to the bit."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import same
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

RNG = np.random.default_rng(3)
K, N = 3, 30
PROBLEM = sw.Problem(
    action_names=["nothing", "digest", "offer"],
    safe_name="nothing",
    context={"age": (18, 98)},
    reward=sw.Reward("click"),
    limits={
        "opt_out": sw.Limit(0.3, safe_bound=0.1, model="rates"),
        "complaint": sw.Limit(0.4, safe_bound=0.2, by="country"),
    },
)
FRAME: dict[str, Any] = {
    "action": RNG.choice(PROBLEM.action_names, 400).tolist(),
    "age": RNG.uniform(18, 98, 400),
    "country": RNG.choice(["NZ", "AU", "FJ"], 400).tolist(),
    "click": RNG.integers(0, 2, 400),
    "opt_out": RNG.random(400) < 0.05,
    "complaint": RNG.random(400) < 0.05,
}


def learned(seed: int = 5) -> sw.Agent:
    agent = sw.Agent(PROBLEM, seed=seed)
    agent.learn_log_frame(FRAME)
    return agent


def users() -> sw.UserTableWorld:
    rng = np.random.default_rng(6)
    segments = rng.integers(0, 4, N).astype(float)  # all new beside those of the log
    costs = np.stack([rng.uniform(0.0, 0.08, (N, K)), rng.uniform(0.0, 0.15, (N, K))])
    return sw.UserTableWorld(
        users=np.column_stack([rng.uniform(-1, 1, N), segments]),
        reward=rng.uniform(0.1, 0.6, (N, K)),
        cost=costs,
        segment_columns=1,
        noise=[0.5, 1.0, 1.0],
    )


PLAN: dict[str, Any] = {"rounds": 120, "runs": [0, 2], "seed": 5, "record_points": 120, "audit": True}


def agree(policy: Any, world: Any, begun: Any, **plan: Any) -> sw.Result:
    told = {**PLAN, **plan, "warm_start": begun}
    runs = [sw.simulate(policy, world, **told, backend=backend) for backend in ("cpu", "python")]
    assert same(*runs)
    return runs[0]


@pytest.mark.long
def test_a_problem_goes_on_from_an_agent_a_state_and_a_log_alike() -> None:
    agent = learned()
    results = [agree(PROBLEM, users(), begun) for begun in (agent, agent.state, FRAME)]
    assert all(same(results[0], other) for other in results[1:])
    assert not np.array_equal(results[0].reward, sw.simulate(PROBLEM, users(), **PLAN).reward)
    assert [result.manifest["warm_start"]["from"] for result in results] == ["an agent", "a state", "a log"]
    assert len({result.manifest["warm_start"]["digest"] for result in results}) == 1


def test_an_agent_stands_for_its_policy_and_what_it_has_learned() -> None:
    plan: dict[str, Any] = {"rounds": 40, "record_points": 40, "seed": 5}
    for agent, warm_start in ((sw.Agent(PROBLEM), None), (learned(), learned())):
        before = agent.state.memory.copy()
        by_agent = sw.simulate(agent, users(), **plan)
        by_problem = sw.simulate(PROBLEM, users(), warm_start=warm_start, **plan)
        assert ("warm_start" in by_agent.manifest) == (warm_start is not None)
        np.testing.assert_array_equal(by_agent.reward, by_problem.reward)
        np.testing.assert_array_equal(agent.state.memory, before)


def test_an_agent_by_hand_goes_on_as_the_run_does() -> None:
    agent, world, names = learned(), users(), PROBLEM.signals
    begun, rewards = agent.state, []
    for t in range(60):
        rows = world.actions_in(sw.RandomKey(5, 0, t))
        decision = agent.decide(sw.ContextVector(rows.features[0, 2:3], rows.features[0, 3:].astype(int)))
        chances = list(decision.probabilities.values())
        means = [world.action_means(a, rows.features[a])[0] for a in range(K)]
        rewards.append(sum(p * mean for p, mean in zip(chances, means, strict=False)))
        seen = world.action_outcome(decision.action_index, rows.features[decision.action_index], sw.RandomKey(5, 0, t))
        agent.learn(decision, **dict(zip(names, [seen.reward, *seen.cost], strict=True)))
    result = sw.simulate(PROBLEM, world, warm_start=begun, rounds=60, record_points=60, seed=5)
    np.testing.assert_allclose(result.reward[0], rewards, rtol=1e-12)


LINEAR = sw.LinearWorld(
    reward=[0.6, 0.8], cost=[0.3, 0.2], noise=0.1, actions=sw.FiniteSet([[0.5, 0.0], [0.0, 0.5], [0.4, 0.4]])
)


@pytest.mark.parametrize("offered", [False, True])
def test_linear_actions_that_come_back(offered: bool) -> None:
    policy = sw.OPLB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.2, noise=0.1, norm_bound=1.0)
    agent = sw.Agent(policy, seed=1)
    if offered:
        for t in range(20):
            decision = agent.decide(LINEAR.actions)
            seen = LINEAR.outcome(decision.action, sw.RandomKey(9, 9, t))
            agent.learn(decision, reward=seen.reward, cost=seen.cost)
    else:
        agent.learn_log([[0.5, 0.0], [0.0, 0.5]] * 20, [0.3, 0.4] * 20, [0.1, 0.1] * 20)
    agree(policy, LINEAR, agent, runs=1)


def test_arms() -> None:
    policy = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    agent = sw.Agent(policy)
    agent.learn_log([0, 1, 2, 1] * 10, [0.0, 1.0, 1.0, 0.0] * 10, [0.0, 0.0, 1.0, 0.0] * 10)
    agree(policy, sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.1, 0.6]), agent)


def test_a_folder_is_of_what_was_learned(tmp_path: Any) -> None:
    plan = {**PLAN, "rounds": 5, "record_points": 5, "runs": 1}
    sw.simulate(PROBLEM, users(), warm_start=learned(), out=tmp_path, **plan)
    sw.simulate(PROBLEM, users(), warm_start=FRAME, out=tmp_path / "other", **plan)
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        sw.simulate(PROBLEM, users(), out=tmp_path, **plan)


class Own:
    def start(self) -> None: ...
    def decide(self, state: Any, actions: Any, draw: Any = None) -> Any: ...
    def learn(self, state: Any, decision: Any, outcome: Any) -> Any: ...


def test_what_cannot_have_been_learned_is_refused() -> None:
    told: dict[str, Any] = {"safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.2}
    arms, world = sw.OPB(arms=2, **told), sw.ArmsWorld(reward=[0.1, 0.5], cost=[0.0, 0.1])
    for warm_start, code in (
        (learned(), ErrorCode.STATE_MISMATCH),
        (sw.Agent(sw.OPB(arms=2, **told | {"threshold": 0.3})), ErrorCode.STATE_MISMATCH),
        (sw.PolicyState(np.zeros(3)), ErrorCode.STATE_MISMATCH),
        ("log.csv", ErrorCode.WRONG_TYPE),
    ):
        with refused(sw.InvalidProblem, code):
            sw.simulate(arms, world, warm_start=warm_start, rounds=2)
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        limited = sw.OPB(arms=2, horizon=10, **told)
        sw.simulate(limited, world, warm_start=sw.Agent(limited), rounds=2)
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED):
        sw.simulate(Own(), world, warm_start=sw.PolicyState(np.zeros(3)), rounds=2)
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_BACKEND):
        sw.simulate(arms, world, warm_start=sw.Agent(arms), rounds=2, backend="cuda")
