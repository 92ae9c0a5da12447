"""Worlds whose means move: their paths, their clock, late outcomes; the same by hand and in the loop; refusals."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import same

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.world_draws import compute_offset
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.random_key import RandomKey
from stagewise.worlds.world_families import build_world

DAY, START = 86_400.0, 1.7e9
OFFSET = as_python(compute_offset)
STILL = sw.ContextWorld(
    reward=[[0.0], [0.1], [0.05]], cost={"opt_out": [[0.0], [0.004], [0.01]]}, features="plain"
)  # fmt: skip
MOVES = [
    sw.Move(kind="slope", signal="opt_out", action=1, amount=0.2, start="2d", length="4d"),
    sw.Move(kind="season", signal="reward", action=2, amount=0.02, length="7d"),
    sw.Move(kind="hill", signal="reward", action=1, amount=0.3, start="1d", length="2d"),
    sw.Move(kind="jump", signal="opt_out", action=2, amount=-0.5, start="5d"),
]


def build(drift: Any = "0.005/30d") -> sw.Problem:
    limit = sw.Limit(0.2, safe_bound=0.0, drift=drift)
    return sw.Problem(action_names=["a", "b", "c"], safe_name="a", reward=sw.Reward("click"), limits={"opt_out": limit})


def move(**settings: Any) -> sw.MovingWorld:
    options: dict[str, Any] = {"moves": MOVES, "per_day": 20, "start": START}
    return sw.MovingWorld(STILL, **options | settings)


@pytest.mark.parametrize(
    ("kind", "days", "expected"),
    [
        ("slope", [-1, 0, 1, 2, 9], [0, 0, 0.5, 1, 1]),
        ("hill", [-1, 0, 1, 2, 3, 4, 9], [0, 0, 0.5, 1, 0.5, 0, 0]),
        ("season", [-0.5, 0, 0.5, 1, 1.5], [-1, 0, 1, 0, -1]),
        ("jump", [-0.01, 0, 9], [0, 1, 1]),
    ],
)
def test_a_mean_moves_as_its_kind_says(kind: str, days: list[float], expected: list[float]) -> None:
    code, length = ["slope", "hill", "season", "jump"].index(kind), 1.0 if kind == "jump" else 2.0
    row = np.array([code, 0, 0, 0.25, 3.0, length, 0, 0], dtype=float)
    found = [OFFSET(row, np.zeros(0), 3.0 + day) for day in days]
    assert found == pytest.approx([0.25 * one for one in expected], abs=1e-12)


def test_a_path_goes_from_value_to_value_and_back_again() -> None:
    values, row = np.array([0.0, 1.0, 3.0]), np.array([4, 0, 0, 1.0, 0.0, 10.0, 0, 3], dtype=float)
    times = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 45.0]
    assert [OFFSET(row, values, time) for time in times] == pytest.approx([0, 0.5, 1, 2, 3, 2, 1, 0, 0.5])
    row[7] = 1
    assert OFFSET(row, np.array([0.7]), 1e9) == 0.7


def test_means_are_those_of_the_round_and_stay_in_their_range() -> None:
    world = move()
    for round_, click, opt_out in ((0, 0.1, 0.004), (80, 0.25, 0.104), (200, 0.1, 0.204)):
        offered = world.actions_in(RandomKey(seed=1, round=round_))
        assert offered.time == START + round_ * DAY / 20
        assert world.means_at(1, offered) == pytest.approx([click, opt_out], abs=1e-12)
        assert world.means_on(round_ / 20)[:, 1] == pytest.approx([click, opt_out], abs=1e-12)
    assert world.means_on(9.0)[1, 2] == 0.0  # 0.01 − 0.5
    assert world.means_on(1.75)[0, 2] == pytest.approx(0.05 + 0.02 * math.sin(math.pi / 2))


@pytest.mark.parametrize("lag", [0, 1, "1d"])
@pytest.mark.parametrize("drift", ["0.005/30d", "jumps", None])
def test_a_run_is_the_same_by_hand_and_in_the_loop(drift: str | None, lag: Any) -> None:
    world, runs = move(lag=lag), {}
    for backend in ("cpu", "python"):
        plan: dict[str, Any] = {"rounds": 240, "runs": [2], "seed": 4, "backend": backend, "audit": True}
        runs[backend] = sw.simulate(build(drift), world, **plan)
    assert same(runs["cpu"], runs["python"])
    assert runs["cpu"].reward[0, -1] > 0.0


def test_late_outcomes_are_learned_late() -> None:
    results = [sw.simulate(build(), move(lag=lag, moves=[]), rounds=240, runs=3, seed=1) for lag in (0, 40, 240)]
    rewards = [result.reward.mean(axis=1) for result in results]
    assert (rewards[0] > rewards[1]).all()
    assert (rewards[1] > rewards[2]).all()
    assert np.ptp(results[2].cost[0]) == 0.0  # nothing is learned, so every round is as the first
    assert results[1].cost[0, 39] == results[2].cost[0, 39] < results[1].cost[0, 239]


def test_a_start_long_after_the_log_ages_what_was_learned() -> None:
    log = {"action": ["b"] * 900, "click": [1] * 900, "opt_out": [0] * 900}
    log["at"] = [START - DAY + 60.0 * row for row in range(900)]
    rewards = []
    for start in (START, START + 3000 * DAY):
        result = sw.simulate(build(), move(moves=[], start=start), rounds=20, warm_start=log, seed=1)
        rewards.append(float(result.reward.mean()))
    assert rewards[0] > 2.0 * rewards[1] > 0.0


def test_a_world_is_rebuilt_from_its_description_and_from_a_file(tmp_path: Path) -> None:
    world = move(lag="2d")
    assert world.lag == 40
    other = build_world(world.description())
    assert other.description() == world.description()
    path = tmp_path / "spec.toml"
    path.write_text(
        """
        [simulation]
        rounds = 50
        [problem]
        action_names = ["a", "b"]
        safe_name = "a"
        [problem.reward]
        name = "click"
        [problem.limits.opt_out]
        value = 0.2
        safe_bound = 0.0
        drift = "jumps"
        [world]
        kind = "moving"
        per_day = 20
        lag = "1d"
        world = {kind = "context", reward = [[0.0], [0.1]], cost = {opt_out = [[0.0], [0.01]]}, features = "plain"}
        moves = [{kind = "jump", signal = "opt_out", action = 1, amount = 0.1, start = "1d"}]
        """
    )
    from stagewise.cli.spec import read_spec

    found: Any = read_spec(path)
    assert found.world.means_on(2.0)[1, 1] == pytest.approx(0.11)
    assert sw.simulate(found.policy, found.world, rounds=50).violations.tolist() == [0]


def test_a_certificate_of_a_world_that_moves_is_verified(tmp_path: Path) -> None:
    limit = sw.Limit(0.2, safe_bound=0.0, drift=("0.1", "5d"))
    problem = sw.Problem(
        action_names=["a", "b", "c"], safe_name="a", reward=sw.Reward("click"), limits={"opt_out": limit}
    )
    plan: dict[str, Any] = {"rounds": 40, "runs": 4, "backend": "python", "progress": False}
    sw.certify(problem, move(lag="1d"), out=tmp_path, **plan)
    found = sw.verify_certificate(tmp_path / "certificate.json")
    assert (found.equal, found.faults) == (found.runs, ())


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (ErrorCode.TIME_MISSING, lambda: sw.simulate(build(), STILL, rounds=5)),
        (ErrorCode.WORLD_MISMATCH, lambda: sw.MovingWorld(move(), per_day=10)),
        (ErrorCode.WORLD_MISMATCH, lambda: sw.MovingWorld(sw.ArmsWorld(reward=[0.1], cost=[0.1]), per_day=10)),
        (ErrorCode.WORLD_MISMATCH, lambda: sw.MovingWorld(sw.ContextWorld(reward=[[0.1]], cost=[[0.1]]), per_day=10)),
        (ErrorCode.UNKNOWN_SIGNAL, lambda: move(moves=[sw.Move(kind="jump", signal="click", action=0)])),
        (ErrorCode.OUT_OF_RANGE, lambda: move(moves=[sw.Move(kind="jump", signal="reward", action=3)])),
        (ErrorCode.MISSING_VALUE, lambda: sw.Move(kind="slope", signal="reward", action=1)),
        (ErrorCode.MISSING_VALUE, lambda: sw.Move(kind="jump", signal="reward", action=1, length="1d")),
        (ErrorCode.MISSING_VALUE, lambda: sw.Move(kind="path", signal="reward", action=1, length="1d")),
        (ErrorCode.INVALID_CHOICE, lambda: sw.Move(kind="walk", signal="reward", action=1)),  # type: ignore[arg-type]
        (ErrorCode.OUT_OF_RANGE, lambda: move(lag=2_000_000)),
    ],
)
def test_what_cannot_move_is_refused(code: ErrorCode, call: Any) -> None:
    with pytest.raises(InvalidProblem) as found:
        call()
    assert found.value.code == code


def test_a_safe_action_that_will_be_over_the_limit_is_refused() -> None:
    rises = sw.Move(kind="slope", signal="opt_out", action=0, amount=0.3, length="9d")
    with pytest.raises(InvalidProblem) as found:
        sw.simulate(build(), move(moves=[rises]), rounds=5)
    assert found.value.code == ErrorCode.SAFE_ACTION_OVER_LIMIT
