"""Methods of others: those that promise every round keep it, those that promise an average do not."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.comparison.plan import draw_finite_world
from stagewise_reproduction.beyond.rivals.plan import build_campaign_policies
from stagewise_reproduction.instances import at_zero, shifted
from stagewise_reproduction.rivals.conformal import calibrate
from stagewise_reproduction.rivals.estimation_to_decision import LOE2D, ConservativeSquareCB
from stagewise_reproduction.rivals.pacing import Pacing
from stagewise_reproduction.rivals.safe_pe import SafePE, compute_design
from stagewise_reproduction.rivals.scolts import SCOLTS

RAYS = shifted(4, 0.1)
SETTINGS: dict[str, Any] = {"safe_action": at_zero(4), "threshold": 0.3, "noise": 0.1}
FINITE: dict[str, Any] = {"safe_action": at_zero(4), "threshold": 0.2, "noise": 0.1}


def play(policy: Any, world: Any, rounds: int, runs: int = 2) -> Any:
    settings: dict[str, Any] = {"seed": 3, "backend": "python", "progress": False, "record_points": 10}
    return sw.simulate(policy, world, rounds=rounds, runs=runs, **settings)


@pytest.mark.parametrize(
    "policy",
    [
        SCOLTS(**SETTINGS),
        SCOLTS(**SETTINGS, perturbation="posterior"),
        SafePE(**SETTINGS, directions=np.array(RAYS.actions.features), horizon=600),
    ],
    ids=["theory", "posterior", "Safe-PE"],
)
def test_on_rays_no_round_is_over_the_limit_and_play_moves_away_from_the_safe_action(policy: Any) -> None:
    result = play(policy, RAYS, 600)
    assert result.violations.sum() == 0
    assert result.reward[:, -1].mean() > 0.5 * result.optimum[:, -1].mean()


def test_a_wrong_norm_bound_breaks_the_first_phase() -> None:
    """The guarantee rests on what is declared: it is the policy that is tested above, not the world."""
    wrong = SafePE(**SETTINGS, norm_bound=0.2, directions=np.array(RAYS.actions.features), horizon=600)
    assert play(wrong, RAYS, 100).violations.sum() > 0


@pytest.mark.parametrize("kind", [LOE2D, Pacing])
def test_prices_keep_the_average_and_not_the_round(kind: Any) -> None:
    results = [play(kind(**FINITE), draw_finite_world(run), 800, 1) for run in range(2)]
    assert max(float(result.cost[:, -5:].mean()) for result in results) < 0.25
    assert min(int(result.violations.sum()) for result in results) > 100


def test_conservative_exploration_stays_within_the_budget_of_all_rounds() -> None:
    result = play(ConservativeSquareCB(**FINITE), draw_finite_world(0), 800, 1)
    total = np.cumsum(result.cost[0, :, 0] * np.diff(result.rounds, prepend=0))
    assert np.all(total <= 0.2 * result.rounds)
    assert result.violations.sum() > 0


def test_a_calibrated_threshold_keeps_the_empirical_risk_and_no_larger_one_does() -> None:
    random = np.random.default_rng(0)
    scores, costs = random.uniform(size=500), (random.uniform(size=500) < 0.1).astype(float)
    highest = calibrate(scores, costs, 0.04)
    larger = float(np.min(scores[scores > highest]))
    assert (costs[scores <= highest].sum() + 1.0) / 501 <= 0.04 < (costs[scores <= larger].sum() + 1.0) / 501
    assert calibrate(scores, np.ones(500), 0.001) == -np.inf


def test_on_the_campaign_averages_go_over_the_limit_of_many_users() -> None:
    builders = build_campaign_policies("smoke")
    shares = {name: play(*builders[name](0), 800, 1).violations.mean() / 800 for name in ("pacing", "conformal")}
    assert min(shares.values()) > 0.05


def test_a_design_is_no_worse_than_equal_weights() -> None:
    points = np.random.default_rng(1).normal(size=(12, 3))
    weights = compute_design(points)

    def worst(of: Any) -> float:
        gram = (points * of[:, np.newaxis]).T @ points
        return float(np.einsum("ij,jk,ik->i", points, np.linalg.inv(gram), points).max())

    assert weights.sum() == pytest.approx(1.0)
    assert 3.0 <= worst(weights) < 1.05 * 3.0 <= worst(np.full(12, 1 / 12))
