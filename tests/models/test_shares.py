"""The shares of δ that bounds of rates use, over cells, runs, epochs, versions and later actions, add up to δ."""

import math
from typing import Any

import pytest

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.models import epochs
from stagewise.models import epochs as jumps
from stagewise.models.context import Buckets
from stagewise.models.drifting_rates import JumpingRatesDiagnostics
from stagewise.models.segment_rates import compute_levels, count_runs

LEVELS, RUNS = as_python(compute_levels), as_python(count_runs)
SEGMENTS, DELTA = 100, 0.05
PROMISES: dict[str, dict[str, Any]] = {
    "all users": {"model": "rates"},
    "segments": {"by": "country"},
    "a score": {"score": sw.RiskScore("risk", buckets=10)},
    "a score that may fall": {"score": sw.RiskScore("risk", buckets=32, monotone=False)},
    "a later score": {"score": sw.RiskScore("risk", buckets=10, version=3)},
}


def sum_shares(problem: sw.Problem) -> tuple[float, float]:
    """Return with what probability a bound of the reward may ever be wrong, and one of costs, or a found jump."""
    policy = problem.policy()
    memory, settings, spent = policy.start().memory, policy.settings, [0.0, 0.0]
    for model, block in policy.rounds.iter_blocks(memory):
        single = isinstance(model.diagnostics, JumpingRatesDiagnostics) or block.pooled == 0
        cells = RUNS(block.buckets) if block.buckets and not single else max(block.buckets, 1)
        for action in range(policy.actions):
            for position in range(1, SEGMENTS if block.column >= 0 and not block.buckets else 2):
                spent[min(int(block.first), 1)] += cells * sum(
                    math.exp(-level) for level in LEVELS(block, settings, action, float(position))
                )
        if isinstance(model.diagnostics, JumpingRatesDiagnostics):
            spent[1] += model.diagnostics.get_false_alarms(block, settings) or 0.0
    return spent[0], spent[1]


@pytest.mark.parametrize("later", [0, 200])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("safe_bound", [0.001, None])
@pytest.mark.parametrize("drift", [None, "0.01/1d", "jumps"])
@pytest.mark.parametrize("promise", PROMISES)
def test_shares_add_up_to_delta(
    promise: str, drift: str | None, safe_bound: float | None, count: int, later: int
) -> None:
    limit = sw.Limit(0.1, safe_bound=safe_bound, drift=drift, **PROMISES[promise])
    problem = sw.Problem(
        action_names=["nothing", "offer", *(f"later {i}" for i in range(later))], safe_name="nothing", delta=DELTA,
        reward=sw.Reward("click", model="rates"), limits={f"limit {i}": limit for i in range(count)},
        settings={"initial_actions": 2},
    )  # fmt: skip
    score = PROMISES[promise].get("score")
    (reward, costs), share = sum_shares(problem), 1.0 if score is None else Buckets(10, version=score.version).share
    assert 0.85 * DELTA < reward + costs / share <= DELTA * (1.0 + 1e-9)


def test_shares_of_epochs_and_versions_add_up_to_1() -> None:
    slope, jump, level = (
        as_python(one) for one in (epochs.compute_log_share, jumps.compute_jump_log_share, jumps.get_jump_level)
    )
    assert 0.99 < sum(math.exp(-slope(epoch)) for epoch in range(1, 10_000)) <= 1.0
    epochs_of_jumps = sum(math.exp(-jump(level(epoch), epoch, 0.0)) for epoch in range(1, 10_000))
    restarts = sum(math.exp(-jump(level(1), 1, float(count))) for count in range(1, 1_000))
    assert 0.99 < epochs_of_jumps + restarts <= 1.0
    assert 0.99 < sum(Buckets(10, version=version).share for version in range(1, 1_000)) <= 1.0
