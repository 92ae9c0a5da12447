"""How often a set of rare costs misses its mean, against features chosen so that it should.

An adversary knows the truth and the set, and plays where the upper end is nearest to the mean: there the next outcomes
decide. With a share of the rounds it does the reverse, and leaves alone what looks lucky.
"""

import math
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.sizes import sized

import stagewise as sw
from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.layout import ModelBlock, get_model_block
from stagewise.engine.random import OUTCOME, uniform
from stagewise.models.rare_events import (
    LOSS,
    compute_forecast,
    compute_highest_mean,
    compute_rate,
    get_feature_block,
    get_rare_events_assumptions,
    learn_events_log,
    learn_rare_events,
)

PART_OF, BLOCK_OF = as_python(get_model_block), as_python(get_feature_block)
DELTA, MU = 0.2, np.array([0.05, 0.06, -0.04])
USERS = np.array([[1.0, u, v] for u in (0.0, 0.5, 1.0) for v in (0.0, 1.0)])
MEANS = USERS @ MU  # from .01 to .11
HONEST, PEEKING = 0, 1


@kernel
def attacked(
    part: ModelBlock, settings: Floats, memory: Floats, users: Floats, means: Floats, values: Floats, run: int,
    rounds: int, peeking: int,
) -> int:  # fmt: skip
    """Return the round after which an upper end was below its mean, or 0; `peeking` forecasts know the outcome."""
    block, guess = get_feature_block(part, memory, 0), get_rare_events_assumptions(part, settings).guess
    for t in range(rounds):
        chosen, least = 0, math.inf
        turned = uniform(1, run, t, OUTCOME, 1) < 0.25
        for user in range(means.size):
            above = compute_highest_mean(part, settings, block, users[user]) - means[user]
            if above < 0.0:
                return t
            above = -above if turned else above
            if above < least:
                chosen, least = user, above
        values[0] = 1.0 if uniform(1, run, t, OUTCOME, 0) < means[chosen] else 0.0
        if peeking:
            rate = compute_rate(block.sums, guess)
            options, better = compute_forecast(block, rate, users[chosen]), rate * (3.0 if values[0] > 0.0 else 0.3)
            block.sums[LOSS] += better - options - values[0] * (math.log(better) - math.log(options))
        learn_rare_events(part, users[chosen], values, settings, memory)
    return 0


def policy() -> sw.SafePosteriorSampling:
    """Return a policy whose only cost has nearly all of δ."""
    safe = sw.SafeAction(features=np.zeros(3), reward=0.0, cost=0.0)
    options: dict[str, Any] = {"noise": 0.5, "norm_bound": [1.0, 0.1], "delta": DELTA / 0.75, "mean_cost_bound": 0.15}
    return sw.SafePosteriorSampling(safe_action=safe, threshold=0.06, mixtures=True, rare_costs=True, **options)


def missed(runs: int, rounds: int, peeking: int) -> int:
    """Return how many runs miss."""
    ours, count = policy(), 0
    for run in range(runs):
        memory = ours.start().memory
        part = PART_OF(ours.layout, memory, 1)
        count += attacked(part, ours.settings, memory, USERS, MEANS, np.zeros(1), run, rounds, peeking) > 0
    return count


@pytest.mark.long
@sized((25, 400), (2000, 4000))
def test_the_set_holds_against_an_adversary(size: tuple[int, int]) -> None:
    assert missed(*size, HONEST) <= allowed(size[0], DELTA)


@sized((15, 600), (2000, 2000))
def test_forecasts_that_know_the_outcome_do_not(size: tuple[int, int]) -> None:
    assert missed(*size, PEEKING) > allowed(size[0], DELTA)


def missed_by_logs(runs: int, rows: int) -> int:
    """Return how many logs, sorted by outcome, end in a set that misses a mean."""
    ours, count = policy(), 0
    for run in range(runs):
        chance = np.random.default_rng([5, run])
        users = chance.integers(len(USERS), size=rows)
        draws = (chance.uniform(size=rows) < MEANS[users]).astype(float)
        order = np.argsort(-draws, kind="stable")
        users, observed = users[order], draws[order]
        memory = ours.start().memory
        part = PART_OF(ours.layout, memory, 1)
        learn_events_log(part, ours.settings, memory, USERS[users], observed)
        block = BLOCK_OF(part, memory, 0)
        pairs = zip(USERS, MEANS, strict=True)
        count += any(compute_highest_mean(part, ours.settings, block, user) < mean for user, mean in pairs)
    return count


@sized((15, 800), (2000, 8000))
def test_a_log_sorted_by_outcome_is_learned_safely(size: tuple[int, int]) -> None:
    assert missed_by_logs(*size) <= allowed(size[0], DELTA)
