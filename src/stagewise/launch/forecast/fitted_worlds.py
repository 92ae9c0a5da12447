"""Worlds fitted to a log: each run draws its own from the posterior of every signal."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.engine.random import INSTANCE, fill_normal, fill_uniform, to_signed_seed
from stagewise.launch.forecast.forecast_log import ForecastLog, LogMovement
from stagewise.launch.statistics import draw_common_prior
from stagewise.worlds.moving_world import MovingWorld
from stagewise.worlds.user_table_world import UserTableWorld
from stagewise.worlds.world import check_run

MAX_USERS = 20_000  # users of a world, drawn from the log
MAX_LOG_USERS = 100_000  # users to draw from; of a longer log every k-th row
MEANS, USERS, MOVES = 0, 1, 2  # rounds of the instance stream: for means, for users, and for how means move
CHANCE_LEVEL = 0.001  # p-value below which equal values are not a coincidence
PRIOR_MEAN, PRIOR_DEVIATION = 0.5, 0.5  # of the constant; slopes have a deviation smaller by √d
CLIP_STEPS = 30  # to restore the mean of clipped means
JEFFREYS = 0.5
MIN_RATE = 1e-9
MAX_VARIANCE = 1.0 / 8.0  # of Beta(½, ½)


def find_constant_features(actions: Ints, users: Floats, count: int) -> Flags:
    """Return which numbers (K, d) are constant for each action, beyond coincidence: they describe it, not the user.

    A discount that is 0 wherever nothing is sent does not show the outcome of "nothing" at a discount of 0.2. If it
    were fitted, its slope would be the prior's, and an action that was never clicked would be forecast to be. So such
    slopes are 0. If a share q of all rows has this number, the others of n rows have it too with probability q^(n − 1).
    """
    constant = np.zeros((count, users.shape[1]), dtype=bool)
    for a in range(count):
        rows = users[actions == a]
        if len(rows) > 1:
            share = (users == rows[0]).mean(axis=0)
            constant[a] = (rows == rows[0]).all(axis=0) & (share ** (len(rows) - 1.0) < CHANCE_LEVEL)
    return constant


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """The posterior of a linear signal, scaled to [0, 1]: a normal distribution of the parameters of every action.

        θ_a ~ N(P⁻¹ b, P⁻¹ M P⁻¹),    P = Σ xxᵀ/σ² + D,    b = Σ xy/σ² + D θ₀,    M = Σ xxᵀ (e/(1 − h))²/σ⁴ + D

    M uses the errors e as they are (MacKinnon and White's HC3), since the variance of binary outcomes depends on their
    mean. D and θ₀ are the prior: any mean between 0 and 1, with matching slopes. One more row, of the mean user with an
    outcome of ½, stands for Jeffreys' prior: without events a rate is not known to be 0. Actions with rows are shrunk
    towards each other as far as they are similar (`draw_common_prior`).
    """

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
    """Return means (n, K) clipped to [0, 1] that keep each action's mean over users, clipped too."""
    if means.min() >= 0.0 and means.max() <= 1.0:
        return means
    target, shift = np.clip(means.mean(axis=0), 0.0, 1.0), np.zeros(means.shape[1])
    for _ in range(CLIP_STEPS):
        moved = means + shift
        inside = ((moved > 0.0) & (moved < 1.0)).mean(axis=0)
        shift += (target - np.clip(moved, 0.0, 1.0).mean(axis=0)) / np.maximum(inside, 0.05)
    return np.clip(means + shift, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class RatePosterior:
    """The posterior of the rates of one signal, scaled to [0, 1]: Beta by action, and around it by segment.

        p_a ~ Beta(½ + κ_a m_a, ½ + κ_a (1 − m_a)),    κ_a = n m̃ (1 − m̃)/s²

    For binary outcomes κ is the number of rows, and this is Jeffreys' posterior, whose intervals keep their level even
    for rare outcomes; other outcomes count as many rows as their variance s² implies. With segments g

        p_ag ~ Beta(τ p_a + κ_ag m_ag, τ (1 − p_a) + κ_ag (1 − m_ag)),    τ = ½/min(p_a, 1 − p_a)

    so a segment with few rows is like the others, with half an event more. An action without rows has Beta(½, ½);
    actions with rows share a common prior (`draw_common_prior`).
    """

    ones: Floats  # (K,) κ m of all rows of an action
    rows: Floats  # (K,) κ
    ones_by: Floats  # (G, K) the same by segment; (0, K): there are none
    rows_by: Floats  # (G, K)

    @classmethod
    def of(cls, actions: Ints, groups: Ints | None, values: Floats, count: int) -> "RatePosterior":
        """Fit actions (n,), segments (n,) and outcomes (n,)."""
        row_weights = compute_row_weights(actions, values, count)
        ones, rows = sum_cells(actions, values, row_weights, count)
        segments = 0 if groups is None else int(groups.max(initial=-1)) + 1
        cells = actions if groups is None else groups * count + actions
        by = (
            sum_cells(cells, values, row_weights[actions], segments * count) if segments else (np.empty(0), np.empty(0))
        )
        return cls(ones, rows, by[0].reshape(segments, count), by[1].reshape(segments, count))

    @property
    def sample_size(self) -> int:
        """The number of uniform variates of a draw."""
        return int(self.rows.size + self.rows_by.size) + 2

    def sample(self, uniform: Floats) -> Floats:
        """Return a draw of the rates: (1, K), or (G, K) by segment."""
        (ones, others), count = self.sample_prior(uniform[-2:]), self.rows.size
        each = betaincinv(ones + self.ones, others + self.rows - self.ones, uniform[:count])
        if not self.rows_by.size:
            return np.asarray(each)[np.newaxis]
        centre = np.clip(each, MIN_RATE, 1.0 - MIN_RATE)
        uniforms = uniform[count:-2].reshape(self.rows_by.shape)
        strength = JEFFREYS / np.minimum(centre, 1.0 - centre)
        low, high = strength * centre + self.ones_by, strength * (1.0 - centre) + self.rows_by - self.ones_by
        return np.asarray(betaincinv(low, high, uniforms))

    def sample_prior(self, uniform: Floats) -> tuple[Floats, Floats]:
        """Return the prior counts (K,): Jeffreys' halves, or a common prior for actions with rows."""
        ones, others = np.full(self.rows.size, JEFFREYS), np.full(self.rows.size, JEFFREYS)
        known = self.rows > 0.0
        rows, rates = self.rows[known] + 1.0, (self.ones[known] + JEFFREYS) / (self.rows[known] + 1.0)
        variances = (rates * (1.0 - rates) / rows)[:, np.newaxis]
        common = draw_common_prior(
            rates[:, np.newaxis], variances, np.full(1, MAX_VARIANCE), uniform[:1], ndtri(uniform[1:])
        )
        if common is not None:
            centre = float(np.clip(common.centre[0], 0.5 * rates.min(), 1.0 - 0.5 * (1.0 - rates.max())))
            strength = max(centre * (1.0 - centre) / float(common.variance[0]) - 1.0, 0.0)
            ones[known], others[known] = max(strength * centre, JEFFREYS), max(strength * (1.0 - centre), JEFFREYS)
        return ones, others


def compute_row_weights(actions: Ints, values: Floats, count: int) -> Floats:
    """Return how many binary rows a row of each action (K,) counts as: more than 1 if outcomes vary less."""
    row_weights = np.ones(count)
    for action in range(count):
        outcomes = values[actions == action]
        if outcomes.size and not np.isin(outcomes, (0.0, 1.0)).all():
            mean = (outcomes.sum() + JEFFREYS) / (outcomes.size + 1.0)
            variance = (
                np.square(outcomes - outcomes.mean()).sum() + mean * (1.0 - mean)
            ) / outcomes.size  # with one row of the prior
            row_weights[action] = max(mean * (1.0 - mean) / variance, 1.0)
    return row_weights


def sum_cells(cells: Ints, values: Floats, row_weights: Floats, count: int) -> tuple[Floats, Floats]:
    """Return κ m and κ of every cell; `worth` is by cell or by row."""
    each = row_weights[cells] if row_weights.size == count else row_weights
    ones = np.bincount(cells, weights=each * values, minlength=count)
    return np.asarray(ones, dtype=np.float64), np.asarray(np.bincount(cells, each, count), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FittedWorlds:
    """A world for every run: users resampled from the log, and means drawn from their posterior.

    A run is as uncertain as the log: users, means and outcomes are random.
    """

    users: Floats  # (n, 1 + features + divisions) of the log
    groups: dict[int, Any]  # segment codes (n,) by division
    signals: list[RatePosterior | LinearPosterior]
    by: list[int | None]  # the division of each signal's rates
    noise: Floats  # (1 + m,) as for `UserTableWorld`
    divisions: int
    safe: int
    seed: int
    movement: LogMovement | None = None  # None: means stay

    @classmethod
    def of(cls, log_rows: ForecastLog, seed: int, movement: LogMovement | None = None) -> "FittedWorlds":
        problem = log_rows.log.problem
        divisions, count = len(problem.divisions), len(problem.action_names)
        names = [division.name for division in problem.divisions]
        numbers = log_rows.users[:, : 1 + len(problem.feature_names)]
        groups = {
            index: np.unique(log_rows.users[:, 1 + len(problem.feature_names) + index], return_inverse=True)[1]
            for index in range(divisions)
        }
        models: list[RatePosterior | LinearPosterior] = []
        by: list[int | None] = []
        for index, choice in enumerate(problem.choices.values()):
            division = None if choice.by is None else names.index(choice.by)
            outcomes = log_rows.values[:, index]
            group = None if division is None else groups[division]
            by.append(division)
            if choice.model != "rates":  # a logistic cost is fitted by a line too
                models.append(LinearPosterior.of(log_rows.actions, numbers, outcomes, count))
            else:
                models.append(RatePosterior.of(log_rows.actions, group, outcomes, count))
        safe_index = list(problem.action_names).index(problem.safe_name)
        unscaled = cls(log_rows.users, groups, models, by, np.ones(len(models)), divisions, safe_index, seed)
        noise = [unscaled.estimate_noise(index, log_rows) for index in range(len(models))]
        sampled = slice(None, None, -(-len(log_rows.users) // MAX_LOG_USERS))
        groups = {index: group[sampled] for index, group in groups.items()}
        return cls(log_rows.users[sampled], groups, models, by, np.array(noise), divisions, safe_index, seed, movement)

    def estimate_noise(self, index: int, log_rows: ForecastLog) -> float:
        """Return the noise of single outcomes of a signal relative to binary ones, at most 1."""
        values = log_rows.values[:, index]
        if np.isin(values, (0.0, 1.0)).all():
            return 1.0
        model = self.signals[index]
        middle = np.zeros(model.sample_size) if isinstance(model, LinearPosterior) else np.full(model.sample_size, 0.5)
        means = self.means(index, middle, np.arange(len(self.users)))[np.arange(len(values)), log_rows.actions]
        room = float((means * (1.0 - means)).sum())
        return min(float(np.sqrt(np.square(values - means).sum() / room)), 1.0) if room > 0.0 else 1.0

    def means(self, index: int, numbers: Floats, rows: Any) -> Floats:
        """Return a draw of the means (n, K) of one signal, for some users."""
        model, division = self.signals[index], self.by[index]
        if isinstance(model, LinearPosterior):
            return model.sample(numbers, self.users[rows, : model.centres.shape[1]])
        table = model.sample(numbers)
        segments = np.zeros(len(rows), dtype=np.int64) if division is None else self.groups[division][rows]
        return np.asarray(table[segments])

    def __call__(self, run: int) -> UserTableWorld | MovingWorld:
        key, number = to_signed_seed(self.seed), check_run(run)
        uniforms = np.empty(min(len(self.users), MAX_USERS))
        fill_uniform(uniforms, key, number, USERS, INSTANCE)
        rows = np.minimum((uniforms * len(self.users)).astype(np.int64), len(self.users) - 1)
        drawn = np.empty(sum(model.sample_size for model in self.signals))
        kinds = [fill_normal if isinstance(model, LinearPosterior) else fill_uniform for model in self.signals]
        tables, first = [], 0
        for index, (model, kind) in enumerate(zip(self.signals, kinds, strict=True)):
            kind(drawn, key, number, MEANS, INSTANCE)
            tables.append(self.means(index, drawn[first : first + model.sample_size], rows))
            first += model.sample_size
        world = UserTableWorld(
            users=self.users[rows, 1:],
            reward=tables[0],
            cost=np.stack(tables[1:]),
            noise=self.noise,
            safe=self.safe,
            segment_columns=self.divisions,
        )
        if self.movement is None:
            return world
        moved = np.empty(self.movement.sample_size)
        fill_normal(moved, key, number, MOVES, INSTANCE)
        return self.movement.move(world, moved)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the data that the worlds are drawn from."""
        parts = [self.users, self.noise, *(array for model in self.signals for array in vars(model).values())]
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def description(self) -> dict[str, Any]:
        """Return the family as JSON values."""
        known = {"family": "fitted", "seed": self.seed, "rows": len(self.users), "digest": self.digest}
        return known if self.movement is None else {**known, "movement": self.movement.digest}
