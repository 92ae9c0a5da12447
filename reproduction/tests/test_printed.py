"""The algorithms as printed: each decision against the paper's formulas, written out once more with plain algebra."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.exact.opnlb import ExactOPNLB
from stagewise_reproduction.printed.lclucb import EMPTY, PrintedLCLUCB
from stagewise_reproduction.printed.oplb import PrintedOPLB
from stagewise_reproduction.printed.opnlb import PrintedOPNLB
from stagewise_reproduction.printed.unknown_baseline import PrintedUnknownBaseline

SAFE, THETA, MU = np.array([0.3, 0.1, 0.2]), np.array([0.4, 0.6, 0.3]), np.array([0.3, 0.5, 0.1])
TARGETS = np.array([[1.0, 0.0, 0.0], [0.0, 0.9, 0.1], [0.2, -0.3, 0.8]])
TOLD: dict[str, Any] = {"threshold": 0.4, "noise": 0.2, "ridge": 0.5, "delta": 0.05, "norm_bound": 1.0}
KNOWN = sw.SafeAction(features=SAFE, reward=float(SAFE @ THETA), cost=float(SAFE @ MU))
UNKNOWN = sw.SafeAction(features=SAFE)


def history(rounds: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return actions near the safe one with their rewards and costs."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.0, 0.4, size=(rounds, 1))
    points = SAFE + steps * (TARGETS[rng.integers(3, size=rounds)] - SAFE)
    noise = 0.2 * rng.normal(size=(2, rounds))
    return points, points @ THETA + noise[0], points @ MU + noise[1]


def taught(policy: Any, rounds: int) -> Any:
    """Return the policy's state after a history."""
    state = policy.start_sums()
    for point, reward, cost in zip(*history(rounds), strict=True):
        decision = sw.Decision(point, -1, 0.0, None, 0.0, np.zeros(1), np.zeros(1), None, 0)
        state = policy.add_outcome(state, decision, sw.Outcome(reward, cost))
    return state


def values(points: Any, rounds: int, known: bool, scale: float) -> tuple[Any, Any]:
    """Return (9) and (10) at points (n, d), straight from the paper: projections and pseudo-inverses in ℝ^d."""
    observed, rewards, costs = history(rounds)
    gram = 0.5 * np.eye(3) + observed.T @ observed
    radii = [
        0.2 * math.sqrt(n * math.log((1.0 + rounds / 0.5) / 0.05)) + math.sqrt(0.5) for n in (3, 2 if known else 3)
    ]
    inverse = np.linalg.inv(gram)
    theta = inverse @ observed.T @ rewards
    optimistic = points @ theta + scale * radii[0] * np.sqrt(np.sum(points @ inverse * points, axis=1))
    if not known:
        mu = inverse @ observed.T @ costs
        return optimistic, points @ mu + radii[1] * np.sqrt(np.sum(points @ inverse * points, axis=1))
    unit = SAFE / np.linalg.norm(SAFE)
    project = np.eye(3) - np.outer(unit, unit)
    inside = np.linalg.pinv(0.5 * project + project @ observed.T @ observed @ project)
    left = costs - observed @ unit * KNOWN.cost / np.linalg.norm(SAFE)
    mu = inside @ (project @ observed.T @ left)
    widths = np.sqrt(np.maximum(np.sum(points @ inside * points, axis=1), 0.0))
    known_part = points @ unit * KNOWN.cost / np.linalg.norm(SAFE)
    return optimistic, known_part + points @ project @ mu + radii[1] * widths


@pytest.mark.parametrize("rounds", [0, 5, 60, 400])
@pytest.mark.parametrize("known", [True, False])
def test_no_point_of_a_ray_that_is_certified_hopes_for_more(known: bool, rounds: int) -> None:
    policy = PrintedLCLUCB(safe_action=KNOWN if known else UNKNOWN, **TOLD)
    decision = policy.choose_best(taught(policy, rounds), 2.5, 1.0, sw.RaySet(TARGETS), sw.RandomKey())
    grid = np.linspace(0.0, 1.0, 2001)
    points = np.concatenate([SAFE + grid[:, None] * (target - SAFE) for target in TARGETS])
    optimistic, pessimistic = values(points, rounds, known, 2.5)
    allowed = pessimistic <= 0.4
    if not allowed.any():
        assert decision.reason_details == EMPTY
        return
    assert decision.optimistic_reward >= optimistic[allowed].max() - 1e-9
    own = values(np.asarray(decision.action)[None], rounds, known, 2.5)
    assert decision.optimistic_reward == pytest.approx(own[0][0], abs=1e-9)
    assert own[1][0] <= 0.4 + 1e-9


