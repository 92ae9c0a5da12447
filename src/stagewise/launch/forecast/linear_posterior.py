"""The posterior of a linear signal given a log: a normal distribution of the parameters of every action.

    θ_a ~ N(P⁻¹ b, P⁻¹ M P⁻¹),    P = Σ xxᵀ/σ² + D,    b = Σ xy/σ² + D θ₀,    M = Σ xxᵀ (e/(1 − h))²/σ⁴ + D

M uses the errors e as they are (MacKinnon and White's HC3), since the variance of binary outcomes depends on their
mean. D and θ₀ are the prior: any mean between 0 and 1, with matching slopes. One more row, of the mean user with an
outcome of ½, stands for Jeffreys' prior: without events a rate is not known to be 0.
Actions with rows are shrunk towards each other as far as they are similar (`shrinkage`). A number that is constant for
an action has no slope there (`constant_features`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.forecast.constant_features import find_constant_features
from stagewise.launch.forecast.shrinkage import draw_common_prior

PRIOR_MEAN, PRIOR_DEVIATION = 0.5, 0.5  # of the constant; slopes have a deviation smaller by √d
CLIP_STEPS = 30  # to restore the mean of clipped means


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """The parameters of one signal, scaled to [0, 1], by action."""

    centres: Floats  # (K, d)
    covariances: Floats  # (K, d, d)
    known: Flags  # (K,) which actions have rows
    fixed: Flags  # (K, d) which slopes are 0, because the number is constant

    @classmethod
    def of(cls, actions: Ints, users: Floats, values: Floats, count: int) -> "LinearPosterior":
        """Fit actions (n,), users (n, d) and outcomes (n,)."""
        fixed, known = find_constant_features(actions, users, count), np.bincount(actions, minlength=count) > 0
        fits_by_action = [fit_action(users[actions == a] * ~fixed[a], values[actions == a]) for a in range(count)]
        centres, covariances = (
            np.stack([centre for centre, _ in fits_by_action]),
            np.stack([covariance for _, covariance in fits_by_action]),
        )
        centres[fixed], covariances[fixed], covariances.swapaxes(1, 2)[fixed] = 0.0, 0.0, 0.0
        return cls(centres, covariances, known, fixed)

    @property
    def sample_size(self) -> int:
        """The number of normal variates of a draw."""
        return int(self.centres.size + 2 * self.centres.shape[1])

    def sample_parameters(self, normal: Floats) -> Floats:
        """Return a draw of the parameters (K, d), with shrinkage between actions with rows."""
        count, d = self.centres.shape
        steps, chances, deviates = normal[: count * d].reshape(count, d), ndtr(normal[-2 * d : -d]), normal[-d:]
        known, variances = self.known, np.diagonal(self.covariances, axis1=1, axis2=2)
        widest = np.append(PRIOR_DEVIATION**2, np.full(d - 1, PRIOR_DEVIATION**2 / d))
        fits = np.where(self.fixed, np.nan, self.centres)
        common = draw_common_prior(fits[known], variances[known], widest, chances, deviates)
        theta = np.empty((count, d))
        for a in range(count):
            centre, covariance = self.centres[a], self.covariances[a]
            if common is not None and known[a]:
                weight = np.diag(common.variance) @ np.linalg.inv(np.diag(common.variance) + covariance)
                centre, covariance = common.centre + weight @ (centre - common.centre), weight @ covariance
            theta[a] = centre + compute_root(covariance) @ steps[a]
        return theta

    def sample(self, normal: Floats, users: Floats) -> Floats:
        """Return a draw of the means (n, K) of some users (n, d), in [0, 1]."""
        theta = self.sample_parameters(normal)
        means = np.zeros((len(users), len(theta)))
        for i in range(users.shape[1]):  # in this order for every row, so equal users have equal means to the bit
            means += users[:, i : i + 1] * theta[:, i]
        return clip_means(means)


def fit_action(users: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return centre (d,) and covariance (d, d) of one action's parameters."""
    d = users.shape[1]
    centre, precision = np.zeros(d), np.full(d, d / PRIOR_DEVIATION**2)
    centre[0], precision[0] = PRIOR_MEAN, 1.0 / PRIOR_DEVIATION**2
    if not len(users):
        return centre, np.diag(1.0 / precision)
    middle, mean = users.mean(axis=0), (values.sum() + 0.5) / (len(values) + 1.0)
    rows, outcomes = np.vstack([users, middle]), np.append(values, 0.5)
    square = rows.T @ rows
    pilot = np.linalg.solve(square + np.diag(precision) * mean * (1.0 - mean), rows.T @ outcomes)
    errors = outcomes - rows @ pilot
    variance = max(float(np.square(errors[:-1]).sum() + mean * (1.0 - mean)) / len(values), 1e-12)
    inverse = np.linalg.inv(square / variance + np.diag(precision))
    fit = inverse @ (rows.T @ outcomes / variance + precision * centre)
    leverage = np.einsum("ni,ij,nj->n", rows, inverse, rows) / variance
    errors = (outcomes - rows @ fit) / (1.0 - np.minimum(leverage, 0.9))
    between = (rows * np.square(errors / variance)[:, np.newaxis]).T @ rows + np.diag(precision)
    return fit, inverse @ between @ inverse


def compute_root(covariance: Floats) -> Floats:
    """Return F with FFᵀ the covariance."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def clip_means(means: Floats) -> Floats:
    """Return means (n, K) clipped to [0, 1] that keep each action's mean over users, clipped too.

    >>> clip_means(np.array([[-0.1], [0.3]]))
    array([[0. ],
           [0.2]])
    """
    if means.min() >= 0.0 and means.max() <= 1.0:
        return means
    target, shift = np.clip(means.mean(axis=0), 0.0, 1.0), np.zeros(means.shape[1])
    for _ in range(CLIP_STEPS):
        moved = means + shift
        inside = ((moved > 0.0) & (moved < 1.0)).mean(axis=0)
        shift += (target - np.clip(moved, 0.0, 1.0).mean(axis=0)) / np.maximum(inside, 0.05)
    return np.clip(means + shift, 0.0, 1.0)
