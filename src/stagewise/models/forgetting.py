"""A reward that is forgotten: each outcome counts 2^(−age/half-life), as rates or as regressions action by action.

    θ̂ = V⁻¹ Σ γ_i y_i x_i,    V = λI + Σ γ_i x_i x_iᵀ,    γ_i = 2^(−(t − t_i)/h)        (docs/theory/drift.md, Reward)

Sums are those at the time T of an action's newest outcome. Decisions at t > T read them with half-widths divided by
√2^(−(t − T)/h), which is no narrower than V at t would make them. Means that move make no theorem of these bounds: no
limit depends on them. Sums are multiplied by at most 1 and added to, and V is factorised anew after every outcome, so
that rounding errors are forgotten too.

    rates:    memory as in `models.segment_rates`, cells with: T | Σγ | weighted mean
              settings as in `models.segment_rates`, then the column of the time | h in seconds
    linear:   memory as in `models.per_action_ridge`, whose tallies forget nothing; then for each action: T |
              Σ γ y x (n,) | Σ γ x xᵀ (n, n)
              settings as in `models.per_action_ridge`, then the column of the time | h in seconds
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import ModelBlock, copy_values, pad_to_vector, read_block_fields
from stagewise.models.cholesky import compute_log_determinant, dot, factorise, invert
from stagewise.models.diagnostics import Sums, UpperForecast
from stagewise.models.intervals import compute_average_interval
from stagewise.models.per_action_ridge import (
    NUMBERS as RIDGE_NUMBERS,
)
from stagewise.models.per_action_ridge import (
    PER_ACTION_RIDGE,
    PerActionRidgeDiagnostics,
    apply_safe_declaration,
    fill_action_bounds,
    get_action_regression,
    regression_size,
)
from stagewise.models.regression import LOG_DET, OBSERVATIONS, SQUARES, compute_radius, fill_image
from stagewise.models.segment_rates import (
    BELOW,
    LOW,
    NUMBERS,
    PULLS,
    SEGMENT_RATES,
    CellReading,
    RatesBlock,
    SegmentRatesDiagnostics,
    build_rates,
)

NEWEST, WEIGHT, RECENT, CELL_SIZE = 4, 5, 6, 7  # in a cell, after those of rates
TIME_COLUMN, HALF_LIFE, SETTINGS_SIZE = 0, 1, 2  # in the last settings
LN2 = math.log(2.0)
FAINTEST = 1e-12  # no sum is read with a smaller weight


@kernel
def compute_weight(settings: Floats, at: int, age: float) -> float:
    """Return 2^(−age/h); the settings of forgetting begin at `at`."""
    return math.exp(-LN2 * max(age, 0.0) / settings[at + HALF_LIFE])


# Rates.


@kernel
def read_forgetting(block: RatesBlock, row: Floats, settings: Floats, memory: Floats, cell: int) -> CellReading:
    """Return what is known of a mean at the time of a row."""
    at, pulls, mean = block.settings + NUMBERS + 2 * block.size, memory[cell + WEIGHT], memory[cell + RECENT]
    if not pulls > 0.0:
        return CellReading(0.0, 1.0, 0.0, 0.0)
    weight = max(compute_weight(settings, at, row[int(settings[at])] - memory[cell + NEWEST]), FAINTEST)
    stretch = 1.0 / math.sqrt(weight)
    least = max(mean - (mean - memory[cell + LOW]) * stretch, 0.0)
    most = min(mean + (1.0 - memory[cell + BELOW] - mean) * stretch, 1.0)
    return CellReading(least, most, pulls * weight, mean)


@kernel
def learn_forgetting(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Add an outcome to a cell; `low` and `high` are log 1/δ' of either end."""
    at, first = block.settings + NUMBERS + 2 * block.size, memory[cell + PULLS] == 1.0
    time = row[int(settings[at])]
    newest = time if first else memory[cell + NEWEST]
    memory[cell + NEWEST] = max(time, newest)
    weight = compute_weight(settings, at, newest - time)
    total = memory[cell + WEIGHT] * compute_weight(settings, at, time - newest) + weight
    memory[cell + WEIGHT] = total
    memory[cell + RECENT] += (value - memory[cell + RECENT]) * (weight / total)
    ends = compute_average_interval(total, memory[cell + RECENT], low, high)
    memory[cell + LOW], memory[cell + BELOW] = ends.low, 1.0 - ends.high


class ForgettingRatesDiagnostics(SegmentRatesDiagnostics):
    """Diagnostics of rates that are forgotten: that they move is no news."""

    read_cell = staticmethod(as_python(read_forgetting))

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return None

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        return None


FORGETTING_RATES = SEGMENT_RATES._replace(
    name="stagewise.models.forgetting:FORGETTING_RATES", diagnostics=ForgettingRatesDiagnostics(),
    **build_rates(read_forgetting, learn_forgetting)._asdict(),
)  # fmt: skip


