"""Steps of the paper's proofs that are statements about numbers: each is tried on many, or refuted by one."""

import math
from itertools import product

import numpy as np
import pytest

from stagewise_reproduction.beyond.lower_bound.plan import SAFE_REWARD, build_instance, compute_bound, compute_horizon

SEEDS = range(200)


def ellipsoid(rng: np.random.Generator, gram: np.ndarray, radius: float) -> np.ndarray:
    """Return a point on the boundary of {v : ‖v‖_Σ ≤ radius}."""
    way = rng.normal(size=len(gram))
    return radius * way / math.sqrt(way @ gram @ way)


def width(x: np.ndarray, inverse: np.ndarray) -> float:
    return math.sqrt(max(float(x @ inverse @ x), 0.0))


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_widths_are_bounded_where_the_ridge_is_large_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, rounds, longest = int(rng.integers(1, 5)), int(rng.integers(1, 200)), float(rng.uniform(0.5, 5.0))
    ridge = longest**2 * float(rng.uniform(1.0, 3.0))
    gram, total = ridge * np.eye(d), 0.0
    for _ in range(rounds):
        x = rng.normal(size=d)
        x *= longest * rng.uniform() / np.linalg.norm(x)
        total += width(x, np.linalg.inv(gram))
        gram += np.outer(x, x)
    assert total <= math.sqrt(2 * rounds * d * math.log(1 + rounds * longest**2 / ridge))


def test_sums_of_widths_are_not_bounded_by_it_at_ridge_one() -> None:
    """E10: one round, one dimension, an action of length 10."""
    assert width(np.array([10.0]), np.eye(1)) > math.sqrt(2 * math.log(1 + 100.0))


def test_the_largest_value_over_an_ellipsoid_is_the_closed_form() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 5))
        roots = rng.normal(size=(d, d))
        gram, centre, x, radius = (
            roots @ roots.T + np.eye(d),
            rng.normal(size=d),
            rng.normal(size=d),
            rng.uniform(0.1, 2),
        )
        closed = float(x @ centre) + radius * width(x, np.linalg.inv(gram))
        values = [float(x @ (centre + ellipsoid(rng, gram, radius))) for _ in range(50)]
        attained = centre + radius * np.linalg.solve(gram, x) / width(x, np.linalg.inv(gram))
        assert max(values) <= closed + 1e-9
        assert float(x @ attained) == pytest.approx(closed)


def test_a_round_of_lc_lucb_is_optimistic_step_by_step() -> None:
    """The lemma on optimism, (14) to (21), on estimates anywhere in their sets; one radius for both signals."""
    shortened = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        d, radius = 3, float(rng.uniform(0.2, 1.5))
        past = rng.normal(size=(int(rng.integers(1, 30)), d))
        gram = np.eye(d) + past.T @ past
        safe, best = rng.normal(size=d), rng.normal(size=d)
        theta = rng.normal(size=d)
        theta /= max(1.0, float(theta @ best), float(theta @ safe)) + 1.0
        reward, optimum = float(theta @ safe), float(theta @ best)
        if not 0.0 <= reward <= optimum <= 1.0:
            continue
        unit = safe / np.linalg.norm(safe)
        project = np.eye(d) - np.outer(unit, unit)
        inside = np.linalg.pinv(project @ gram @ project)
        mu = rng.normal(size=d)
        cost, threshold = float(mu @ safe), float(mu @ best) + float(rng.uniform(0.0, 0.2))
        if not threshold > cost + 0.05:
            continue
        error = project @ rng.normal(size=d)
        error *= radius * rng.uniform() / math.sqrt(error @ gram @ error)
        guess = theta + rng.uniform() * ellipsoid(rng, gram, radius)
        inverse = np.linalg.inv(gram)

        def pessimistic(x: np.ndarray) -> float:
            return float(x @ (mu + error)) + radius * width(project @ x, inside)  # noqa: B023 (used in this round)

        assert width(project @ best, inside) <= width(best, inverse) + 1e-9, "(13)"
        scale = 1.0 + 2.0 * (1.0 - reward) / (threshold - cost)
        costly = pessimistic(best)
        share = min(1.0, (threshold - cost) / (costly - cost)) if costly > threshold else 1.0
        point = share * best + (1.0 - share) * safe
        np.testing.assert_allclose(project @ point, share * (project @ best), atol=1e-9)  # (16)
        assert pessimistic(point) == pytest.approx((1.0 - share) * cost + share * costly)  # (17), (18)
        wide = radius * width(project @ best, inside)
        assert share >= (threshold - cost) / (threshold - cost + 2.0 * wide) - 1e-9, "(19)"
        optimistic = float(point @ guess) + scale * radius * width(point, inverse)
        assert optimistic >= optimum - 1e-9, "(20), (21)"
        shortened += share < 1.0
    assert shortened >= 10, "the optimum was outside of the estimated set"


