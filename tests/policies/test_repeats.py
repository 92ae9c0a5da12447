"""A log that is given twice counts once, unless somebody says that it is another one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_problem import problem
from tests.policies.test_problem_frames import FRAME
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.agent import agent_statistics as duplicate_logs
from stagewise.problem.errors import ErrorCode

AGAIN = ("again=True",)


def arms() -> sw.Agent:
    return sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5, interval="kl"))


def coins(count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(seed)
    return chance.integers(0, 2, count), chance.random(count) < 0.5, chance.random(count) < 0.1


def test_a_log_and_a_frame_of_the_same_rows_are_the_same() -> None:
    agent, (pulled, rewards, costs) = arms(), coins(100)
    agent.learn_log(pulled, rewards, costs)
    refuses(
        lambda: agent.learn_log_frame({"a": pulled, "r": rewards, "cost": costs}, action="a", reward="r"),
        sw.InvalidOutcome,
        ErrorCode.LOG_ALREADY_LEARNED,
        *AGAIN,
    )
    agent.learn_log(pulled, rewards, costs, again=True)
    agent.learn_log(*coins(100, 1))


def test_what_honest_logs_may_have_in_common_is_not_refused() -> None:
    agent = arms()
    for _ in range(3):
        agent.learn_log([1] * 20, [0.0] * 20, [0.0] * 20)
        agent.learn_log([1], [0.0], [1.0])
    agent.learn_log(np.zeros(5000, dtype=int), np.zeros(5000), np.zeros(5000))
    agent.learn_log(np.zeros(5000, dtype=int), np.zeros(5000), np.zeros(5000))


def test_honest_logs_that_are_the_same_are_as_rare_as_is_said() -> None:
    """Of coins, logs of n rows agree with probability 2⁻ⁿ: below 30 nats nothing is said, above them something is."""
    for count, told in ((40, False), (48, True)):
        coin = np.tile([0.0, 1.0], count // 2)
        assert (duplicate_logs.compute_fingerprint(coin, np.zeros((count, 1))).digest is not None) is told


def test_the_latest_logs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate_logs, "MAX_LOGS", 2)
    agent = arms()
    for seed in range(3):
        agent.learn_log(*coins(100, seed))
    agent.learn_log(*coins(100, 0))  # forgotten
    refuses(lambda: agent.learn_log(*coins(100, 2)), sw.InvalidOutcome, ErrorCode.LOG_ALREADY_LEARNED, *AGAIN)


def shuffled(frame: dict[str, Any], places: Any) -> dict[str, Any]:
    return {name: np.asarray(column, dtype=object)[places].tolist() for name, column in frame.items()}


def users(rows: int, seed: int = 0) -> dict[str, Any]:
    chance = np.random.default_rng([seed, 71])
    return {
        "action": np.array(["nothing", "offer"], dtype=object)[chance.integers(0, 2, rows)],
        "age": chance.uniform(18.0, 98.0, rows).round(3),
        "click": (chance.random(rows) < 0.1) * 1.0,
        "opt_out": (chance.random(rows) < 0.01) * 1.0,
    }


def of_users(context: tuple[float, float] = (18.0, 98.0)) -> sw.Agent:
    limits = {"opt_out": sw.Limit(0.05, safe_bound=0.02, model="rates")}
    asked = sw.Problem(
        action_names=["nothing", "offer"],
        safe_name="nothing",
        context={"age": context},
        reward=sw.Reward("click"),
        limits=limits,
    )
    return sw.Agent(asked, seed=1)


def test_a_log_in_another_order_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    agent = sw.Agent(problem(), seed=1)
    agent.learn_log_frame(FRAME)
    before, count = agent.state.memory.tobytes(), len(FRAME["age"])
    same = [FRAME, dict(reversed(FRAME.items()))]
    for other in same + [shuffled(FRAME, np.random.default_rng(seed).permutation(count)) for seed in range(3)]:
        refuses(
            lambda other=other: agent.learn_log_frame(other),
            sw.InvalidOutcome,
            ErrorCode.LOG_ALREADY_LEARNED,
            *AGAIN,
            str(count),
        )
    assert agent.state.memory.tobytes() == before
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    refuses(
        lambda: loaded.learn_log_frame(shuffled(FRAME, np.arange(count)[::-1])),
        sw.InvalidOutcome,
        ErrorCode.LOG_ALREADY_LEARNED,
        *AGAIN,
    )
    refuses(lambda: loaded.learn_log_frame(FRAME, again=3), sw.InvalidProblem, ErrorCode.WRONG_TYPE)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1 << 14, 256])  # rows that are remembered: all, or a sample of them
@pytest.mark.parametrize(
    "part",
    [
        lambda log, more: {name: np.concatenate([log[name], more[name]]) for name in log},  # rows were appended
        lambda log, more: {name: column[len(column) // 4 : -len(column) // 4] for name, column in log.items()},
        lambda log, more: {name: column[::3] for name, column in log.items()},  # another way to put it into files
        lambda log, more: {name: np.concatenate([column, column]) for name, column in log.items()},
    ],
    ids=["appended", "half", "third", "doubled"],
)
def test_a_log_that_was_learned_in_part_is_refused(
    most: int, part: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicate_logs, "MAX_ROWS", most)
    rows = 800
    agent, log, more = of_users(), users(rows), users(rows, 1)
    agent.learn_log_frame({name: column[: rows // 2] for name, column in log.items()})
    agent.learn_log_frame({name: column[rows // 2 :] for name, column in log.items()})
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    before = loaded.state.memory.tobytes()
    words = ("again=True",)
    refuses(lambda: loaded.learn_log_frame(part(log, more)), sw.InvalidOutcome, ErrorCode.LOG_ALREADY_LEARNED, *words)
    assert loaded.state.memory.tobytes() == before
    loaded.learn_log_frame(more)
    loaded.learn_log_frame(part(log, users(rows, 2)), again=True)


@pytest.mark.parametrize("values", [2, 50, 5_000])
def test_logs_of_other_users_are_not_refused_however_few_values_they_have(values: int) -> None:
    """Ages of so many values: rows of two logs are equal by chance, always or hardly ever, and the counts differ."""
    for seed in range(2):
        agent, chance = of_users((0.0, float(values))), np.random.default_rng([seed, 72])
        for rows in (40, 400, 900, 200):
            log = users(rows, int(chance.integers(1 << 30)))
            skewed = np.floor(values * chance.random(rows) ** (1 + 2 * (seed % 3)))
            agent.learn_log_frame({**log, "age": skewed})


def test_a_sample_of_rows_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate_logs, "MAX_ROWS", 256)
    rows, numbers = duplicate_logs.LearnedRows(), np.arange(9_000.0)
    for start in range(0, 9_000, 1_000):
        rows.take(mark(numbers[start : start + 1_000]), honest=True)
        assert rows.hashes.size <= 256
    assert rows.halvings >= 5
    asked, known = rows.known(mark(numbers[500:8_500]))
    assert asked == known > 60
    assert duplicate_logs.LearnedRows.from_dict(rows.to_dict()).known(mark(numbers)) == rows.known(mark(numbers))
    assert rows.known(mark(numbers + 0.5))[1] == 0
    assert rows.twice == 0
    rows.take(mark(numbers), honest=True)
    assert rows.twice == asked_of(rows, numbers)


def mark(numbers: Any) -> duplicate_logs.LogFingerprint:
    return duplicate_logs.compute_fingerprint(numbers, np.zeros((len(numbers), 2)))


def asked_of(rows: duplicate_logs.LearnedRows, numbers: Any) -> int:
    return rows.known(mark(numbers))[1]


def test_a_sorted_log_is_known_again() -> None:
    pulled, rewards, costs = coins(9000)
    assert (
        duplicate_logs.compute_fingerprint(np.sort(pulled), np.column_stack([np.sort(rewards), np.sort(costs)])).digest
        is not None
    )
