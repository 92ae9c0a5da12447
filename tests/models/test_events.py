"""What stands for the forecasts of a log, against integrals worked out by numbers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from stagewise.models import rare_events as rare_events_model
from stagewise.models.rare_events import SCALES, compute_linear_loss, compute_log_loss, compute_rate_loss

BOUND, GUESS = 0.5, 0.05


def log(count: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with one feature in (½, 1½), and events of that rate at 1."""
    chance = np.random.default_rng(seed)
    features = chance.uniform(0.5, 1.5, size=(count, 1))
    return features, (chance.uniform(size=count) < rate * features[:, 0]).astype(float)


def test_a_rate_is_the_integral_over_its_prior() -> None:
    _, observed = log(300, 0.04, 0)
    total, before = observed.sum(), 0.5 / GUESS

    def density(rate: float) -> float:
        prior = math.sqrt(before / (math.pi * rate)) * math.exp(-before * rate)
        return math.exp(total * math.log(rate / 0.04) - 300 * (rate - 0.04)) * prior

    value = quad(density, 1e-12, 0.5, points=[0.04], limit=400)[0]
    assert compute_rate_loss(observed, GUESS) == pytest.approx(
        -math.log(value) - total * math.log(0.04) + 300 * 0.04, abs=1e-4
    )


@pytest.mark.parametrize(("count", "rate"), [(200, 0.02), (2000, 0.02), (2000, 0.2)])
def test_a_line_is_bounded_by_a_little_more_than_its_integral(count: int, rate: float) -> None:
    features, observed = log(count, rate, count)
    hit, x = observed > 0.0, features[:, 0]

    def loss(slope: float) -> float:
        return float(slope * x.sum() - np.log(slope * x[hit]).sum())

    least, value = loss(hit.sum() / x.sum()), 0.0
    for scale in BOUND * 0.5 ** np.arange(SCALES):
        weight = 1.0 / (SCALES * scale * math.sqrt(2.0 * math.pi))
        value += quad(
            lambda slope, s=scale, w=weight: w * math.exp(least - loss(slope) - slope**2 / (2.0 * s**2)),
            1e-9, 1.0, points=[rate], limit=400,
        )[0]  # fmt: skip
    exact = least - math.log(value)
    assert exact <= compute_linear_loss(features, observed, BOUND, GUESS) <= exact + 2.0


def test_the_order_of_rows_does_not_matter() -> None:
    chance = np.random.default_rng(3)
    features, observed = np.column_stack([np.ones(500), chance.uniform(size=(500, 2))]), np.zeros(500)
    observed[:20] = 1.0
    order = chance.permutation(500)
    settings = compute_log_loss(features, observed, BOUND, GUESS)
    assert compute_log_loss(features[order], observed[order], BOUND, GUESS) == pytest.approx(settings, rel=1e-9)


def test_rates_below_nothing_cost_what_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, mu = np.random.default_rng(4), np.array([0.1, 0.1])
    features = np.array([[1.0, 1.0], [1.0, -1.0]])[(np.arange(4000) % 2)]  # the second kind never has an event
    observed = (chance.uniform(size=4000) < features @ mu).astype(float)
    hit = observed > 0.0
    truth = float((features @ mu).sum() - np.log(features[hit] @ mu).sum())
    assert compute_linear_loss(features, observed, BOUND, GUESS) > truth - 10.0
    monkeypatch.setattr(rare_events_model, "compute_shortfall", lambda *_: 0.0)
    assert compute_linear_loss(features, observed, BOUND, GUESS) < truth - 50.0  # which chance allows once in e^50


def test_a_log_without_an_event_is_short() -> None:
    assert compute_log_loss(np.ones((1000, 1)), np.zeros(1000), BOUND, GUESS) < 5.0