def test_with_several_constraints_the_smallest_slack_bounds_the_share() -> None:
    """(24), for shares cut by any of several constraints."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        m = int(rng.integers(1, 4))
        costs, truths, wide = rng.uniform(0, 0.3, m), rng.uniform(0, 0.5, m), float(rng.uniform(0, 1))
        limits = np.maximum(truths, costs) + rng.uniform(0.01, 0.3, m)
        costly = truths + rng.uniform(0, 2, m) * wide
        cut = [(t - c) / (w - c) for t, c, w in zip(limits, costs, costly, strict=True) if w > t]
        slack = float(np.min(limits - costs))
        assert min([1.0, *cut]) >= slack / (slack + 2.0 * wide) - 1e-12


def test_divergences_and_the_binary_entropy() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(2, 2))
    draws = means[0] + rng.normal(size=(400_000, 2))
    logs = 0.5 * np.sum((draws - means[1]) ** 2 - (draws - means[0]) ** 2, axis=1)
    assert logs.mean() == pytest.approx(0.5 * np.sum((means[0] - means[1]) ** 2), abs=0.02)
    for x in np.linspace(0.5, 1.0, 101):
        for y in np.linspace(0.001, 0.999, 200):
            entropy = x * math.log(x / y) + ((1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0)
            assert entropy >= 0.5 * math.log(1 / (4 * y)) - 1e-12, "(48)"


def test_a_divergence_over_rounds_is_that_of_the_pulls_and_bounds_every_event() -> None:
    """Three rounds of two coins, all 64 histories; the arm pulled depends on what was seen."""
    first, second = np.array([0.4, 0.7]), np.array([0.4, 0.2])

    def arm_of(observed: tuple[int, ...]) -> int:
        return sum(observed) % 2

    def probability(history: tuple[int, ...], rates: np.ndarray) -> float:
        arms = [arm_of(history[:index]) for index in range(len(history))]
        return math.prod(rates[a] if y else 1 - rates[a] for a, y in zip(arms, history, strict=True))

    histories = list(product((0, 1), repeat=3))
    p, q = (np.array([probability(one, rates) for one in histories]) for rates in (first, second))
    full = float(np.sum(p * np.log(p / q)))
    pulls = [sum(a == arm for a in [arm_of(one[:index]) for index in range(3)]) for one in histories for arm in (1,)]
    each = 0.7 * math.log(0.7 / 0.2) + 0.3 * math.log(0.3 / 0.8)
    assert full == pytest.approx(float(p @ pulls) * each)
    for chosen in product((False, True), repeat=8):
        x, y = float(p[list(chosen)].sum()), float(q[list(chosen)].sum())
        if 0 < x < 1 and 0 < y < 1:
            assert full >= x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y)) - 1e-12, "(49)"


def test_at_the_shortest_horizon_the_events_of_the_lower_bound_have_their_probabilities() -> None:
    """(50) and what follows: Δ = (1 − r₀)/7, T = 168eB/(1 − r₀)."""
    gap, step = 0.05, (1.0 - SAFE_REWARD) / 7.0
    rounds, least = compute_horizon(gap), compute_bound(gap)
    assert 1.0 - 6.0 * least / (step * rounds) >= 0.5
    assert 2.0 * least / (3.0 * step * rounds) <= 1.0 / (4.0 * math.e)
    first, second = (np.asarray(build_instance(gap, which).table)[1] for which in ("ν", "ν'"))
    divergence = 0.5 * float(np.sum((first - second) ** 2))
    assert divergence == pytest.approx(4.5 * gap**2), "E55: the printed 2c² is smaller"
    assert 4.0 * step * 0.5 / divergence >= least, "each pull of arm 3 loses 4Δ, and ½/KL pulls are needed"


def test_least_squares_are_no_farther_from_the_truth_than_the_noise_tells() -> None:
    """(55), for the best of a finite class that holds the truth."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = rng.uniform(size=(6, 30))
        noise = rng.normal(size=30)
        fit = table[int(np.argmin(np.sum((table - (table[0] + noise)) ** 2, axis=1)))]
        assert np.sum((fit - table[0]) ** 2) <= 2.0 * np.sum(noise * (fit - table[0])) + 1e-9
