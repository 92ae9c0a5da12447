"""Linear signals: ridge regression of the reward and the costs on an action's features.

Posterior sampling of the reward instead of optimism: Safe-LTS (Moradipari et al. 2019).

Confidence sets of ridge regressions as functions of an action: linear estimates, and the norms of their widths.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, distinct, kernel
from stagewise.engine.layout import (
    CACHED,
    FEATURES,
    LIMITS,
    MODEL_BLOCKS,
    SAMPLING,
    copy_values,
    get_model_block,
    get_posterior_scale,
    get_reward_range,
    get_safe_action,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model
from stagewise.engine.random import POLICY, POSTERIOR, fill_normal
from stagewise.engine.workspace import (
    CENTRE,
    COST_SCALE,
    HALF,
    SAMPLED,
    clip_to_bounds,
    get_limit,
    get_threshold,
    is_same_action,
)
from stagewise.models.diagnostics import (
    LARGEST,
    Evidence,
    Marks,
    MeanChange,
    ModelDiagnostics,
    Sums,
    build_evidence,
    check_regression,
    compute_regression_sums,
    find_regression_changes,
    record_safe_outcome,
    split_at_marks,
)
from stagewise.models.model_block import ModelBlockSpec, RegressionModel, build_known_values, split_regressions
from stagewise.models.regression import (
    OBSERVATIONS,
    PAPER,
    RADII,
    Regression,
    build_regression,
    cache_ridge,
    compute_cached_ridge_bounds,
    compute_radius,
    compute_ridge_bounds,
    count_cached_rows,
    fill_coordinates,
    get_coordinate_frame,
    get_ridge_assumptions,
    get_ridge_statistics,
    learn_ridge,
    radius,
    start_ridge,
    tally_size,
)
from stagewise.problem.errors import ErrorCode, InvalidProblem

GET_ASSUMPTIONS, FRAME = as_python(get_ridge_assumptions), as_python(get_coordinate_frame)
GET_STATISTICS = as_python(get_ridge_statistics)


class RegressionDiagnostics(ModelDiagnostics):
    """Diagnostics of a ridge regression."""

    checks_safe_value = True

    def tests_noise(self, block: Regression) -> bool:
        return True

    def get_evidence(self, block: Regression, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return build_evidence(block, settings, signal)

    def get_sums(self, block: Regression, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return compute_regression_sums(block, settings, key) if block.size <= LARGEST else None

    def count(self, block: Regression, settings: Floats, memory: Floats) -> float | None:
        return float(GET_STATISTICS(block).observations) if block.size <= LARGEST else None

    def moved(
        self, block: Regression, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        for early, late, alarm in split_at_marks(marks, alarms):
            yield from find_regression_changes(block, settings, early, late, key, alarm)


@kernel
def sample_ridge(
    layout: Ints, block: Regression, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every candidate's mean, and of the safe action's; `known`: the candidates are cached.

    `work` is ((k + 2) n,).

        <z, θ̃> = <z, θ̂> + ν R <Tz, η>,    η ~ N(0, I)

    Without data T is diagonal, and the sum has the same bits whether candidates are cached or not.
    """
    n, k, declared, count = block.size, block.signals, get_ridge_assumptions(block, settings), bounds.shape[2]
    draws, sampled, coordinates = work[: k * n], work[k * n : (k + 1) * n], work[(k + 1) * n : (k + 2) * n]
    fill_normal(draws, seed, run, round_, POSTERIOR + int(block.first))
    rows, learned, no_data = block.rows, block.learned, block.tally[OBSERVATIONS] == 0.0
    safe, posterior_scale = get_safe_action(layout, settings).features, get_posterior_scale(settings)
    for signal in range(k):
        drawn, scale = bounds[block.first + signal, SAMPLED], posterior_scale * declared.noise[signal]
        if known:
            estimates = rows[n + signal]
            for candidate in range(count):
                drawn[candidate] = 0.0
            for i in range(n):
                row, draw = rows[i], draws[signal * n + i]
                for candidate in range(count):
                    drawn[candidate] += row[candidate] * draw
            for candidate in range(count):
                drawn[candidate] = estimates[candidate] + scale * drawn[candidate]
        else:
            for i in range(n):
                sampled[i] = 0.0
            for i in range(n):
                for j in range(i + 1):
                    sampled[j] += draws[signal * n + i] * learned[i, j]
            for candidate in range(count):
                action = features[candidate] if candidate < features.shape[0] else safe
                share, deviation, fit = fill_coordinates(block, settings, action, coordinates), 0.0, 0.0
                if candidate == features.shape[0] and block.anchored == 1:
                    share = 1.0
                    coordinates[:] = 0.0
                for i in range(n):
                    if no_data:
                        deviation += learned[i, i] * coordinates[i] * draws[signal * n + i]
                    else:
                        deviation += coordinates[i] * sampled[i]
                    fit += learned[n + signal, i] * coordinates[i]
                drawn[candidate] = share * declared.known[signal] + fit + scale * deviation
    clip_to_bounds(block, bounds)


