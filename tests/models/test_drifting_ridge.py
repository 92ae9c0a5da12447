"""Linear costs that move: the radius from all rows, valid while the parameter moves, and the same by every way in."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.compile import Floats, kernel
from stagewise.engine.layout import get_model_block
from stagewise.models.drifting_ridge import (
    choose_epoch,
    compute_moved_radius,
    get_epoch_regression,
    learn_drifting_ridge,
)
from stagewise.models.regression import fill_image
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY

START = 1.7e9


def build(drift: Any = "0.05/30d", value: float = 0.5) -> sw.Problem:
    limit = sw.Limit(value, safe_bound=0.0, model="linear", drift=drift)
    return sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", context={"age": (-1.0, 1.0)}, reward=sw.Reward("click"),
        limits={"loss": limit},
    )  # fmt: skip


def make_log(rows: int, per_day: float = 20.0) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    ages = rng.uniform(-1, 1, rows)
    return {
        "action": ["offer"] * rows, "age": ages, "click": [1.0] * rows, "at": START + np.arange(rows) * DAY / per_day,
        "loss": np.clip(0.1 + 0.05 * ages + rng.uniform(-0.05, 0.05, rows), 0, 1),
    }  # fmt: skip


def read_bound(agent: Any, now: float, age: float) -> float:
    """Return the upper bound of the offer's cost."""
    policy, encoded = agent.policy, agent.policy.problem.encode_context({"age": age}).at(now)
    table = policy.rounds.play(agent.state.memory, policy.rows_for(encoded), encoded.get_eligible(2), (0, 0, 0))
    return float(table.workspace.bounds[1, 0, 1] + table.workspace.bounds[1, 1, 1])