def test_with_an_uncertain_baseline_nothing_may_be_certified() -> None:
    policy = PrintedLCLUCB(safe_action=UNKNOWN, **TOLD)
    decision = policy.choose_best(policy.start_sums(), 2.5, 1.0, sw.RaySet(TARGETS), sw.RandomKey())
    assert (decision.reason_details, decision.action_index, decision.step_size) == (EMPTY, None, 0.0)
    np.testing.assert_array_equal(decision.action, SAFE)


def test_on_points_only_points_are_played() -> None:
    policy = PrintedLCLUCB(safe_action=KNOWN, **TOLD)
    decision = policy.decide(policy.start(), sw.FiniteSet(TARGETS))
    assert (decision.action_index, decision.step_size) == (None, 0.0), (
        "no listed action is certified before anything is seen"
    )
    rays = policy.decide(policy.start(), sw.RaySet(TARGETS))
    assert 0.0 < rays.step_size < 1.0


def test_the_printed_bonus_is_above_ours_and_no_setting_restores_it() -> None:
    """An unknown reward with a `reward_confidence_scale` regresses in all directions, and keeps our bonus."""
    printed, alpha = PrintedLCLUCB(safe_action=KNOWN, **TOLD), 4.0
    same: dict[str, Any] = {
        **TOLD,
        "radius": "paper",
        "split_delta": False,
        "mean_cost_bound": None,
        "reward_confidence_scale": alpha,
    }
    free = sw.LCLUCB(safe_action=sw.SafeAction(features=SAFE, cost=KNOWN.cost), **same)
    actions = sw.RaySet(TARGETS[:1])
    theirs = printed.choose_best(printed.start_sums(), alpha, 1.0, actions, sw.RandomKey())
    ours = free.decide(free.start(), actions)
    assert ours.step_size == pytest.approx(theirs.step_size), "the sets of the cost are the same"
    x = np.asarray(theirs.action)
    settings = printed.estimates(printed.start_sums())
    total, part = np.linalg.norm(x) / math.sqrt(0.5), math.sqrt(x @ settings.cost_inverse @ x)
    assert theirs.optimistic_reward == pytest.approx(alpha * settings.reward_radius * total)
    assert ours.optimistic_reward == pytest.approx(
        settings.reward_radius * total + (alpha - 1.0) * settings.cost_radius * part
    )
    assert ours.optimistic_reward < theirs.optimistic_reward - 0.1


def test_at_the_origin_our_bonus_is_the_printed_one_and_only_the_cost_s_radius_differs() -> None:
    settings = {**TOLD, "safe_action": sw.SafeAction(features=np.zeros(3), reward=0.0, cost=0.0)}
    printed = PrintedLCLUCB(**settings)
    ours = sw.LCLUCB(**settings, radius="paper", split_delta=False, mean_cost_bound=None)
    one, other = (policy.decide(policy.start(), sw.RaySet(TARGETS[:1])) for policy in (printed, ours))
    assert other.optimistic_reward / other.step_size == pytest.approx(one.optimistic_reward / one.step_size)
    assert other.step_size * printed.radius(0, 3) == pytest.approx(one.step_size * printed.radius(0, 2)), (
        "E3: d for d − 1"
    )


def test_the_warm_up_ends_when_both_averages_are_three_radii_inside() -> None:
    policy = PrintedUnknownBaseline(safe_action=UNKNOWN, **{**TOLD, "threshold": 0.6})
    state, draw = policy.start(), sw.RandomKey()
    needed = math.ceil(18.0 * math.log(1.0 / 0.05) / 0.5**2)  # the cost's slack .5 needs more than the reward's .8
    for round_ in range(needed):
        assert state.warm_up.cost is None, round_
        state = policy.learn(state, policy.decide_warm_up(draw), sw.Outcome(0.2, 0.1))
    assert state.warm_up.rounds == needed
    assert state.warm_up.reward == pytest.approx(0.2)
    assert state.warm_up.cost == pytest.approx(0.1)
    assert state.sums.rounds == needed, "the regressions are warm-started"
    decision = policy.decide(state, sw.RaySet(TARGETS), draw)
    expected = policy.choose_best(state.sums, 0.8 / 0.5, 1.0, sw.RaySet(TARGETS), draw)
    assert decision.optimistic_reward == pytest.approx(expected.optimistic_reward)