# Regressions.


class RecentSums(NamedTuple):
    """The sums of one action, as views of the memory."""

    newest: Floats  # (1,) T
    products: Floats  # (n,) Σ γ y x
    gram: Floats  # (n, n) Σ γ x xᵀ


@kernel
def get_recent_sums(block: ModelBlock, memory: Floats, action: int) -> RecentSums:
    n = block.size
    at = block.memory + block.detail * regression_size(n) + action * (n * n + n + 1)
    return RecentSums(
        memory[at : at + 1], memory[at + 1 : at + 1 + n], memory[at + 1 + n : at + 1 + n + n * n].reshape(n, n)
    )


def forgetting_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    n = block.size
    return int(pad_to_vector(block.detail * (regression_size(n) + n * n + n + 1)))


@kernel
def learn_forgetting_ridge(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (1,) of an action in its context; `work` is (n,)."""
    n, at, number = block.size, block.settings + RIDGE_NUMBERS * block.detail + 3, int(action[0])
    regression, sums = get_action_regression(block, memory, number), get_recent_sums(block, memory, number)
    x, image, learned, tally = action[1 : 1 + n], work[:n], regression.learned, regression.tally
    time, ridge = action[int(settings[at])], settings[block.settings + RIDGE_NUMBERS * number]
    newest = sums.newest[0] if tally[OBSERVATIONS] > 0.0 else time
    fill_image(learned, x, image)
    error = observed[0] - dot(learned[n], x)
    tally[SQUARES] += error * error / (1.0 + dot(image, image))
    tally[OBSERVATIONS] += 1.0
    tally[SQUARES + 1] += observed[0]
    kept, weight = compute_weight(settings, at, time - newest), compute_weight(settings, at, newest - time)
    sums.newest[0] = max(time, newest)
    for i in range(n):
        sums.products[i] = sums.products[i] * kept + weight * observed[0] * x[i]
        for j in range(i + 1):
            sums.gram[i, j] = sums.gram[i, j] * kept + weight * x[i] * x[j]
    tally[LOG_DET] = invert_root(sums.gram, ridge, learned) - n * math.log(ridge)
    for i in range(n):
        image[i] = 0.0
        for j in range(i + 1):
            image[i] += learned[i, j] * sums.products[j]
    for j in range(n):
        fit = 0.0
        for i in range(j, n):
            fit += learned[i, j] * image[i]
        learned[n, j] = fit


@kernel
def invert_root(gram: Floats, ridge: float, learned: Floats) -> float:
    """Write T with V⁻¹ = TᵀT for V = λI + G, given the lower triangle of G; return log det V."""
    n = gram.shape[0]
    for i in range(n):
        for j in range(i + 1):
            learned[i, j] = gram[i, j]
        learned[i, i] += ridge
    root = learned[:n]
    factorise(root, root)
    log_det = compute_log_determinant(root)
    invert(root)
    return log_det


@kernel
def fill_forgetting_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context at its time, and of the safe one; `work` is (n,)."""
    end = block.settings + RIDGE_NUMBERS * block.detail
    time = features[0, int(settings[end + 3])]
    for action in range(block.detail):
        age = time - get_recent_sums(block, memory, action).newest[0]
        regression, stretch = get_action_regression(block, memory, action), 1.0
        if regression.tally[OBSERVATIONS] > 0.0:
            stretch = 1.0 / math.sqrt(max(compute_weight(settings, end + 3, age), FAINTEST))
        radius = compute_radius(regression, settings, 0.0, 0)
        fill_action_bounds(block, action, regression, radius, stretch, features, settings, bounds, work)
    apply_safe_declaration(layout, block.first, settings[end + 2], bounds)


@kernel
def check_nothing(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return 0: no limit depends on the reward."""
    return 0


@kernel
def widen_forgetting_ridge(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy every regression and its sums; the other memory may have more actions."""
    n = old.size
    copy_values(memory, old.memory, changed, new.memory, old.detail * regression_size(n))
    source, target = old.memory + old.detail * regression_size(n), new.memory + new.detail * regression_size(n)
    copy_values(memory, source, changed, target, old.detail * (n * n + n + 1))


class ForgettingRidgeDiagnostics(PerActionRidgeDiagnostics):
    """Diagnostics of regressions that are forgotten: that parameters move is no news."""

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return None

    def count(self, block: Any, settings: Floats, memory: Floats) -> float | None:
        return None

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        return iter(())


FORGETTING_RIDGE = PER_ACTION_RIDGE._replace(
    name="stagewise.models.forgetting:FORGETTING_RIDGE", size=forgetting_size, bounds=fill_forgetting_bounds,
    check=check_nothing, learn=learn_forgetting_ridge, widen=widen_forgetting_ridge, learn_with_ends=None,
    diagnostics=ForgettingRidgeDiagnostics(),
)  # fmt: skip
