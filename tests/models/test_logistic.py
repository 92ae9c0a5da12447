"""Logistic confidence sets against a textbook's: the level, and ends by SLSQP over all rows."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.sizes import sized

import stagewise as sw
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.arms import split_delta
from stagewise.models.context import compute_action_shares
from stagewise.models.logistic import LOGISTIC
from stagewise.models.logistic_fit import (
    COUNT,
    FIRST_CHUNK,
    FITTED,
    LEVEL,
    compute_radius,
    compute_row_price,
    get_fit,
)  # fmt: skip
from stagewise.policies.policy import PolicyState
from stagewise.records.random_key import RandomKey

FIT, RADIUS_OF, ROW_PRICE = as_python(get_fit), as_python(compute_radius), as_python(compute_row_price)
SLOPE, INTERCEPT = 0.7, 1.5
THETA, LIMIT = np.array([-2.5, 0.9, -0.6, 0.3]), 0.2
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def policy(context: int = 3, **settings: Any) -> sw.SafeContextPosteriorSampling:
    """Return a policy over two actions with a logistic cost."""
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.01)
    options: dict[str, Any] = {"actions": 2, "context": context, "reward_model": "rates", "cost_model": "logistic"}
    return sw.SafeContextPosteriorSampling(**options | {"safe_action": safe, "threshold": LIMIT} | settings)


def log(rows: int, seed: int, theta: Floats = THETA) -> tuple[Floats, Floats]:
    """Return rows of features with a constant, and outcomes."""
    chance = np.random.default_rng(seed)
    x = np.column_stack([np.ones(rows), chance.uniform(-1.0, 1.0, (rows, theta.size - 1))])
    return x, (chance.uniform(size=rows) < 1.0 / (1.0 + np.exp(-x @ theta))).astype(float)


def learned(x: Floats, y: Floats, made: sw.SafeContextPosteriorSampling) -> PolicyState:
    """Return the state after a log of action 1."""
    rows = np.column_stack([np.ones(len(x)), x])
    return made.learn_log(made.start(), made.check_logged_actions(rows), np.column_stack([np.zeros(len(x)), y]))


def fit_of(made: sw.SafeContextPosteriorSampling, state: PolicyState, action: int = 1) -> Any:
    """Return what was learned of an action."""
    (block,) = (block for model, block in made.rounds.iter_blocks(state.memory) if model == LOGISTIC)
    return FIT(block, state.memory, action)


def upper_ends(made: sw.SafeContextPosteriorSampling, state: PolicyState, users: Floats) -> Floats:
    """Return the upper ends of action 1 for users (n, context)."""
    ends = []
    for user in users:
        offered = made.rows_for(sw.ContextVector(user))
        bounds = made.rounds.play(state.memory, offered, np.ones(2, dtype=bool), RandomKey()).workspace.bounds
        ends.append(bounds[1, CENTRE, 1] + bounds[1, HALF, 1])
    return np.array(ends)


def loss(theta: Floats, x: Floats, y: Floats) -> float:
    """Return minus the log-likelihood."""
    return float((np.logaddexp(0.0, x @ theta) - y * (x @ theta)).sum())


def textbook_level(x: Floats, y: Floats, theta: Floats, share: float) -> float:
    """Return L's largest value in the set: E_Q L by Gauss and Hermite, KL(Q‖π) and log 1/δ'."""
    precision = np.diag([INTERCEPT**-2.0] + [SLOPE**-2.0] * (len(theta) - 1))
    mean = np.zeros(len(theta))
    mean[0] = math.log(LIMIT / (1.0 - LIMIT))
    p = 1.0 / (1.0 + np.exp(-x @ theta))
    covariance = np.linalg.inv((x * (p * (1.0 - p))[:, np.newaxis]).T @ x + precision)
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", x, covariance, x))
    points = (x @ theta)[:, np.newaxis] + deviations[:, np.newaxis] * NODES
    expected = float((np.logaddexp(0.0, points) @ (WEIGHTS / WEIGHTS.sum())).sum() - y @ (x @ theta))
    offset = theta - mean
    divergence = np.trace(precision @ covariance) + offset @ precision @ offset - len(theta)
    return expected + 0.5 * float(divergence - np.linalg.slogdet(precision @ covariance)[1]) - math.log(share)


@sized((150, 4), (6000, 12))
def test_ends_are_those_of_slsqp_over_all_rows(size: tuple[int, int]) -> None:
    x, y = log(size[0], 3)
    made = policy()
    state = learned(x, y, made)
    fit = fit_of(made, state)
    fitted = int(fit.tally[FITTED])
    assert fitted > 0.9 * size[0]
    x, y, users = x[:fitted], y[:fitted], np.random.default_rng(8).uniform(-1.0, 1.0, (size[1], 3))
    most = textbook_level(x, y, fit.theta, 0.05 * sum(split_delta(1)) * compute_action_shares(2, 2)[1])
    assert most <= fit.tally[LEVEL] + loss(fit.theta, x, y) <= most + 0.5
    for user, end in zip(users, upper_ends(made, state, users), strict=True):
        direction = np.append(1.0, user)
        found = minimize(
            lambda theta, direction=direction: -float(direction @ theta),
            fit.theta,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda theta: most - loss(theta, x, y)},
            options={"maxiter": 500},
        )
        assert found.success
        exact = float(1.0 / (1.0 + np.exp(found.fun)))
        assert exact * (1.0 - 1e-6) <= end <= exact * 1.03


def test_the_fit_is_near_the_maximum_of_the_posterior() -> None:
    x, y = log(120, 5)
    made = policy()
    fit = fit_of(made, learned(x, y, made))
    count = int(fit.tally[FITTED])
    precision, mean = (
        np.array([INTERCEPT**-2.0] + [SLOPE**-2.0] * 3),
        np.array([math.log(LIMIT / (1 - LIMIT)), 0, 0, 0]),
    )
    found = minimize(
        lambda theta: loss(theta, x[:count], y[:count]) + 0.5 * float(precision @ (theta - mean) ** 2),
        mean,
        options={"gtol": 1e-9},
    )
    assert fit.theta == pytest.approx(found.x, abs=1e-3)


def test_ends_without_events_fall_with_the_rows() -> None:
    made, ends = policy(context=0), []
    for count in (15, 60, 240):
        ends.append(upper_ends(made, learned(np.ones((count, 1)), np.zeros(count), made), np.zeros((1, 0)))[0])
    assert ends[0] == 1.0  # before the first fit nothing is known
    assert ends[1] > ends[2] > 0.01


@pytest.mark.parametrize(("p", "variance"), [(0.01, 0.3), (0.5, 0.5), (0.9, 0.1)])
def test_the_price_of_a_row_is_a_little_more_than_the_integral(p: float, variance: float) -> None:
    base = math.log(p / (1.0 - p))
    points = np.logaddexp(0.0, base + math.sqrt(variance) * NODES) - np.logaddexp(0.0, base)
    exact = float(points @ (WEIGHTS / WEIGHTS.sum()))
    assert exact <= ROW_PRICE(p, variance) <= exact * 1.1


@pytest.mark.parametrize("reach", [0.01, 0.3, 3.0])
def test_the_ellipsoid_contains_every_level(reach: float) -> None:
    level, slope = 12.0, 0.1 / reach * 0.5
    radius = RADIUS_OF(level, slope, reach, 1e9)
    u = reach * radius
    assert (math.exp(-u) + u - 1.0) / reach**2 - slope * radius == pytest.approx(level, rel=1e-6)
    assert RADIUS_OF(level, 2.0 / reach, reach, 5.0) == 5.0  # steeper than the set's growth: only what is declared


def test_lower_costs_are_learned_as_their_mirror_image() -> None:
    """A limit from below on 1 − y is the same limit from above on y."""
    x, y = log(200, 6)
    users, ends = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 3)), []
    for threshold, outcomes, safe in ((LIMIT, y, 0.01), (sw.AtLeast(1.0 - LIMIT), y - 1.0, 0.99)):
        made = policy(threshold={"it": threshold}, safe_action=sw.SafeAction(arm=0, reward=0.1, cost={"it": safe}))
        ends.append(upper_ends(made, learned(x, outcomes, made), users))
    assert ends[1] == pytest.approx(ends[0] - 1.0, abs=1e-6)


def test_rows_move_with_a_new_action_and_with_more_room() -> None:
    fewer, more = policy(initial_actions=2), policy(actions=3, initial_actions=2)
    x, y = log(700, 7)
    state = learned(x, y, fewer)
    grown = more.grow_state(fewer, state)
    assert more.fits(grown.memory)
    assert np.array_equal(fit_of(fewer, state).theta, fit_of(more, grown).theta)
    extra, new = log(100, 9)
    assert np.array_equal(
        fit_of(fewer, continued(fewer, state, extra, new)).theta, fit_of(more, continued(more, grown, extra, new)).theta
    )


def continued(made: sw.SafeContextPosteriorSampling, state: PolicyState, x: Floats, y: Floats) -> PolicyState:
    """Return the state after more rows of action 1."""
    rows = np.column_stack([np.ones(len(x)), x])
    return made.learn_log(PolicyState(state.memory.copy()), rows, np.column_stack([np.zeros(len(x)), y]))


def test_a_memory_whose_chunks_lead_elsewhere_is_refused() -> None:
    made = policy()
    x, y = log(200, 2)
    state = learned(x, y, made)
    fit_of(made, state).tally[FIRST_CHUNK] = 1e6
    with pytest.raises(sw.StagewiseError):
        made.decide(state, sw.ContextVector([0.0, 0.0, 0.0]))


def test_every_action_has_its_rows_whatever_the_order() -> None:
    made, chance = policy(actions=4), np.random.default_rng(4)
    x, y = log(500, 4)
    actions = chance.integers(0, 4, 500)
    rows, values = np.column_stack([actions, x]), np.column_stack([np.zeros(500), y])
    state = made.learn_log(made.start(), made.check_logged_actions(rows), values)
    for action in range(4):
        mine = actions == action
        fit = fit_of(made, state, action)
        assert fit.tally[COUNT] == mine.sum()
        assert fit.outcomes == pytest.approx((x * y[:, np.newaxis])[mine].sum(axis=0), abs=1e-9)
