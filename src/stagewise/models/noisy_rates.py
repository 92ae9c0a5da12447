"""Numbers with a declared noise, by action and segment: as rates, with ends by R instead of by the range [0, 1].

Outcomes in [0, 1] are R-sub-Gaussian around their means, R < ½: a delivery takes up to 90 minutes and varies by 5 about
its mean. With S the sum of n outcomes, whatever their means, at all n at once with probability 1 − δ' each

    |p̄ − S/n| ≤ R √((1 + 1/n)(log(1 + n) + 2 log 1/δ')/n)        (docs/theory/caps.md, Sets of their own)

Means that drift have the ends of `models.epochs` with this radius (docs/theory/drift.md, Theorem 1'). Where means are
constant, squared deviations from them are compared with R².

    memory:   as in `models.segment_rates`, after the number of segments: outcomes | squared deviations of all cells;
              where means drift as in `models.drifting_rates`
    settings: as in `models.drifting_rates`, of which only R is read where means are constant
"""

import math
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.workspace import ALARM, encode_contradiction
from stagewise.engine.workspace import NOISE as NOISE_KIND
from stagewise.models.arms import ANYTIME, unit_radius
from stagewise.models.diagnostics import (
    LEAST_RATIO,
    Evidence,
    UpperForecast,
    compute_least_noise,
    compute_max_squares,
)
from stagewise.models.drifting_rates import MOVING_RATES, learn_moving, read_drifting
from stagewise.models.epochs import NOISE
from stagewise.models.intervals import draw_rate
from stagewise.models.segment_rates import (
    BELOW,
    CELL_LEVELS,
    LOW,
    MEAN,
    MET,
    NUMBERS,
    PULLS,
    SEGMENT_RATES,
    RatesBlock,
    SegmentRatesDiagnostics,
    build_rates,
    check_rates,
    read_constant,
)

OUTCOMES, SQUARES, HEADER_SIZE = 1, 2, 3  # before the slots


@kernel
def get_noise(block: RatesBlock, settings: Floats) -> float:
    return settings[block.settings + NUMBERS + 2 * block.size + NOISE]


@kernel
def learn_noisy(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Write the ends of a cell, whose mean has been updated; `low` and `high` are log 1/δ' of either end."""
    pulls, mean, noise = memory[cell + PULLS], memory[cell + MEAN], get_noise(block, settings)
    memory[cell + LOW] = max(mean - noise * unit_radius(ANYTIME, pulls, low), 0.0)
    memory[cell + BELOW] = 1.0 - min(mean + noise * unit_radius(ANYTIME, pulls, high), 1.0)
    memory[block.memory + OUTCOMES] += 1.0
    if pulls > 1.0:  # its deviations from the means before and after it
        memory[block.memory + SQUARES] += (value - mean) * (value - mean) * pulls / (pulls - 1.0)


@kernel
def draw_noisy(block: RatesBlock, ones: float, pulls: float, prior: float, deviate: float, settings: Floats) -> float:
    """Return a posterior draw of a mean: N(mean, R²/n), or that of a rate where there is no outcome."""
    if not pulls > 0.0:
        return draw_rate(ones, pulls, prior, deviate)
    return min(max(ones / pulls + deviate * get_noise(block, settings) / math.sqrt(pulls), 0.0), 1.0)


@kernel
def check_noisy(layout: Ints, block: RatesBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted noise or cost of the safe action, or 0."""
    outcomes, squares = memory[block.memory + OUTCOMES], memory[block.memory + SQUARES]
    variance = get_noise(block, settings) * get_noise(block, settings)
    is_suspicious = block.first > 0 and squares > LEAST_RATIO * outcomes * variance
    if is_suspicious and squares > compute_max_squares(outcomes, settings[ALARM]) * variance:
        return encode_contradiction(NOISE_KIND, block.first - 1)
    return check_rates(layout, block, settings, memory, bounds)


GET_NOISE, RADIUS = as_python(get_noise), as_python(unit_radius)


class NoisyRatesDiagnostics(SegmentRatesDiagnostics):
    """Diagnostics of numbers with a declared noise, whose means are constant."""

    def tests_noise(self, block: Any) -> bool:
        return True

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        outcomes, squares = memory[block.memory + OUTCOMES], memory[block.memory + SQUARES]
        least = compute_least_noise(float(squares), float(outcomes), settings[ALARM])
        safe = super().get_evidence(block, layout, settings, memory, signal)
        return safe._replace(outcomes=float(outcomes), noise=float(GET_NOISE(block, settings)), least=least)

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        rate: Any = super().forecast(block, features, settings, memory, arm, signal)
        noise, most = float(GET_NOISE(block, settings)), float(settings[block.settings]) + 1.0
        position = MET(block, memory) + 1.0 if rate.cell < 0 else float(memory[rate.cell + 1])
        confidence = float(CELL_LEVELS(block, settings, arm, position).high)

        def upper(count: float) -> float:
            return min(rate.mean + noise * float(RADIUS(ANYTIME, count, confidence)), most) if count > 0.0 else most

        return rate._replace(upper=upper)


NOISY_RATES = SEGMENT_RATES._replace(
    name="stagewise.models.noisy_rates:NOISY_RATES", diagnostics=NoisyRatesDiagnostics(), check=check_noisy,
    **build_rates(read_constant, learn_noisy, draw_noisy)._asdict(),
)  # fmt: skip
NOISY_MOVING_RATES = MOVING_RATES._replace(
    name="stagewise.models.noisy_rates:NOISY_MOVING_RATES",
    **build_rates(read_drifting, learn_moving, draw_noisy)._asdict(),
)  # fmt: skip
