"""Rates by bucket of a score: pooled bounds by hand, valid at all times, and single buckets where means do fall."""

import math
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.sizes import sized

import stagewise as sw
from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.arms import split_delta
from stagewise.models.intervals import compute_average_interval
from stagewise.models.score_rates import learn_score_rates
from stagewise.models.segment_rates import RATES, view_rates
from stagewise.policies.context_caps import SafeContextPosteriorSampling

BUCKETS, DELTA, fill_bounds = 5, 0.9, RATES.bounds
INTERVAL = as_python(compute_average_interval)


def policy(pooled: bool = True, version: int = 1, delta: float = DELTA) -> SafeContextPosteriorSampling:
    return SafeContextPosteriorSampling(
        actions=2, segments=1, by={"cost": 0}, score_buckets={"cost": [BUCKETS, int(pooled), version]},
        safe_action=sw.SafeAction(arm=0, reward=0.1), threshold=0.05, reward_model="rates", delta=delta,
    )  # fmt: skip


def shares(version_share: float = 0.9) -> tuple[float, float]:
    """Return the shares of δ of the lower and of the upper bounds of action 1."""
    upper, other = split_delta(1)
    return tuple(DELTA * share * 0.45 * version_share for share in (other, upper))  # type: ignore[return-value]


def bounds_of(made: SafeContextPosteriorSampling, state: sw.PolicyState) -> Floats:
    """Return the lower and upper bounds (2, G) of action 1."""
    found = []
    for bucket in range(BUCKETS):
        context = sw.ContextVector([], segments=[bucket])
        table = made.rounds.play(
            state.memory, made.rows_for(context), context.get_eligible(2), sw.RandomKey()
        ).workspace.bounds
        found.append([table[1, CENTRE, 1] - table[1, HALF, 1], table[1, CENTRE, 1] + table[1, HALF, 1]])
    return np.array(found).T


def rows_of(buckets: Any) -> Floats:
    return np.column_stack([np.ones(len(buckets)), np.ones(len(buckets)), buckets])


def log(rates: Any, rows: int, seed: int = 3) -> tuple[Floats, Floats]:
    """Return rows of action 1, and their outcomes."""
    random = np.random.default_rng(seed)
    buckets = random.integers(0, BUCKETS, rows)
    costs = random.random(rows) < np.array(rates)[buckets]
    return rows_of(buckets), np.column_stack([np.zeros(rows), costs.astype(float)])


def pool_by_hand(rows: Floats, costs: Floats, pooled: bool, version_share: float) -> Floats:
    """Return the bounds of every bucket from all runs of 1, 2, 4… buckets."""
    lower, upper = shares(version_share)
    counts, sums = (np.bincount(rows[:, 2].astype(int), w, BUCKETS) for w in (np.ones(len(rows)), costs))
    lows, highs = np.zeros(BUCKETS), np.ones(BUCKETS)
    runs = [(i, j) for i in range(BUCKETS) for j in range(i, BUCKETS) if j - i + 1 in (1, 2, 4, 8)]
    parts = len(runs) if pooled else BUCKETS
    for i, j in runs:
        n, total = counts[i : j + 1].sum(), sums[i : j + 1].sum()
        ends = INTERVAL(n, total / n, math.log(parts / lower), math.log(parts / upper))
        for b in range(BUCKETS):
            if b == i == j or (pooled and b <= i):
                highs[b] = min(highs[b], ends.high)
            if b == i == j or (pooled and b >= j):
                lows[b] = max(lows[b], ends.low)
    return np.array([lows, highs])


@pytest.mark.parametrize(("pooled", "version", "version_share"), [(True, 1, 0.9), (False, 1, 0.9), (True, 3, 0.1 / 6)])
def test_bounds_after_a_log_are_the_tightest_of_all_runs_of_buckets(
    pooled: bool, version: int, version_share: float
) -> None:
    made = policy(pooled, version)
    rows, values = log([0.01, 0.02, 0.03, 0.05, 0.1], 300)
    found = bounds_of(made, made.learn_log(made.start(), rows, values))
    np.testing.assert_allclose(found, pool_by_hand(rows, values[:, 1], pooled, version_share), atol=1e-9)


