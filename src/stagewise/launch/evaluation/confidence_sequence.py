"""A confidence sequence: an interval for a mean that holds at all times, by an empirical Bernstein bound.

Proved in docs/theory/evaluation.md. Each term must have a lower or an upper end; means may change, and the actions may
depend on the past.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln  # type: ignore[import-untyped]

from stagewise.engine.compile import Floats, Ints

MIXTURE_SHAPE = 2.0  # ρ of the mixture, fixed before any data: nearly best where the squares add up to 1 to 100
BISECTION_STEPS = 50
FIRST_GUESS = 0.5  # of a mean in [0, 1]


class ConfidenceSequence(NamedTuple):
    """Running means (k,) and the ends (k,) of their intervals, after some numbers of terms (k,)."""

    after: Ints
    mean: Floats
    low: Floats
    high: Floats


def log_mixture(excess: Floats, squares: Floats, rho: float = MIXTURE_SHAPE) -> Floats:
    """Return log m(s, v), the logarithm of a non-negative supermartingale that starts at 1.

    m(s, v) = ρ^ρ / γ(ρ, ρ) · e^(s+v) γ(v + ρ, s + v + ρ) / (s + v + ρ)^(v+ρ)      (Howard et al. 2021, Prop. 9)
    """
    shape, end = squares + rho, excess + squares + rho
    start = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))
    return np.asarray(
        start + excess + squares + gammaln(shape) + np.log(gammainc(shape, end)) - shape * np.log(end), dtype=np.float64
    )


def boundary(squares: Floats, alpha: float, rho: float = MIXTURE_SHAPE) -> Floats:
    """Return u(v), the least s with m(s, v) ≥ 1/α: which the sum of the errors exceeds with probability at most α.

    >>> boundary(np.array([0.0, 10.0, 1000.0]), 0.025).round(2)
    array([  5.92,  12.82, 116.77])
    """
    target = np.log(1.0 / alpha)
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while (short := log_mixture(high, squares, rho) < target).any():
        high = np.where(short, 2.0 * high, high)
    for _ in range(BISECTION_STEPS):
        middle = 0.5 * (low + high)
        short = log_mixture(middle, squares, rho) < target
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def compute_running_means(terms: Floats) -> Floats:
    """Return for each term the mean of the earlier ones, within [0, 1]; the bound holds for any guess."""
    before = FIRST_GUESS + np.cumsum(terms, axis=-1) - terms
    return np.asarray(np.clip(before / np.arange(1.0, terms.shape[-1] + 1.0), 0.0, 1.0), dtype=np.float64)


def bound_squared_deviations(terms: Floats) -> Floats:
    """Return an upper bound of Σ (termₜ − guessₜ)² for every order of the terms (n,) (Lemma 5).

    >>> terms = np.array([0.0, 0.0, 1.0, 3.0])
    >>> for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]):
    ...     assert ((terms[order] - compute_running_means(terms[order])) ** 2).sum() <= bound_squared_deviations(terms)
    """
    centre = np.clip((FIRST_GUESS + terms.sum()) / (terms.size + 1.0), 0.0, 1.0)
    least = ((terms - centre) ** 2).sum() + (FIRST_GUESS - centre) ** 2
    farthest = np.sort(np.maximum(terms**2, (1.0 - terms) ** 2))[::-1]
    return np.asarray(least + 2.0 * (farthest / np.arange(2.0, terms.size + 2.0)).sum(), dtype=np.float64)


def compute_radius(terms: Floats, room: float, alpha: float, after: Ints, ordered: bool = True) -> Floats:
    """Return how far (k,) the mean of terms may be above its expectation, at all times with probability 1 − α.

    `room` is c with termₜ − guessₜ ≥ −c always. If terms are not `ordered` as they occurred, `after` is their number.
    """
    if ordered:
        squares = np.cumsum((terms - compute_running_means(terms)) ** 2, axis=-1)[..., after - 1] / room**2
    else:
        squares = bound_squared_deviations(terms)[None] / room**2
    return np.asarray(room * boundary(squares, alpha) / after, dtype=np.float64)


def compute_sequence(
    lower: Floats, upper: Floats, ranges: tuple[float, float], alpha: float, after: Ints, ordered: bool = True
) -> ConfidenceSequence:
    """Return the interval within [0, 1] after each of these numbers of terms.

    The mean is between the expected `lower` and the expected `upper` terms (n,), which differ only if a part of it is
    unknown. Terms (…, n) of several logs are evaluated at once. `ordered` is as for `compute_radius`.
    """
    low_mean, high_mean = (np.cumsum(terms, axis=-1)[..., after - 1] / after for terms in (lower, upper))
    low = np.clip(low_mean - compute_radius(lower, ranges[0], 0.5 * alpha, after, ordered), 0.0, 1.0)
    high = np.clip(high_mean + compute_radius(1.0 - upper, ranges[1], 0.5 * alpha, after, ordered), 0.0, 1.0)
    return ConfidenceSequence(after, np.clip(0.5 * (low_mean + high_mean), low, high), low, high)


def choose_log_spaced(count: int, points: int = 200) -> Ints:
    """Return numbers of terms that are evenly spaced on a logarithmic scale, with the last.

    >>> choose_log_spaced(5).tolist()
    [1, 2, 3, 4, 5]
    """
    return np.unique(np.geomspace(1.0, count, points).round().astype(np.int64))
