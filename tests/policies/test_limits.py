"""Limits from below and limits relative to the safe action are the plain limits they stand for, to the bit."""

from typing import Any

import numpy as np
import pytest

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    Agent,
    ArmSet,
    AtLeast,
    Decision,
    SafeAction,
    SafeLTS,
    SafePosteriorSampling,
    TimesSafe,
)

LINEAR = {"LCLUCB": LCLUCB, "ROFUL": ROFUL, "SafeLTS": SafeLTS, "OPLB": OPLB, "CAPS": SafePosteriorSampling}
PARAMETERS = np.array([[0.6, 0.3], [0.4, -0.5]])
SAFE = [0.5, -0.4]
REWARD, VALUE = (PARAMETERS @ SAFE).tolist()


def decisions(policy: Any, sign: float = 1.0, form: Any = lambda cost: cost) -> list[Decision]:
    """Return 80 decisions in a world whose cost is shown times `sign`, in some form."""
    agent, made = Agent(policy, seed=4), []
    for round_ in range(80):
        random = np.random.default_rng([3, round_])
        made.append(agent.decide(random.uniform(-0.7, 0.7, (5, 2))))
        reward, cost = PARAMETERS @ made[-1].action + 0.05 * random.normal(size=2)
        agent.learn(made[-1], reward=float(reward), cost=form(sign * float(cost)))
    return made


def assert_mirrored(one: list[Decision], other: list[Decision], sign: float) -> None:
    assert any(decision.message is None for decision in one)
    for mine, yours in zip(one, other, strict=True):
        assert np.array_equal(mine.action, yours.action)
        assert (mine.action_index, mine.step_size, mine.optimistic_reward, mine.message) == (
            yours.action_index,
            yours.step_size,
            yours.optimistic_reward,
            yours.message,
        )
        assert np.array_equal(mine.pessimistic_cost, sign * yours.pessimistic_cost)
        assert np.array_equal(mine.thresholds, sign * yours.thresholds)


def make(kind: Any, threshold: Any, cost: Any, **more: Any) -> Any:
    safe = SafeAction(features=SAFE, reward=REWARD, cost=cost)
    return kind(safe_action=safe, threshold=threshold, noise=0.05, ridge=0.1, **more)


@pytest.mark.long
@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_at_least_is_at_most_of_the_flipped_signal(kind: Any, known: bool) -> None:
    below = make(kind, AtLeast(VALUE - 0.35), VALUE if known else None)
    above = make(kind, -(VALUE - 0.35), -VALUE if known else None)
    assert_mirrored(decisions(below), decisions(above, sign=-1.0), sign=-1.0)


def test_at_least_is_at_most_of_the_flipped_signal_for_arms() -> None:
    """Costs of arms are signed too: with `noise`, negative outcomes are as good as others."""
    means = np.array([[0.2, 0.6, 0.9], [0.7, 0.5, 0.1]])
    made = []
    for sign in (1.0, -1.0):
        threshold = AtLeast(0.3) if sign > 0 else -0.3
        safe = SafeAction(arm=0, reward=0.2, cost=sign * 0.7)
        agent = Agent(OPB(arms=3, safe_action=safe, threshold=threshold, noise=0.1), seed=8)
        made.append([])
        for round_ in range(200):
            made[-1].append(agent.decide(ArmSet(3)))
            noise = 0.1 * np.random.default_rng([5, round_]).normal(size=2)
            reward, cost = means[:, made[-1][-1].action] + noise
            agent.learn(made[-1][-1], reward=float(reward), cost=sign * float(cost))
    assert_mirrored(made[0], made[1], sign=-1.0)
    assert {decision.action for decision in made[0]} == {0, 1, 2}


@pytest.mark.long
@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize(
    ("relative", "plain"),
    [
        (TimesSafe(1.1), 1.1 * VALUE),
        (TimesSafe(2), 2 * VALUE),
        (AtLeast(TimesSafe(0.9)), AtLeast(0.9 * VALUE)),
        (AtLeast(TimesSafe(-1.0)), AtLeast(-VALUE)),
    ],
    ids=repr,
)
def test_relative_to_the_safe_action_is_a_multiple_of_its_cost(kind: Any, relative: Any, plain: Any) -> None:
    assert_mirrored(decisions(make(kind, relative, VALUE)), decisions(make(kind, plain, VALUE)), sign=1.0)


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
def test_a_name_is_only_a_name(kind: Any) -> None:
    named = make(kind, {"spend": VALUE + 0.3}, {"spend": VALUE})
    plain = make(kind, VALUE + 0.3, VALUE)
    assert_mirrored(decisions(named, form=lambda cost: {"spend": cost}), decisions(plain), sign=1.0)


def test_the_table_shows_a_limit_from_below_in_the_users_units() -> None:
    policy = make(LCLUCB, {"clicks": AtLeast(VALUE - 0.35)}, VALUE)
    decision = Agent(policy).decide(np.eye(2))
    table = decision._table()
    assert f"clicks ≥ {VALUE - 0.35:g}" in decision.explain()
    assert decision.pessimistic_cost[0] == pytest.approx(VALUE - 0.35)
    assert table.rows[-1].pessimistic_cost == (VALUE,)


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
def test_a_limit_from_below_keeps_the_signal_up(kind: Any) -> None:
    for decision in decisions(make(kind, AtLeast(VALUE - 0.35), VALUE)):
        assert decision.pessimistic_cost[0] >= VALUE - 0.35
        if decision.probabilities is None:
            assert PARAMETERS[1] @ decision.action >= VALUE - 0.35 - 1e-12
