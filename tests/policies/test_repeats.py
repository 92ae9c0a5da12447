"""A log that is given twice counts once, unless somebody says that it is another one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_problem import problem
from tests.policies.test_problem_frames import FRAME
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.policies.agent import repeats

AGAIN = ("was learned already", "once is all that an outcome counts", "again=True")


def arms() -> sw.Agent:
    return sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5, radius="kl"))


def coins(count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(seed)
    return chance.integers(0, 2, count), chance.random(count) < 0.5, chance.random(count) < 0.1


def test_a_frame_that_was_learned_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    agent = sw.Agent(problem(), seed=1)
    agent.learn_frame(FRAME)
    before = agent.state.memory.tobytes()
    reordered = dict(reversed(FRAME.items()))
    for frame in (FRAME, reordered):
        refuses(
            lambda frame=frame: agent.learn_frame(frame), sw.InvalidOutcome, *AGAIN, f"all {len(FRAME['age'])} rows"
        )
    assert agent.state.memory.tobytes() == before
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    refuses(lambda: loaded.learn_frame(FRAME), sw.InvalidOutcome, *AGAIN)
    loaded.learn_frame(FRAME, again=True)
    assert loaded.state.memory.tobytes() != before
    loaded.learn_frame({name: column[:-1] for name, column in FRAME.items()})  # another log
    refuses(lambda: loaded.learn_frame(FRAME, again=3), sw.InvalidProblem, "again is 3")  # type: ignore[arg-type]


def test_a_log_and_a_frame_of_the_same_rows_are_the_same() -> None:
    agent, (pulled, rewards, costs) = arms(), coins(100)
    agent.learn_log(pulled, rewards, costs)
    refuses(
        lambda: agent.learn_frame({"a": pulled, "r": rewards, "cost": costs}, action="a", reward="r"),
        sw.InvalidOutcome,
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
        assert (repeats.mark_of(coin, np.zeros((count, 1))) is not None) is told


def test_the_latest_logs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "KEPT", 2)
    agent = arms()
    for seed in range(3):
        agent.learn_log(*coins(100, seed))
    agent.learn_log(*coins(100, 0))  # forgotten
    refuses(lambda: agent.learn_log(*coins(100, 2)), sw.InvalidOutcome, *AGAIN)


def test_a_sorted_log_is_known_again() -> None:
    pulled, rewards, costs = coins(9000)
    assert repeats.mark_of(np.sort(pulled), np.column_stack([np.sort(rewards), np.sort(costs)])) is not None