@pytest.mark.parametrize("drift", ["0.05/30d", ("0.05", "30d")])
def test_the_bound_is_that_of_the_theorem_for_the_epoch_before(drift: Any) -> None:
    agent, log = sw.Agent(build(drift), seed=1), make_log(2200)
    agent.learn_log_frame(log)
    length = 0.5 / (0.05 / 30) / 8 * DAY
    epoch = int((log["at"][-1] - START) // length)  # the one before the newest
    since = log["at"] >= START + (epoch - 1) * length
    assert epoch == 2
    now = float(log["at"][-1])
    for later in (0.0, 5 * DAY):
        for age in (-0.5, 1.0):
            expected = compute_bound(agent, log, since, epoch, now + later, age, isinstance(drift, tuple))
            assert read_bound(agent, now + later, age) == pytest.approx(expected, abs=1e-9)


def compute_bound(
    agent: Any, log: dict[str, Any], since: Any, number: int, now: float, age: float, has_budget: bool = False
) -> float:
    """Return the upper bound of the theorem, from some rows of a log, for the action's epoch of this number."""
    x, policy = np.column_stack([np.ones(len(log["age"])), log["age"]])[since], agent.policy
    _, block = list(policy.rounds.iter_blocks(agent.state.memory))[1]
    ridge, noise, bound, confidence = policy.settings[block.settings + 7 :][[0, 3, 4, 5]]
    gram = ridge * np.eye(2) + x.T @ x
    fit = np.linalg.solve(gram, x.T @ log["loss"][since])
    ages = now - log["at"][since]
    moved = 0.05 * math.sqrt(ages.size) * has_budget + 0.05 / (30 * DAY) * math.sqrt(float(ages @ ages))
    log_det = np.linalg.slogdet(gram / ridge)[1]
    radius = noise * math.sqrt(log_det + 2 * (confidence + math.log(number * (number + 1))))
    radius += bound * math.sqrt(ridge) + moved
    u = np.array([1.0, age])
    return min(float(fit @ u) + radius * math.sqrt(float(u @ np.linalg.solve(gram, u))), 1.0)


def test_every_epoch_that_a_person_forgets_has_a_share_of_its_own() -> None:
    agent, log, parts = sw.Agent(build(), seed=1), make_log(4500, 100.0), np.arange(4500) // 900  # 9 days each
    for part in range(3):  # all within the grid's first step, of 37.5 days
        rows = parts == part
        agent.learn_log_frame({name: np.array(column)[rows] for name, column in log.items()})
        now = float(log["at"][rows][-1])
        expected = compute_bound(agent, log, rows, 1 + part, now, 0.5)
        assert read_bound(agent, now, 0.5) == pytest.approx(expected, abs=1e-9)
        assert expected < 0.8
        agent.forget_costs("offer", before=START)  # nothing began before
        assert read_bound(agent, now, 0.5) == pytest.approx(expected, abs=1e-9)
        agent.forget_costs("offer", before=now)
        assert read_bound(agent, now, 0.5) == 1.0
    agent.learn_log_frame({name: np.array(column)[parts >= 3] for name, column in log.items()})
    now = float(log["at"][-1])
    before = compute_bound(agent, log, parts >= 3, 4, now, 0.5)
    assert read_bound(agent, now, 0.5) == pytest.approx(before, abs=1e-9)
    agent.forget_costs("offer", before=START + 30 * DAY)  # of the grid's second step nothing
    young = compute_bound(agent, log, log["at"] >= START + 37.5 * DAY, 5, now, 0.5)
    assert read_bound(agent, now, 0.5) == pytest.approx(young, abs=1e-9)


def test_one_by_one_a_log_a_file_and_a_replica_are_the_same(tmp_path: Path) -> None:
    problem, log = build(), make_log(250, 1.0)
    assert sw.Problem.from_dict(problem.to_dict()).to_dict() == problem.to_dict()
    one, whole = sw.Agent(problem, seed=1), sw.Agent(problem, seed=1)
    for row in range(250):
        now, context = float(log["at"][row]), {"age": float(log["age"][row])}
        decision = one.decide(context, propose="nothing", now=now)
        one.learn(decision, click=0.0, loss=0.0, now=now)
    nothing = {**log, "action": ["nothing"] * 250, "click": [0.0] * 250, "loss": [0.0] * 250}
    whole.learn_log_frame(nothing)
    assert one.state.memory.tobytes() == whole.state.memory.tobytes()
    whole.learn_log_frame({**make_log(2000), "at": make_log(2000)["at"] + 260 * DAY})
    whole.save(tmp_path / "agent.json")
    late, others = (
        START + 370 * DAY,
        [sw.Agent.load(tmp_path / "agent.json"), sw.Replica(whole.replica_snapshot(), name="pod")],
    )
    decisions = [agent.decide({"age": 0.2}, propose="offer", now=late) for agent in (whole, *others)]  # type: ignore[attr-defined]
    assert decisions[0].probabilities == decisions[1].probabilities == decisions[2].probabilities
    older = whole.decide({"age": 0.2}, propose="offer", now=late + 200 * DAY)
    assert 0.0 < older.probabilities["offer"] < decisions[0].probabilities["offer"]
    whole.forget_costs("offer", before=late + DAY)
    assert read_bound(whole, late, 0.2) == 1.0


def test_what_has_no_theorem_is_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        build("jumps")
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        sw.Limit(0.02, model="logistic", drift="0.005/30d")


@kernel
def count_misses(
    layout: Any, settings: Floats, memory: Floats, row: Floats, image: Floats, work: Floats, observed: Floats,
    rounds: int, speed: float, seed: int,
) -> float:  # fmt: skip
    """Return 1 if the upper bound of a user at ±1 is ever missed while the parameter swings at this speed a round."""
    block, level, direction, state = get_model_block(layout, memory, 1), 0.3, 1.0, seed
    for t in range(rounds):
        state = (state * 1103515245 + 12345) % 2147483648
        row[2] = 1.0 if (state >> 16) % 2 == 0 else -1.0
        row[3] = t * 864.0
        mean = level + 0.1 * row[2]
        which = choose_epoch(block, memory, 1)
        regression, form, fit = get_epoch_regression(block, memory, 1, which), 0.0, 0.0
        fill_image(regression.learned, row[1:3], image)
        for i in range(2):
            form += image[i] * image[i]
            fit += regression.learned[2, i] * row[1 + i]
        if t > 0 and mean > fit + compute_moved_radius(block, 1, which, row[3], settings, memory) * math.sqrt(form):
            return 1.0
        state = (state * 1103515245 + 12345) % 2147483648
        observed[0] = 1.0 if (state >> 8) % 65536 < mean * 65536.0 else 0.0
        learn_drifting_ridge(layout, block, row, 0, 0, 1.0, False, observed, settings, memory, work)
        direction = 1.0 if level <= 0.2 else -1.0 if level >= 0.8 else direction
        level += direction * speed
    return 0.0


@pytest.mark.compiled
def test_bounds_hold_while_the_parameter_moves_and_break_without_its_term() -> None:
    misses = []
    for declared in (0.6, 0.006):
        policy = SafeContextPosteriorSampling(
            actions=2, context=1, safe_action=sw.SafeAction(arm=0, reward=0.1), threshold=0.5, cost_model="linear",
            reward_model="rates", norm_bound=1.0, drift={"cost": f"{declared}/30d"}, delta=0.2,
        )  # fmt: skip
        found = 0.0
        for run in range(20):
            buffers = np.array([1.0, 1.0, 0.0, 0.0]), np.zeros(2), np.zeros(64), np.zeros(1)
            memory = policy.start().memory.copy()
            found += count_misses(policy.layout, policy.settings, memory, *buffers, 20_000, 0.6 / 3000.0, 5 + run)
        misses.append(found)
    assert misses[0] <= allowed(20, 0.2)
    assert misses[1] > allowed(20, 0.2)