def test_rows_sorted_by_outcome_leave_the_same_bounds() -> None:
    made = policy()
    rows, values = log([0.02] * BUCKETS, 300)
    order = np.argsort(values[:, 1], kind="stable")
    plain, sorted_ = (made.learn_log(made.start(), rows[at], values[at]) for at in (np.arange(300), order))
    np.testing.assert_allclose(bounds_of(made, sorted_), bounds_of(made, plain), atol=1e-12)


def test_where_means_fall_the_bounds_are_those_of_single_buckets() -> None:
    made, alone = policy(), policy(pooled=False)
    rows, values = log([0.5, 0.3, 0.1, 0.02, 0.01], 600)
    pooled, single = (bounds_of(one, one.learn_log(one.start(), rows, values)) for one in (made, alone))
    means = np.array([values[rows[:, 2] == b, 1].mean() for b in range(BUCKETS)])
    assert ((pooled[0] <= means) & (means <= pooled[1])).all()
    assert (pooled[0] <= single[0]).all()
    assert (single[1] <= pooled[1]).all()


def test_a_bucket_that_does_not_exist_is_not_learned() -> None:
    made = policy()
    state = made.learn_log(made.start(), rows_of([BUCKETS, BUCKETS + 3]), np.zeros((2, 2)))
    np.testing.assert_array_equal(bounds_of(made, state), [[0.0] * BUCKETS, [1.0] * BUCKETS])


@kernel
def count_misses(
    rates: Floats, runs: int, rounds: int, layout: Any, settings: Floats, fresh: Floats, memory: Floats,
    bounds: Floats, work: Floats, rows: Floats, observed: Floats, uniforms: Floats, misses: Floats,
) -> None:  # fmt: skip
    """Count runs in which a bound of action 1 was ever wrong. The bucket with the luckiest mean is played most."""
    seen, count = work[: rates.size], rates.size
    for run in range(runs):
        for i in range(memory.size):
            memory[i] = fresh[i]
        block = view_rates(layout, memory, 1)
        below, above = False, False
        for b in range(2 * count):
            work[b] = 0.0
        for t in range(rounds):
            bucket = int(uniforms[run, t, 0] * count)
            if uniforms[run, t, 1] < 0.7:
                for b in range(count):
                    if seen[b] - rates[b] * work[count + b] < seen[bucket] - rates[bucket] * work[count + bucket]:
                        bucket = b
            observed[0] = 1.0 if uniforms[run, t, 2] < rates[bucket] else 0.0
            seen[bucket] += observed[0]
            work[count + bucket] += 1.0
            rows[1, 2] = bucket
            learn_score_rates(layout, block, rows[1], 1, 0, 1.0, False, observed, settings, memory, work)
            for b in range(count):
                rows[0, 2] = b
                fill_bounds(layout, block, rows, False, settings, memory, bounds, work)
                low, half = bounds[1, CENTRE, 1], bounds[1, HALF, 1]
                below = below or low + half < rates[b]
                above = above or low - half > rates[b]
        misses[0] += below
        misses[1] += above


def play(rates: list[float], runs: int, rounds: int) -> Floats:
    made = policy()
    fresh, misses, uniforms = made.start().memory, np.zeros(2), np.random.default_rng(9).random((runs, rounds, 3))
    bounds, rows = np.zeros((2, 6, 3)), np.ones((2, 3))
    rows[0, 0] = 0.0
    count_misses(
        np.array(rates), runs, rounds, made.layout, made.settings, fresh, fresh.copy(), bounds, np.zeros(64), rows,
        np.zeros(1), uniforms, misses,
    )  # fmt: skip
    return misses


@pytest.mark.compiled
@sized((400, 400), (2000, 2000))
def test_bounds_hold_at_all_times_whatever_chooses_who_is_served(size: tuple[int, int]) -> None:
    lower, upper = shares()
    missed = play([0.01, 0.02, 0.02, 0.05, 0.2], *size)
    assert missed[0] <= allowed(size[0], upper)
    assert missed[1] <= allowed(size[0], lower)


@pytest.mark.compiled
@sized((400, 400), (2000, 2000))
def test_where_means_fall_pooled_bounds_miss_until_it_shows(size: tuple[int, int]) -> None:
    """The statistic can fail: pooling assumes that means do not fall from bucket to bucket."""
    assert play([0.2, 0.05, 0.02, 0.02, 0.01], *size)[0] > allowed(size[0], shares()[1])