def test_an_average_is_kept_as_it_was_when_its_condition_first_held() -> None:
    policy = PrintedUnknownBaseline(safe_action=UNKNOWN, **{**TOLD, "threshold": 0.6})
    state = policy.start()
    while state.warm_up.reward is None:
        state = policy.learn(state, policy.decide_warm_up(sw.RandomKey()), sw.Outcome(0.2, 0.3))
    for _ in range(50):
        state = policy.learn(state, policy.decide_warm_up(sw.RandomKey()), sw.Outcome(0.9, 0.3))
    assert state.warm_up.cost is None
    assert state.warm_up.reward == pytest.approx(0.2)


def test_oplb_is_worth_what_a_search_over_mixtures_finds() -> None:
    policy = PrintedOPLB(safe_action=KNOWN, **TOLD, tolerance=1e-3, budget=200)
    state, scale = taught(policy, 60), policy.scales()[0]
    decision = policy.decide(state, sw.FiniteSet(TARGETS), sw.RandomKey())
    shares = np.array([p for p in product(np.linspace(0.0, 1.0, 41), repeat=3) if sum(p) <= 1.0 + 1e-12])
    means = shares @ TARGETS + (1.0 - shares.sum(axis=1))[:, None] * SAFE
    optimistic, pessimistic = values(means, 60, True, scale)
    best = optimistic[pessimistic <= 0.4].max()
    assert decision.optimistic_reward + decision.solver_gap >= best - 1e-9
    assert decision.optimistic_reward <= optimistic.max() + 1e-9
    mean = decision.probabilities @ np.vstack([TARGETS, SAFE])
    own = values(mean[None], 60, True, scale)
    assert decision.optimistic_reward == pytest.approx(own[0][0], abs=1e-6)
    assert own[1][0] <= 0.4 + 1e-9


CLASSES: dict[str, Any] = {
    "reward_class": [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]],
    "cost_class": [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]],
    "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0),
    "threshold": 0.3,
}


def test_opnlb_compares_the_norm_with_the_radius_and_not_its_square() -> None:
    policy = PrintedOPNLB(**CLASSES)
    radius = 512.0 * math.log(24 * 2 * math.log(2 * 100_001) / 0.005)
    assert policy.radius(100_000, 2) == pytest.approx(radius)
    fits = policy.start()._replace(rounds=100_000, losses=(np.array([0.0, 1e5]), np.array([0.0, 1e5])))
    fits = fits._replace(pulls=np.array([0.0, 50_000.0, 50_000.0]))
    squared = 0.4**2 * 100_000
    assert squared > radius > math.sqrt(squared)
    assert [kept.tolist() for kept in policy.plausible(fits)] == [[True, True], [True, True]]
    enough = fits._replace(pulls=np.array([0.0, 1.01 * radius**2 / 0.4**2, 0.0]))
    assert [kept.tolist() for kept in policy.plausible(enough)] == [[True, False], [True, False]]


def test_opnlb_decides_as_the_exact_one_where_nothing_is_excluded() -> None:
    printed, exact = PrintedOPNLB(**CLASSES), ExactOPNLB(**CLASSES, sets="paper")
    first, second = printed.decide(printed.start(), None), exact.decide(exact.start(), sw.ArmSet(3))
    assert first.optimistic_reward == pytest.approx(second.optimistic_reward)
    assert first.pessimistic_cost[0] <= 0.3 + 1e-9
    only = printed.start()._replace(losses=(np.array([1.0, 0.0]), np.zeros(2)))
    assert printed.decide(only, None).optimistic_reward == pytest.approx(first.optimistic_reward), (
        "every reward function is still plausible"
    )


def test_a_cost_function_that_contradicts_the_safe_arm_is_left_out() -> None:
    policy = PrintedOPNLB(**{**CLASSES, "cost_class": [[0.0, 0.2, 0.6], [0.1, 0.0, 0.0]]})
    assert policy.plausible(policy.start())[1].tolist() == [True, False]
