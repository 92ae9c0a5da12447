"""A confidence sequence: an interval for a mean that holds at all times at once, by an empirical Bernstein bound.

Proved in docs/theory/evaluation.md. Nothing is asked of the terms but that each has a lower or an upper end: means may
move, and what was played may depend on all that was seen before.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln  # type: ignore[import-untyped]

from stagewise.kernels.compile import Floats, Ints

SHAPE = 2.0  # ρ of the mixture, fixed before any data: nearly best where the squares add up to 1 to 100
HALVINGS = 50
FIRST_GUESS = 0.5  # of a mean in [0, 1]


class Sequence(NamedTuple):
    """A running mean (k,) and the ends (k,) of its interval, after so many terms (k,)."""

    after: Ints
    mean: Floats
    low: Floats
    high: Floats


def log_mixture(excess: Floats, squares: Floats, rho: float = SHAPE) -> Floats:
    """Return log m(s, v), the logarithm of a non-negative supermartingale that starts at 1.

    m(s, v) = ρ^ρ / γ(ρ, ρ) · e^(s+v) γ(v + ρ, s + v + ρ) / (s + v + ρ)^(v+ρ)      (Howard et al. 2021, Prop. 9)
    """
    shape, end = squares + rho, excess + squares + rho
    start = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))
    return np.asarray(
        start + excess + squares + gammaln(shape) + np.log(gammainc(shape, end)) - shape * np.log(end), dtype=np.float64
    )


def boundary(squares: Floats, alpha: float, rho: float = SHAPE) -> Floats:
    """Return u(v), the least s with m(s, v) ≥ 1/α: what the sum of the errors exceeds with probability at most α.

    >>> boundary(np.array([0.0, 10.0, 1000.0]), 0.025).round(2)
    array([  5.92,  12.82, 116.77])
    """
    target = np.log(1.0 / alpha)
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while (short := log_mixture(high, squares, rho) < target).any():
        high = np.where(short, 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        short = log_mixture(middle, squares, rho) < target
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def guesses(terms: Floats) -> Floats:
    """Return for each term the mean of those before it, within [0, 1]: whatever is guessed, the bound holds."""
    before = FIRST_GUESS + np.cumsum(terms, axis=-1) - terms
    return np.asarray(np.clip(before / np.arange(1.0, terms.shape[-1] + 1.0), 0.0, 1.0), dtype=np.float64)


def largest_squares(terms: Floats) -> Floats:
    """Return what Σ (termₜ − guessₜ)² is at most, in whatever order the terms (n,) came (Lemma 5).

    >>> terms = np.array([0.0, 0.0, 1.0, 3.0])
    >>> for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]):
    ...     assert ((terms[order] - guesses(terms[order])) ** 2).sum() <= largest_squares(terms)
    """
    centre = np.clip((FIRST_GUESS + terms.sum()) / (terms.size + 1.0), 0.0, 1.0)
    least = ((terms - centre) ** 2).sum() + (FIRST_GUESS - centre) ** 2
    farthest = np.sort(np.maximum(terms**2, (1.0 - terms) ** 2))[::-1]
    return np.asarray(least + 2.0 * (farthest / np.arange(2.0, terms.size + 2.0)).sum(), dtype=np.float64)


def distance(terms: Floats, room: float, alpha: float, after: Ints, ordered: bool = True) -> Floats:
    """Return how far (k,) the mean of terms may be above what is expected, at all times with probability 1 − α.

    `room` is c with termₜ − guessₜ ≥ −c whatever happens. Where terms are not `ordered` as they came, `after` is all of
    them.
    """
    if ordered:
        squares = np.cumsum((terms - guesses(terms)) ** 2, axis=-1)[..., after - 1] / room**2
    else:
        squares = largest_squares(terms)[None] / room**2
    return np.asarray(room * boundary(squares, alpha) / after, dtype=np.float64)


def sequence(
    lower: Floats, upper: Floats, rooms: tuple[float, float], alpha: float, after: Ints, ordered: bool = True
) -> Sequence:
    """Return the interval after each of these numbers of terms, within [0, 1], where every mean lies.

    The mean that is sought lies between the expected `lower` and the expected `upper` terms (n,); they differ only
    where a part of it is not known. Several logs at once are rows of terms (…, n). `ordered` is as for `distance`.
    """
    low_mean, high_mean = (np.cumsum(terms, axis=-1)[..., after - 1] / after for terms in (lower, upper))
    low = np.clip(low_mean - distance(lower, rooms[0], 0.5 * alpha, after, ordered), 0.0, 1.0)
    high = np.clip(high_mean + distance(1.0 - upper, rooms[1], 0.5 * alpha, after, ordered), 0.0, 1.0)
    return Sequence(after, np.clip(0.5 * (low_mean + high_mean), low, high), low, high)


def moments(count: int, most: int = 200) -> Ints:
    """Return at which numbers of terms a sequence is looked at: evenly on a logarithmic scale, and at the end.

    >>> moments(5).tolist()
    [1, 2, 3, 4, 5]
    """
    return np.unique(np.geomspace(1.0, count, most).round().astype(np.int64))
