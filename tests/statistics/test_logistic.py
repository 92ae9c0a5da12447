"""How often a logistic confidence set misses its parameter, against users chosen so that it should.

An adversary knows the truth, and plays the user by whom the score has been pushed furthest from its mean: there luck
goes on counting. With a share of the rounds it plays anybody. The set is judged at every fit.
"""

import math

import numpy as np
import pytest
from tests.chance import allowed
from tests.models.test_logistic import policy, upper_ends
from tests.sizes import sized

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import ModelBlock, get_model_block
from stagewise.engine.random import OUTCOME, uniform
from stagewise.models.cholesky import dot
from stagewise.models.logistic import learn_logistic
from stagewise.models.logistic_ends import evaluate_rows
from stagewise.models.logistic_fit import FITTED, LEVEL, get_fit, get_prior, squash
from stagewise.policies.policy import PolicyState

BLOCK_OF = as_python(get_model_block)
DELTA, THETA = 0.2, np.array([-2.0, 0.8, -0.5])
USERS = np.array([[1.0, 1.0, u, v] for u in (-1.0, 0.0, 1.0) for v in (-1.0, 1.0)])  # the action, 1, two numbers
COINS, SPREAD = 0, 1
PRICED, UNPRICED = 0, 1


@kernel
def attack(
    layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, users: Floats, theta: Floats, work: Floats,
    score: Floats, delta: Floats, gradient: Floats, run: int, rounds: int, kind: int, unpriced: int,
) -> int:  # fmt: skip
    """Return the round after which the set missed θ, or 0; `unpriced` forgets the price of not knowing θ."""
    for t in range(rounds):
        chosen, best = 0, -math.inf
        for user in range(users.shape[0]):
            pushed = dot(score, users[user, 1:])
            if pushed > best:
                chosen, best = user, pushed
        if uniform(1, run, t, OUTCOME, 1) < 0.25:
            chosen = int(uniform(1, run, t, OUTCOME, 2) * users.shape[0])
        p = squash(dot(users[chosen, 1:], theta))
        draw, value = uniform(1, run, t, OUTCOME, 0), 0.0
        if kind == COINS:
            value = 1.0 if draw < p else 0.0
        else:
            value = 2.0 * p * uniform(1, run, t, OUTCOME, 3) if 2.0 * p <= 1.0 else p
        for i in range(theta.size):
            score[i] += (p - value) * users[chosen, 1 + i]
        fit = get_fit(block, memory, 1)
        before = fit.tally[FITTED]
        work[work.size - 1] = value
        observed = work[work.size - 1 :]
        learn_logistic(layout, block, users[chosen], 1, 0, 1.0, False, observed, settings, memory, work)
        if fit.tally[FITTED] > before:
            for i in range(theta.size):
                delta[i] = theta[i] - fit.theta[i]
            excess = evaluate_rows(block, fit, get_prior(block, settings), memory, delta, gradient, work).value
            most = settings[block.settings + 2] + settings[block.settings + 8] if unpriced else fit.tally[LEVEL]
            if excess > most:
                return t
    return 0


def missed(runs: int, rounds: int, kind: int, unpriced: int) -> int:
    """Return how many runs miss."""
    made, count = policy(context=2), 0
    for run in range(runs):
        memory = made.rounds.widen(made.start().memory, rounds // 64 + 8)
        block = BLOCK_OF(made.layout, memory, 1)
        settings = made.settings.copy()
        settings[block.settings + 2], settings[block.settings + 8] = math.log(1.0 / DELTA), 0.0
        arrays = [np.zeros(size) for size in (1000, 3, 3, 3)]
        count += attack(made.layout, block, settings, memory, USERS, THETA, *arrays, run, rounds, kind, unpriced) > 0
    return count


@pytest.mark.long
@sized((20, 200), (2000, 3000))
@pytest.mark.parametrize("kind", [COINS, SPREAD])
def test_the_set_holds_against_an_adversary(kind: int, size: tuple[int, int]) -> None:
    assert missed(*size, kind, PRICED) <= allowed(size[0], DELTA)


@sized((20, 250), (2000, 3000))
def test_a_set_without_the_price_of_not_knowing_does_not(size: tuple[int, int]) -> None:
    assert missed(*size, COINS, UNPRICED) > allowed(size[0], DELTA)


@pytest.mark.long
def test_a_mean_that_is_not_logistic_is_missed() -> None:
    """The promise needs the form: where both ends of a number are dear and its middle is not, no θ describes it."""
    made, chance = policy(context=1), np.random.default_rng(0)
    numbers = chance.choice([-1.0, 0.0, 1.0], 4000, p=[0.1, 0.8, 0.1])
    means = np.where(numbers == 0.0, 0.02, 0.4)
    y = (chance.uniform(size=4000) < means).astype(float)
    rows = np.column_stack([np.ones(4000), np.ones(4000), numbers])
    state = made.learn_log(made.start(), rows, np.column_stack([np.zeros(4000), y]))
    assert upper_ends(made, PolicyState(state.memory), np.array([[1.0]]))[0] < 0.4