THEORY, PLAIN, AUTHORS = 1, 2, 3  # inflation of the sample; 0: nothing is sampled


@kernel
def compute_inflation(layout: Ints, settings: Floats, bounds: Floats, size: int) -> float:
    """Return the scale of the draw, in radii.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (the code of the constraint paper): √n / min(1, τ)
    """
    slack, least, safe = math.inf, 1.0, bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        half = settings[COST_SCALE] * bounds[1 + j, HALF, safe]
        slack = min(slack, get_limit(layout, settings, j) - bounds[1 + j, CENTRE, safe] - half)
        least = min(least, get_threshold(layout, settings, j))
    if layout[SAMPLING] == THEORY:
        return 1.0 + get_reward_range(settings) / slack if slack > 0.0 else 1.0
    return 1.0 if layout[SAMPLING] == PLAIN else math.sqrt(size) / least


@kernel
@distinct
def sample_reward(
    layout: Ints, block: Regression, features: Floats, safe: Floats, known: bool, settings: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Move the rewards from θ̂ to a sampled θ̃ and treat them as known; `known`: the candidates are cached.

    θ̃ = θ̂ + scale Tᵀη with η ~ N(0, I) has covariance scale² V⁻¹: <z, θ̃ − θ̂> = scale <Tz, η>.
    """
    n, rows = block.size, block.rows
    draws, shift, coordinates = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    fill_normal(draws, seed, run, round_, POLICY)
    scale = compute_radius(block, settings, 0.0, 0) * compute_inflation(layout, settings, bounds, n)
    for i in range(n):
        draws[i] *= scale
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    if known:
        for i in range(n):
            draw = draws[i]
            for candidate in range(centre.size):
                centre[candidate] += rows[i, candidate] * draw
    else:
        shift[:] = 0.0
        for i in range(n):
            for j in range(i + 1):
                shift[j] += draws[i] * block.learned[i, j]
        no_data = block.tally[OBSERVATIONS] == 0.0
        shift_rewards(block, features, safe, settings, block.learned, no_data, draws, shift, coordinates, centre)
    for candidate in range(half.size):
        half[candidate] = 0.0


@kernel
def shift_rewards(
    block: Regression, features: Floats, safe: Floats, settings: Floats, learned: Floats, no_data: bool,
    draws: Floats, shift: Floats, coordinates: Floats, centre: Floats,
) -> None:  # fmt: skip
    """Move the estimated rewards by <z, shift>.

    Without data T is diagonal, and <Tz, η> is summed as for cached rays, with the same bits: the first offer is not
    cached in Python, but cached in a compiled loop.
    """
    for candidate in range(features.shape[0] + 1 - block.anchored):
        action = features[candidate] if candidate < features.shape[0] else safe
        fill_coordinates(block, settings, action, coordinates)
        for i in range(block.size):
            along = learned[i, i] * coordinates[i] * draws[i] if no_data else coordinates[i] * shift[i]
            centre[candidate] += along


@kernel
def view_ridge(layout: Ints, memory: Floats, index: int) -> Regression:
    block, cached = get_model_block(layout, memory, index), int(memory[CACHED])
    return build_regression(block, block.size, cached + 1 if cached > 0 else 0, memory)


def ridge_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a regression's memory."""
    block = read_block_fields(layout, index)
    k, n, width = block.signals, block.size, pad_to_vector(candidates + 1 if candidates > 0 else 0)
    return int(pad_to_vector(tally_size(k) + (n + k) * n + count_cached_rows(n, k, block.per_candidate) * width))


@kernel
def fill_ridge_bounds(
    layout: Ints, block: Regression, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of any candidates, and of the safe action; `known`: the candidates are cached."""
    if known:
        compute_cached_ridge_bounds(block, settings, memory, bounds, work)
    else:
        compute_ridge_bounds(
            block, features, get_safe_action(layout, settings).features, settings, memory, bounds, work
        )


@kernel
def check_ridge(layout: Ints, block: Regression, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted noise, or value at the safe action; 0: none."""
    return check_regression(block, settings, memory, 0.0)


@kernel
def learn_ridge_block(
    layout: Ints, block: Regression, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn an outcome; at the safe action it counts against the known values too."""
    learn_ridge(block, action, cached_index, step, cached_only, observed, settings, memory, work)
    if is_same_action(action, get_safe_action(layout, settings).features):
        record_safe_outcome(block, settings, memory, observed)


@kernel
def change_ridge(
    layout: Ints, old: Regression, new: Regression, features: Floats, settings: Floats, memory: Floats, changed: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Copy what was learned, and cache other candidates."""
    n, k = old.size, old.signals
    rows = count_cached_rows(n, k, old.per_candidate)
    source, target = old.memory + rows * old.width, new.memory + rows * new.width
    copy_values(memory, source, changed, target, (n + k) * n + tally_size(k))
    if features.shape[0] > 0:
        cache_ridge(new, features, get_safe_action(layout, settings).features, settings, changed, work)


@kernel
def sample_ridge_reward(
    layout: Ints, block: Regression, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Sample the reward, if this block has it."""
    if block.first == 0:
        safe = get_safe_action(layout, settings).features
        sample_reward(layout, block, features, safe, known, settings, bounds, seed, run, round_, work)


RIDGE = Model(
    "stagewise.models.ridge:RIDGE", view_ridge, ridge_size, start_ridge, fill_ridge_bounds, check_ridge,
    learn_ridge_block, change_ridge, None, sample_ridge, sample_ridge_reward,
    diagnostics=RegressionDiagnostics(), caches=1,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel(RegressionModel):
    """The assumptions about linear signals."""

    action_bound: float  # L
    radius: str
    model: Model = RIDGE
    straight: int = 0  # 1: per-candidate bounds are straight between the safe action and a candidate
    per_candidate: int = 0  # kind of per-candidate sets (`engine.layout`); 0: none
    per_candidate_ends: Floats | None = None  # (3, 1 + m) their settings (`models.per_candidate`)
    separate_models: bool = False  # whether every signal has a regression of its own

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in split_regressions(len(self.names), *known, self.separate_models):
            yield self.build_block(first, last, anchored)

    def build_block(self, first: int, last: int, known: bool) -> ModelBlockSpec:
        """Return the regression of signals `first` to `last`."""
        size, kind = float(np.linalg.norm(self.safe)), RADII.index(self.radius)
        reflected = known and size > 0.0
        n = self.safe.size - int(reflected)
        if kind == PAPER and n < 2:
            signal = "cost" if first else "reward"
            template = (
                "radius='paper' needs two or more unknown directions, and the {signal} has {n} (see "
                "`stagewise help errata`); use radius='joint' or 'logdet'"
            )
            raise InvalidProblem(ErrorCode.UNSUPPORTED, template, signal=signal, n=n)
        reflector, unit = self.reflection(size) if reflected else (np.empty(0), 0.0)
        values = build_known_values(self.reward, self.costs, len(self.names))
        declared = (self.noise, self.learned_bounds(size), self.confidence, values if known else np.zeros(values.size))
        numbers = [np.array([self.ridge, self.action_bound, unit]), reflector, *(row[first:last] for row in declared)]
        if self.per_candidate_ends is not None:
            numbers += [row[first:last] for row in self.per_candidate_ends]
        return ModelBlockSpec(
            self.model,
            (first, last - first, n, kind, int(known), int(reflected), self.straight, self.per_candidate),
            np.concatenate(numbers),
        )

    def radii(self, size: int, log_det: float, count: float) -> Floats:
        """Return β of every signal after `count` observations of n learned coordinates."""
        kind, energy = RADII.index(self.radius), count * self.action_bound**2
        bounds = self.learned_bounds(float(np.linalg.norm(self.safe)))
        rows = zip(self.noise, bounds, self.confidence, strict=True)
        return np.array([radius(kind, r, s, self.ridge, c, log_det, size, energy) for r, s, c in rows])

    def reflection(self, size: float) -> tuple[Floats, float]:
        """Return w of the reflection with H e₀ = −sign e_d, and the factor from Hx's last entry to <x, e₀>."""
        reflector = self.safe / size
        sign = math.copysign(1.0, reflector[-1])  # the sign that avoids cancellation
        reflector[-1] += sign
        reflector /= np.linalg.norm(reflector)
        return reflector, -sign / size

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the learned directions; the paper's radius uses all of it."""
        remaining = self.compute_remaining_bounds(size, "needs a parameter of norm {}")
        return self.norm_bound.copy() if self.radius == "paper" else remaining


VIEW_RIDGE = as_python(view_ridge)


class RegressionConfidenceSet(NamedTuple):
    """The confidence set of one regression of k signals: the mean of x is within <x, e> ± β ‖W x‖."""

    estimates: Floats  # (k, d) e of every signal
    norm: Floats  # (n, d) W
    radii: Floats  # (k,) β


class LinearConfidenceSet(NamedTuple):
    """The confidence sets of the reward and of the costs; one regression may serve both."""

    reward: Floats  # (d,)
    costs: Floats  # (m, d)
    reward_norm: Floats  # (n, d)
    cost_norm: Floats  # (n, d) the same array where one regression serves both
    reward_radius: float
    cost_radii: Floats  # (m,)


def build_confidence_set(layout: Ints, settings: Floats, memory: Floats) -> LinearConfidenceSet:
    found = [
        build_regression_set(VIEW_RIDGE(layout, memory, index), settings, int(layout[FEATURES]))
        for index in range(layout[MODEL_BLOCKS])
    ]
    first, last = found[0], found[-1]
    if first is last:
        return LinearConfidenceSet(
            first.estimates[0], first.estimates[1:], first.norm, first.norm, float(first.radii[0]), first.radii[1:]
        )
    return LinearConfidenceSet(
        first.estimates[0], last.estimates, first.norm, last.norm, float(first.radii[0]), last.radii
    )


def build_regression_set(block: Regression, settings: Floats, d: int) -> RegressionConfidenceSet:
    """Return the confidence set of one block: with z = Z x, e = Zᵀθ̂ + the known share, and W = T Z."""
    declared, frame, n = GET_ASSUMPTIONS(block, settings), FRAME(block, settings), block.size
    statistics = GET_STATISTICS(block)
    root, fits = np.tril(statistics.root), statistics.fits
    energy = statistics.observations * frame.action_bound**2
    rows = zip(declared.noise, declared.bound, declared.confidence, strict=True)
    radii = [radius(block.radius, r, s, frame.ridge, c, statistics.log_det, n, energy) for r, s, c in rows]
    if not block.reflected:
        return RegressionConfidenceSet(fits.copy(), root, np.array(radii))
    reflection = np.eye(d) - 2.0 * np.outer(frame.reflector, frame.reflector)
    coordinates, share = reflection[:n], reflection[n] * frame.unit
    return RegressionConfidenceSet(
        fits @ coordinates + np.outer(declared.known, share), root @ coordinates, np.array(radii)
    )
