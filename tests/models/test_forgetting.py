"""A reward that is forgotten: weighted sums by hand, in any order, for ever; and the same by every way in."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.workspace import ESTIMATE
from stagewise.models.cholesky import factorise
from stagewise.models.forgetting import CELL_SIZE, RECENT, SETTINGS_SIZE, WEIGHT, invert_root, learn_forgetting
from stagewise.models.intervals import compute_average_interval
from stagewise.models.segment_rates import MEAN, NUMBERS, PULLS, RatesBlock
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY
from stagewise.records.decision import RewardGuarantee

START, HALF = 1.7e9, 10.0
CONTEXT = {"age": (18.0, 99.0)}


def build(half_life: Any = "10d", **settings: Any) -> sw.Problem:
    limit = sw.Limit(0.2, safe_bound=0.0, model="rates", drift="jumps")
    return sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click", half_life=half_life),
        limits={"opt_out": limit}, **settings,
    )  # fmt: skip


def make_log(rows: int, seed: int = 1) -> dict[str, Any]:
    """Return a log whose clicks fall from .6 to .1."""
    rng = np.random.default_rng(seed)
    days = np.arange(rows) * 40.0 / rows
    clicks = (rng.random(rows) < np.where(days < 20, 0.6, 0.1)).astype(float)
    return {"action": ["offer"] * rows, "click": clicks, "opt_out": [0.0] * rows, "at": START + days * DAY}


def read_table(agent: Any, now: float, context: Any = None) -> Floats:
    """Return the table of bounds of the reward at a time."""
    policy, encoded = agent.policy, agent.policy.problem.encode_context(context).at(now)
    rows = policy.rows_for(encoded)
    return np.array(
        policy.rounds.play(agent.state.memory, rows, encoded.get_eligible(2), (0, 0, 0)).workspace.bounds[0]
    )


def test_rates_are_weighted_by_age_and_widen_until_the_next_outcome() -> None:
    agent, log = sw.Agent(build(), seed=1), make_log(400)
    agent.learn_log_frame(log)
    end = float(log["at"][-1])
    weights = 0.5 ** ((end - log["at"]) / (HALF * DAY))
    mean = float(weights @ log["click"] / weights.sum())
    ends = as_python(compute_average_interval)(weights.sum(), mean, *read_levels(agent))
    for later in (0.0, 10.0, 300.0):
        table, stretch = read_table(agent, end + later * DAY), 2.0 ** (later / HALF / 2)
        low, high = table[0, 1] - table[1, 1], table[0, 1] + table[1, 1]
        assert low == pytest.approx(max(mean - (mean - ends.low) * stretch, 0.0), abs=1e-12)
        assert high == pytest.approx(min(mean + (ends.high - mean) * stretch, 1.0), abs=1e-12)
    assert mean < 0.25 < np.mean(log["click"])


def read_levels(agent: Any) -> tuple[float, float]:
    """Return log 1/δ' of both ends of the offer's reward."""
    _, block = next(agent.policy.rounds.iter_blocks(agent.state.memory))
    low, high = agent.policy.settings[block.settings + 2 : block.settings + 4]
    spent = agent.policy.settings[block.settings + NUMBERS + 1]
    return float(low + spent), float(high + spent)


def test_regressions_are_weighted_least_squares() -> None:
    agent, log, rng = sw.Agent(build(context=CONTEXT), seed=1), make_log(300), np.random.default_rng(2)
    log["age"] = rng.uniform(18, 99, 300)
    agent.learn_log_frame(log)
    end, policy = float(log["at"][-1]), agent.policy
    x = np.column_stack([np.ones(300), (log["age"] - 18) / 81 * 2 - 1])
    weights = 0.5 ** ((end - log["at"]) / (HALF * DAY))
    _, block = next(policy.rounds.iter_blocks(agent.state.memory))
    ridge = float(policy.settings[block.settings + 7])
    gram = ridge * np.eye(2) + (x * weights[:, None]).T @ x
    fit = np.linalg.solve(gram, x.T @ (weights * log["click"]))
    for age in (20.0, 90.0):
        u = np.array([1.0, (age - 18) / 81 * 2 - 1])
        table = read_table(agent, end, {"age": age})
        late = read_table(agent, end + 10 * DAY, {"age": age})
        assert late[1, 1] >= table[1, 1]
        assert table[ESTIMATE, 1] == pytest.approx(float(np.clip(fit @ u, 0.0, 1.0)), abs=1e-12)


@pytest.mark.parametrize("context", [{}, CONTEXT], ids=["rates", "linear"])
def test_one_by_one_a_log_a_file_and_a_replica_are_the_same(tmp_path: Path, context: Any) -> None:
    problem, log = build(context=context), make_log(200)
    assert sw.Problem.from_dict(problem.to_dict()).to_dict() == problem.to_dict()
    user = {"age": 30.0} if context else {}
    one, whole = sw.Agent(problem, seed=1), sw.Agent(problem, seed=1)
    for row in range(200):
        now = float(log["at"][row])
        decision = one.decide(user, propose="nothing", now=now)
        one.learn(decision, click=log["click"][row], opt_out=0.0, now=now)
    whole.learn_log_frame({**log, "action": ["nothing"] * 200, **{name: [30.0] * 200 for name in user}})
    assert one.state.memory.tobytes() == whole.state.memory.tobytes()
    whole.save(tmp_path / "agent.json")
    late, others = (
        START + 50 * DAY,
        [sw.Agent.load(tmp_path / "agent.json"), sw.Replica(whole.replica_snapshot(), name="pod")],
    )
    decisions = [agent.decide(user, propose="nothing", now=late) for agent in (whole, *others)]  # type: ignore[attr-defined]
    assert len({(one.optimistic_reward, one.estimated_reward) for one in decisions}) == 1
    assert decisions[0].reward_guarantee is RewardGuarantee.FORGETTING
    again = sw.Decision.from_dict(decisions[0].to_dict())
    assert again.to_dict() == decisions[0].to_dict()
    assert again.reward_guarantee is RewardGuarantee.FORGETTING  # type: ignore[attr-defined]
    table = sw.decide_frame(
        whole.replica_snapshot(), {"user_id": [1], **{name: [30.0] for name in user}}, run="x", now=late
    )
    assert table["reward_guarantee"].tolist() == ["forgetting"]
    constant = sw.Agent(build(None, context=context), seed=1).decide(user, now=late)
    assert constant.reward_guarantee is RewardGuarantee.PROVED
    assert "reward_guarantee" not in constant.to_dict()


def test_what_moved_is_forgotten_and_a_reward_without_one_is_not() -> None:
    log = make_log(2000)
    rates = {}
    for half_life in ("5d", None):
        agent = sw.Agent(build(half_life), seed=1)
        agent.learn_log_frame(log)
        rates[half_life] = agent.decide(propose="offer", now=START + 41 * DAY).estimated_reward
        assert agent.health()["drift of click"].verdict != "doubtful" or half_life is None
    assert rates["5d"] < 0.2 < rates[None]  # type: ignore[operator]


def test_simulations_know_the_age_of_rewards() -> None:
    """Clicks of the first action fall on day 20: only the policy that forgets leaves it."""
    still = sw.ContextWorld(reward=[[0.3], [0.8], [0.5]], cost=[[0.0], [0.01], [0.01]], features="plain")
    falls = sw.Move(kind="jump", signal="reward", action=1, amount=-0.7, start="20d")
    world, regrets = sw.MovingWorld(still, moves=[falls], per_day=50), []
    for half_life in (5.0 * DAY, None):
        policy = sw.SafeContextPosteriorSampling(
            actions=3, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5, reward_model="rates",
            reward_half_life=half_life,
        )  # fmt: skip
        result = sw.simulate(policy, world, rounds=2000, runs=1, seed=1, backend="cpu", progress=False)
        regrets.append(result.regret[:, -1].max())
    assert regrets[0] < 0.8 * regrets[1]


def test_half_lives_that_cannot_be_are_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.INVALID_TIME, "half-life"):
        sw.Reward("click", half_life="a month")
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS, "half_life"):
        sw.Reward("click", half_life="1d", model="given")
    policy = build().policy()
    with refused(sw.InvalidActions, ErrorCode.TIME_MISSING):
        policy.decide(policy.start(), sw.ContextVector())


@kernel
def learn_many(
    rounds: int, period: float, block: RatesBlock, settings: Floats, row: Floats, memory: Floats, gram: Floats,
    root: Floats,
) -> None:  # fmt: skip
    """Learn outcomes for ever: 1 in the first half of every period of rounds, else 0; and the gram of waves."""
    for t in range(rounds):
        row[1] = float(t)
        value = 1.0 if t % period < 0.5 * period else 0.0
        memory[PULLS] += 1.0
        memory[MEAN] += (value - memory[MEAN]) / memory[PULLS]
        learn_forgetting(block, row, value, 3.0, 3.0, settings, memory, 0)
        wave = math.sin(0.1 * t)
        kept = math.exp(-math.log(2.0) / settings[block.settings + NUMBERS + 2 * block.size + 1])
        gram[0, 0] = gram[0, 0] * kept + 1.0
        gram[1, 0] = gram[1, 0] * kept + wave
        gram[1, 1] = gram[1, 1] * kept + wave * wave
    invert_root(gram, 1.0, root)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("half_life", [1e3, 1e6])
def test_ten_million_rounds_leave_no_rounding(half_life: float) -> None:
    rounds, period = 10**7, 7001.0
    block = RatesBlock(0, 1, 1, CELL_SIZE, 1, 0, -1, 0, 0, 0)
    settings, cell = np.zeros(NUMBERS + 1 + SETTINGS_SIZE), np.zeros(CELL_SIZE)
    settings[NUMBERS + 1 :] = 1.0, half_life
    gram, root = np.zeros((2, 2)), np.zeros((3, 2))
    learn_many(rounds, period, block, settings, np.zeros(2), cell, gram, root)
    t = np.arange(rounds, dtype=np.float64)
    weights = np.exp2((t - (rounds - 1)) / half_life)
    values, wave = (t % period < 0.5 * period).astype(float), np.sin(0.1 * t)
    assert cell[WEIGHT] == pytest.approx(weights.sum(), rel=1e-9)
    assert cell[RECENT] == pytest.approx(weights @ values / weights.sum(), abs=1e-9)
    exact = np.array([[weights.sum(), weights @ wave], [weights @ wave, weights @ wave**2]])
    assert root[:2].T @ root[:2] @ (exact + np.eye(2)) == pytest.approx(np.eye(2), abs=1e-7)
    assert as_python(factorise)(gram + np.eye(2), np.zeros((2, 2)))
