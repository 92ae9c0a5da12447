"""What a log says of a signal that is linear in the context: for every action a normal distribution of its parameters.

    θ_a ~ N(P⁻¹ b, P⁻¹ M P⁻¹),    P = Σ xxᵀ/σ² + D,    b = Σ xy/σ² + D θ₀,    M = Σ xxᵀ (e/(1 − h))²/σ⁴ + D

The middle one, M, takes the errors e as they are (MacKinnon and White's HC3): outcomes that are 0 or 1 vary with their
mean. D and θ₀ are the prior: any mean between 0 and 1, slopes to match; without rows nothing else is left. One row
more, of the mean user with an outcome of ½, stands for Jeffreys' prior: where nothing of a rare outcome was seen yet,
its rate is not known to be 0.
Actions with rows are then drawn together as far as they are alike (`alike`). A number that is the same in all rows of
an action has no slope there (`tied`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr  # type: ignore[import-untyped]

from stagewise.kernels.compile import Flags, Floats, Ints
from stagewise.launch.forecast.alike import drawn_together
from stagewise.launch.forecast.tied import tied

CENTRE, SPREAD = 0.5, 0.5  # of the constant, where nothing is known; slopes have √d less
TIMES = 30  # of moving a clipped mean back to its place


@dataclass(frozen=True, eq=False)
class Slopes:
    """The parameters of one signal, scaled to [0, 1], of every action."""

    centres: Floats  # (K, d)
    spreads: Floats  # (K, d, d) covariances
    known: Flags  # (K,) which actions have rows
    fixed: Flags  # (K, d) which slopes are 0, as the number never varied

    @classmethod
    def of(cls, actions: Ints, users: Floats, values: Floats, count: int) -> "Slopes":
        """Return what rows say: what was done (n,), for whom (n, d), and what came of it (n,)."""
        fixed, known = tied(actions, users, count), np.bincount(actions, minlength=count) > 0
        found = [fitted(users[actions == a] * ~fixed[a], values[actions == a]) for a in range(count)]
        centres, spreads = np.stack([centre for centre, _ in found]), np.stack([spread for _, spread in found])
        centres[fixed], spreads[fixed], spreads.swapaxes(1, 2)[fixed] = 0.0, 0.0, 0.0
        return cls(centres, spreads, known, fixed)

    @property
    def draws(self) -> int:
        """How many normal numbers a draw takes."""
        return int(self.centres.size + 2 * self.centres.shape[1])

    def parameters(self, normal: Floats) -> Floats:
        """Return a draw of the parameters (K, d); actions with rows are drawn together as far as they are alike."""
        count, d = self.centres.shape
        steps, chances, deviates = normal[: count * d].reshape(count, d), ndtr(normal[-2 * d : -d]), normal[-d:]
        known, own = self.known, np.diagonal(self.spreads, axis1=1, axis2=2)
        widest = np.append(SPREAD**2, np.full(d - 1, SPREAD**2 / d))
        fits = np.where(self.fixed, np.nan, self.centres)
        common = drawn_together(fits[known], own[known], widest, chances, deviates)
        theta = np.empty((count, d))
        for a in range(count):
            centre, spread = self.centres[a], self.spreads[a]
            if common is not None and known[a]:
                weight = np.diag(common.spread) @ np.linalg.inv(np.diag(common.spread) + spread)
                centre, spread = common.centre + weight @ (centre - common.centre), weight @ spread
            theta[a] = centre + root_of(spread) @ steps[a]
        return theta

    def drawn(self, normal: Floats, users: Floats) -> Floats:
        """Return a draw of the means (n, K) of some users (n, d), in [0, 1]."""
        theta = self.parameters(normal)
        means = np.zeros((len(users), len(theta)))
        for i in range(users.shape[1]):  # in this order for every row: equal users have equal means, to the bit
            means += users[:, i : i + 1] * theta[:, i]
        return levelled(means)


def fitted(users: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return centre (d,) and covariance (d, d) of one action's parameters."""
    d = users.shape[1]
    centre, precision = np.zeros(d), np.full(d, d / SPREAD**2)
    centre[0], precision[0] = CENTRE, 1.0 / SPREAD**2
    if not len(users):
        return centre, np.diag(1.0 / precision)
    middle, mean = users.mean(axis=0), (values.sum() + 0.5) / (len(values) + 1.0)
    rows, seen = np.vstack([users, middle]), np.append(values, 0.5)
    square = rows.T @ rows
    plain = np.linalg.solve(square + np.diag(precision) * mean * (1.0 - mean), rows.T @ seen)
    errors = seen - rows @ plain
    variance = max(float(np.square(errors[:-1]).sum() + mean * (1.0 - mean)) / len(values), 1e-12)
    inverse = np.linalg.inv(square / variance + np.diag(precision))
    fit = inverse @ (rows.T @ seen / variance + precision * centre)
    lever = np.einsum("ni,ij,nj->n", rows, inverse, rows) / variance
    errors = (seen - rows @ fit) / (1.0 - np.minimum(lever, 0.9))
    between = (rows * np.square(errors / variance)[:, np.newaxis]).T @ rows + np.diag(precision)
    return fit, inverse @ between @ inverse


def root_of(spread: Floats) -> Floats:
    """Return F with FFᵀ the covariance."""
    values, vectors = np.linalg.eigh(0.5 * (spread + spread.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def levelled(means: Floats) -> Floats:
    """Return means (n, K) in [0, 1], each action's mean over users as it was, or at the end that it was beyond.

    >>> levelled(np.array([[-0.1], [0.3]]))
    array([[0. ],
           [0.2]])
    """
    if means.min() >= 0.0 and means.max() <= 1.0:
        return means
    target, shift = np.clip(means.mean(axis=0), 0.0, 1.0), np.zeros(means.shape[1])
    for _ in range(TIMES):
        moved = means + shift
        inside = ((moved > 0.0) & (moved < 1.0)).mean(axis=0)
        shift += (target - np.clip(moved, 0.0, 1.0).mean(axis=0)) / np.maximum(inside, 0.05)
    return np.clip(means + shift, 0.0, 1.0)
