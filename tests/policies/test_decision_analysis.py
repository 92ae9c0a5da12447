"""The best by today's estimates is found by the rules that decide: held against a solver, and against all rays."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog  # type: ignore[import-untyped]

from stagewise.agent.decision_analysis import find_best_mixture, find_best_ray


def instance(seed: int, m: int) -> tuple[Any, Any, Any]:
    """Return rewards (K + 1,), some of them not on offer, costs (m, K + 1) and limits (m,)."""
    chance = np.random.default_rng([seed, m])
    count = int(chance.integers(1, 30))
    reward, costs = chance.normal(size=count + 1), chance.random((m, count + 1))
    reward[:-1][chance.random(count) < 0.2] = -np.inf
    costs[:, -1] *= 0.3
    return reward, costs, np.full(m, 0.3 + 0.2 * chance.random())


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_best_mixture_is_the_solvers(m: int) -> None:
    for seed in range(40):
        reward, costs, limits = instance(seed, m)
        weights, on_offer = find_best_mixture(reward, costs, limits), np.isfinite(reward)
        told = {"A_ub": costs[:, on_offer], "b_ub": limits, "A_eq": np.ones((1, on_offer.sum())), "b_eq": [1.0]}
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert (costs @ weights <= limits + 1e-9).all()
        assert weights[~on_offer].sum() == 0.0
        best = -linprog(-reward[on_offer], **told, method="highs").fun
        assert weights[on_offer] @ reward[on_offer] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("m", [0, 1, 3])
def test_the_best_ray_is_the_best_of_all_at_their_longest_safe_steps(m: int) -> None:
    for seed in range(40):
        reward, costs, limits = instance(seed, m)
        weights, gains = find_best_ray(reward, costs, limits), [0.0]
        for ray in np.flatnonzero(np.isfinite(reward[:-1])):
            steps = np.linspace(0.0, 1.0, 2001)
            along = costs[:, -1:] + steps * (costs[:, ray] - costs[:, -1])[:, None]
            safe = steps[(along <= limits[:, None] + 1e-12).all(axis=0)]
            gains.append(float(safe.max() * (reward[ray] - reward[-1])))
        got = weights[:-1][np.isfinite(reward[:-1])] @ (reward[:-1][np.isfinite(reward[:-1])] - reward[-1])
        assert max(gains) - 1e-9 <= got <= max(gains) + 5e-3
        assert (costs @ weights <= limits + 1e-9).all()


def test_where_the_safe_action_is_above_a_limit_it_is_all_there_is() -> None:
    reward, costs = np.array([1.0, 2.0, 0.0]), np.array([[0.1, 0.2, 0.5]])
    for best in (find_best_mixture, find_best_ray):
        assert best(reward, costs, np.array([0.4])).tolist() == [0.0, 0.0, 1.0]
    assert find_best_mixture(reward, costs[:0], np.empty(0)).tolist() == [0.0, 1.0, 0.0]
