"""Bounds that age: compiled kernels and the same code in Python agree to the bit."""

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.layout import ELSEWHERE
from stagewise.engine.round import build_round
from stagewise.policies.rounds import WORK_SIZE
from stagewise.problem.timing import DAY
from stagewise.records.random_key import RandomKey

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("context", [{}, {"age": (0, 1)}], ids=["rates", "linear"])
def test_learning_and_deciding_agree_to_the_bit(context: dict[str, tuple[float, float]]) -> None:
    limits = {
        "opt_out": sw.Limit(0.02, safe_bound=0.0, drift="0.005/30d", by="country"),
        "complaint": sw.Limit(0.01, safe_bound=0.0, model="rates", drift=("0.004", "20d")),
        "bounce": sw.Limit(0.05, safe_bound=0.0, model="rates", drift="jumps"),
        "spam": sw.Limit(0.1, safe_bound=0.0, score=sw.RiskScore("risk", buckets=3), drift="0.005/30d"),
        "block": sw.Limit(0.1, safe_bound=0.0, score=sw.RiskScore("taste", buckets=3), drift="jumps"),
    }
    if context:
        limits["loss"] = sw.Limit(0.5, safe_bound=0.0, model="linear", drift="0.1/30d")
    else:  # there, the reward is a rate that forgets; the limits would be the same once more
        limits = {name: limits[name] for name in ("opt_out", "spam", "block")}
    reward, size = sw.Reward("click", half_life="7d"), len(context)
    problem = sw.Problem(action_names=["a", "b", "c"], safe_name="a", reward=reward, limits=limits, context=context)
    policy, rng, count = problem.policy(), np.random.default_rng(8), 900
    rows = np.ones((count, policy.width))
    rows[:, 0], rows[:, 2 + size : 5 + size] = rng.integers(0, 3, count), rng.integers(0, 3, (count, 3))
    rows[:, 2 : 2 + size] = rng.uniform(-1.0, 1.0, (count, size))
    rows[:, -1] = np.sort(rng.uniform(0.0, 90 * DAY, count))
    rate = np.where(np.arange(count) < 500, 0.01, 0.3)[:, None]
    values = (rng.random((count, 1 + len(limits))) < rate).astype(float)
    memory = policy.rounds.reserve(policy.start().memory, "segments", 3)
    compiled = policy.rounds.learn_rows(memory.copy(), rows, np.full(count, ELSEWHERE), values)
    learn, interpreted = as_python(build_round(policy.rounds.spec).learn), memory.copy()
    work = np.empty(WORK_SIZE(3, 0, policy.width, True))
    for row, outcome in zip(rows, values, strict=True):
        learn(row, ELSEWHERE, 1.0, outcome, policy.layout, policy.settings, interpreted, work)
    assert compiled.tobytes() == interpreted.tobytes()
    assert not np.array_equal(compiled, memory)
    changed = [policy.models[name] for name in problem.limits]
    assert changed == ["rates"] * (5 if context else 3) + ["linear"] * size
    decide = as_python(build_round(policy.rounds.spec).decide)
    user = sw.ContextVector([0.3] * size, segments=[1, 2, 0]).at(100 * DAY)
    offered, draw = policy.rows_for(user), RandomKey(1, 2, 3)
    one = policy.rounds.play(compiled, offered, user.get_eligible(3), draw)
    answer, scratch = np.empty_like(one.answer), np.empty_like(one.scratch)
    code = decide(offered, user.get_eligible(3), policy.layout, policy.settings, interpreted, answer, scratch, *draw)
    assert code == one.code
    assert answer.tobytes() == one.answer.tobytes()
