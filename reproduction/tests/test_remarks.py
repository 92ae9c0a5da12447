"""Remarks of the paper about the order of its bounds, on the bounds themselves."""

import numpy as np

import stagewise as sw
from stagewise.reports.guarantee import RegretBound, compute_regret_bound
from stagewise_reproduction.paper.figure_1.claims import compute_theorem_bound


def slope(values: list[float], sizes: list[int]) -> float:
    """Return the slope of log values against log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def test_the_bound_of_lc_lucb_grows_as_the_remark_says() -> None:
    """At λ = 1 of order (1 + (1 − r₀)/(τ − c₀)) d √T, up to logarithms."""
    sizes = [10**4, 10**5, 10**6]
    assert 0.5 < slope([compute_theorem_bound(rounds, 5, 0.5) for rounds in sizes], sizes) < 0.6
    assert 0.9 < slope([compute_theorem_bound(10**5, d, 0.5) for d in (8, 16, 32)], [8, 16, 32]) <= 1.0
    gaps = [0.5, 0.25, 0.125]
    ratios = [compute_theorem_bound(10**5, 5, gap) / (1.0 + 1.0 / gap) for gap in gaps]
    assert max(ratios) / min(ratios) < 1.05, "the ratio of shortfall and slack is what it is proportional to"


def bound_of(policy: object, world: object, rounds: int) -> float:
    found = compute_regret_bound(policy, world, np.array([rounds]))
    assert isinstance(found, RegretBound)
    return float(found.values[0])


def test_the_bound_for_arms_saves_a_root_of_their_number() -> None:
    """OPLB on unit vectors has a bound of order K √T, OPB one of order √(KT)."""
    counts, rounds = [8, 32, 128], 200_000
    linear, arms = [], []
    for count in counts:
        safe = np.eye(count)[0]
        value, costs = np.linspace(0.1, 0.9, count), np.linspace(0.0, 0.5, count)
        listed = sw.LinearWorld(reward=value, cost=costs, actions=sw.FiniteSet(np.eye(count)), noise=0.5)
        norm = float(np.linalg.norm(value))
        oplb = sw.OPLB(
            safe_action=sw.SafeAction(features=safe, reward=0.1, cost=0.0), threshold=0.3, noise=0.5, ridge=1.0,
            norm_bound=norm, mean_cost_bound=None,
        )  # fmt: skip
        opb = sw.OPB(arms=count, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.3)
        linear.append(bound_of(oplb, listed, rounds))
        arms.append(bound_of(opb, sw.ArmsWorld(reward=value, cost=costs), rounds))
    saved = [one / other for one, other in zip(linear, arms, strict=True)]
    assert slope(arms, counts) < 0.65
    assert 0.25 < slope(saved, counts) < 0.75, "about a root of K"
