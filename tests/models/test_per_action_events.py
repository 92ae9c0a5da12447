"""Linear limits of a context: the sets of rare events, action by action, that CAPS has by blocks."""

import math
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.arms import split_delta
from stagewise.models.context import compute_action_shares
from stagewise.models.per_action_events import PER_ACTION_EVENTS
from stagewise.models.per_action_ridge import PER_ACTION_RIDGE
from stagewise.policies.caps import RARE_SHARE
from stagewise.policies.policy import PolicyState
from stagewise.records.random_key import RandomKey

K, LIMIT, DELTA = 3, 0.1, 0.05
MEANS = np.array([[0.02, 0.0, 0.0], [0.05, 0.03, -0.02], [0.06, -0.01, 0.04]])


def policy(**settings: Any) -> sw.SafeContextPosteriorSampling:
    """Return a policy over three actions with a linear cost."""
    options: dict[str, Any] = {"actions": K, "context": 2, "reward_model": "rates", "cost_model": "linear"}
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.03)
    return sw.SafeContextPosteriorSampling(
        **options | {"safe_action": safe, "threshold": LIMIT, "delta": DELTA} | settings
    )


def log(count: int, seed: int = 1) -> tuple[Floats, Floats]:
    """Return rows (n, 4) of actions by lot, and outcomes (n, 2)."""
    chance = np.random.default_rng(seed)
    actions = chance.integers(K, size=count)
    users = np.column_stack([np.ones(count), chance.uniform(-1.0, 1.0, (count, 2))])
    costs = (chance.uniform(size=count) < (users * MEANS[actions]).sum(axis=1)).astype(float)
    return np.column_stack([actions, users]), np.column_stack([np.zeros(count), costs])


def upper_ends(made: sw.SafeContextPosteriorSampling, state: PolicyState, users: Floats) -> Floats:
    """Return the upper ends (n, K) of the cost."""
    ends = []
    for user in users:
        rows, eligible = made.rows_for(sw.ContextVector(user)), np.ones(made.actions, dtype=np.bool_)
        bounds = made.rounds.play(state.memory, rows, eligible, RandomKey()).workspace.bounds
        ends.append((bounds[1, CENTRE] + bounds[1, HALF])[: made.actions])
    return np.array(ends)


USERS = np.random.default_rng(2).uniform(-1.0, 1.0, (6, 2))


def test_a_users_bounds_are_those_of_caps_with_a_block_for_each_action() -> None:
    share = DELTA * sum(split_delta(1)) * compute_action_shares(K, K)[0]  # of each action's set
    safe = sw.SafeAction(features=np.zeros(3 * K), reward=0.0, cost=0.0)
    caps = sw.SafePosteriorSampling(
        safe_action=safe, threshold=LIMIT, noise=0.5, norm_bound=[1.0, 1.0], mean_cost_bound=1.0, mixtures=True,
        rare_costs=True, blocks=K, delta=share * K / RARE_SHARE,
    )  # fmt: skip
    rows, values = log(1500)
    crossed = np.zeros((len(rows), K, 3))
    crossed[np.arange(len(rows)), rows[:, 0].astype(int)] = rows[:, 1:]
    theirs = caps.learn_log(caps.start(), crossed.reshape(len(rows), -1), values)
    made = policy()
    ours = made.learn_log(made.start(), rows, values)
    for user, ends in zip(USERS, upper_ends(made, ours, USERS), strict=True):
        offered = np.kron(np.eye(K), np.append(1.0, user))
        bounds = caps.rounds.play(theirs.memory, offered, np.ones(K, dtype=np.bool_), RandomKey()).workspace.bounds
        assert ends == pytest.approx((bounds[1, CENTRE] + bounds[1, HALF])[:K], rel=1e-9)
        assert (ends > MEANS @ np.append(1.0, user)).all()
        assert ends.min() < 0.2


def test_a_log_is_learned_alike_in_any_order_and_a_missing_cost_is_no_event() -> None:
    rows, values = log(900)
    made, ends = policy(), []
    more = np.vstack([rows, rows[:50]])
    unknown = np.vstack([values, np.column_stack([np.zeros(50), np.full(50, math.nan)])])
    for order in (np.arange(len(more)), np.argsort(np.nan_to_num(unknown[:, 1], nan=0.5), kind="stable")):
        ends.append(upper_ends(made, made.learn_log(made.start(), more[order], unknown[order]), USERS))
    ends.append(upper_ends(made, made.learn_log(made.start(), rows, values), USERS))
    assert ends[1] == pytest.approx(ends[0], rel=1e-9)
    assert ends[2] == pytest.approx(ends[0], rel=1e-9)


def test_a_limit_from_below_is_learned_as_its_mirror_image() -> None:
    rows, values = log(900)
    made = policy()
    ends = upper_ends(made, made.learn_log(made.start(), rows, values), USERS)
    safe = sw.SafeAction(arm=0, reward=0.1, cost={"it": 0.97})
    mirrored = policy(threshold={"it": sw.AtLeast(1.0 - LIMIT)}, safe_action=safe)
    values[:, 1] -= 1.0
    assert upper_ends(mirrored, mirrored.learn_log(mirrored.start(), rows, values), USERS) == pytest.approx(ends - 1.0)


def test_an_action_that_is_added_changes_nothing_about_the_others() -> None:
    fewer, more = policy(initial_actions=K), policy(actions=K + 1, initial_actions=K)
    rows, values = log(600)
    state = fewer.learn_log(fewer.start(), rows, values)
    grown = more.grow_state(fewer, state)
    ends = upper_ends(more, grown, USERS)
    assert np.array_equal(ends[:, :K], upper_ends(fewer, state, USERS))
    assert (ends[:, K] == 1.0).all()
    rows, values = log(400, 5)
    rows[:, 0] = K
    later = upper_ends(more, more.learn_rows(grown, rows, values), USERS)
    assert np.array_equal(later[:, :K], ends[:, :K])
    assert (later[:, K] < 0.6).all()


def test_a_linear_limit_that_is_not_rare_has_a_regression() -> None:
    kinds = [policy(threshold=limit).rounds.spec.models[1] for limit in (0.1, 0.25, 0.3)]
    assert kinds == [PER_ACTION_EVENTS, PER_ACTION_EVENTS, PER_ACTION_RIDGE]


def test_costs_that_no_linear_mean_explains_end_in_the_safe_action() -> None:
    made = policy(norm_bound=0.1)
    agent = sw.Agent(made, seed=1)
    rows = np.column_stack([np.full(300, 1.0), np.ones(300), np.zeros((300, 2))])
    agent.learn_log(rows, np.zeros(300), np.ones(300))
    decision = agent.decide(sw.ContextVector([0.0, 0.0]))
    assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    assert decision.reason_details.details["found"] == "no_linear_mean"
    assert decision.probabilities[0] == 1.0


@pytest.mark.parametrize("count", [-1.0, 2048.0, 0.5, math.nan])
def test_a_memory_whose_table_is_longer_than_it_can_be_is_refused(count: float) -> None:
    made = policy()
    state = made.learn_log(made.start(), *log(300))
    ((_, block),) = [pair for pair in made.rounds.iter_blocks(state.memory) if pair[0] == PER_ACTION_EVENTS]
    assert made.fits(state.memory)
    state.memory[block.memory] = count
    with pytest.raises(sw.InvalidProblem):
        made.decide(state, sw.ContextVector([0.0, 0.0]))
