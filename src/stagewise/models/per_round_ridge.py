"""The declared cost bound of a per-round safe action: u₀ = min(c₀, upper bound), and contradictions of it.

Both bounds are valid, so u₀ is never above the declared bound, and below it where the data allow
(docs/theory/context.md). A contradiction is recorded permanently: in later rounds another safe action may have too
little data to show it again.
"""

import math
from collections.abc import Iterator
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import LIMITS, get_round_safe_action, get_safe_action
from stagewise.engine.model import REWARD
from stagewise.engine.workspace import (
    ALARM,
    CENTRE,
    CROSS,
    HALF,
    SAFE_COST,
    encode_contradiction,
    get_ceiling,
    is_same_action,
)
from stagewise.models.diagnostics import check_regression, compute_max_deviation
from stagewise.models.regression import (
    SAFE_OBSERVATIONS,
    SQUARES,
    Regression,
    compute_radius,
    fill_image,
    get_ridge_assumptions,
    learn_ridge,
)
from stagewise.models.ridge import RIDGE, RegressionDiagnostics

CONTRADICTION_SENTINEL = 1e300  # marks a contradicted declaration in a sum of outcomes; no noise explains it


@kernel
def set_interval(centre: Floats, half: Floats, candidate: int, low: float, high: float) -> None:
    """Write an interval from its ends; if they have crossed, the lower one is used."""
    high = max(low, high)
    centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * (high - low)


@kernel
def adjust_per_round(layout: Ints, settings: Floats, bounds: Floats, mixes: int, samples: int) -> int:
    """Clip the bounds at what is declared: at the safe action, and all costs at their ceilings; make them straight.

    Return the contradiction code if a lower bound at the safe action is above the declared cost, or 0. CROSS is then
    half · half₀: along a ray bounds are linear from end to end. The safe action's reward is not clipped where the
    reward is sampled.
    """
    safe, round_safe, contradiction = bounds.shape[2] - 1, get_round_safe_action(layout, settings), 0
    if samples != REWARD:
        centre, half = bounds[0, CENTRE], bounds[0, HALF]
        high = centre[safe] + half[safe]
        set_interval(centre, half, safe, min(max(centre[safe] - half[safe], round_safe.reward[0]), high), high)
    for j in range(layout[LIMITS]):
        centre, half, ceiling = bounds[1 + j, CENTRE], bounds[1 + j, HALF], get_ceiling(layout, settings, j)
        if contradiction == 0 and centre[safe] - half[safe] > round_safe.costs[j]:
            contradiction = encode_contradiction(SAFE_COST, j)
        for candidate in range(safe):
            if centre[candidate] + half[candidate] > ceiling:
                set_interval(centre, half, candidate, centre[candidate] - half[candidate], ceiling)
        if centre[safe] - half[safe] <= round_safe.costs[j]:  # else the declaration is false, and the data's ends stay
            set_interval(
                centre, half, safe, centre[safe] - half[safe], min(centre[safe] + half[safe], round_safe.costs[j])
            )
    for signal in range(bounds.shape[0]):
        half, cross = bounds[signal, HALF], bounds[signal, CROSS]
        for candidate in range(safe + 1):
            cross[candidate] = half[candidate] * half[safe]
    return contradiction


@kernel
def check_round_safe_action(block: Regression, settings: Floats) -> int:
    """Return the code of a cost whose outcomes at the safe actions exceed the declared bounds; 0: none."""
    tally, declared, k, alarm = block.tally, get_ridge_assumptions(block, settings), block.signals, settings[ALARM]
    for signal in range(k):
        above = tally[SQUARES + k + signal]
        if block.first + signal > 0 and above > compute_max_deviation(
            tally[SAFE_OBSERVATIONS], declared.noise[signal], alarm
        ):
            return encode_contradiction(SAFE_COST, block.first + signal - 1)
    return 0


@kernel
def record_round_safe_action(
    layout: Ints, block: Regression, at_safe: bool, settings: Floats, values: Floats, work: Floats
) -> None:
    """Add an outcome (k,) at the safe action to the sums, less the declared bound, and record a contradiction.

    `work` is (n,). The safe action of the round is NaN where it is unknown, as in a log: nothing is recorded then.
    """
    tally, k, n, round_safe = block.tally, block.signals, block.size, get_round_safe_action(layout, settings)
    image, form = work[:n], 0.0
    fill_image(block.learned, round_safe.features, image)
    for i in range(n):
        form += image[i] * image[i]
    width = math.sqrt(form)
    if at_safe:
        tally[SAFE_OBSERVATIONS] += 1.0
    for signal in range(k):
        if block.first + signal > 0:
            most, fit, mean = round_safe.costs[block.first + signal - 1], block.learned[n + signal], 0.0
            if at_safe:
                tally[SQUARES + k + signal] += values[signal] - most
            for i in range(n):
                mean += fit[i] * round_safe.features[i]
            if mean - compute_radius(block, settings, 0.0, signal) * width > most:
                tally[SQUARES + k + signal] = CONTRADICTION_SENTINEL


@kernel
def check_per_round_ridge(layout: Ints, block: Regression, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted noise or declared bound; 0: none."""
    found = check_regression(block, settings, memory, 0.0)
    return found if found != 0 else check_round_safe_action(block, settings)


@kernel
def learn_per_round_ridge(
    layout: Ints, block: Regression, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn an outcome, and hold it against what is declared of the round's safe action."""
    learn_ridge(block, action, cached_index, step, cached_only, observed, settings, memory, work)
    at_safe = is_same_action(action, get_safe_action(layout, settings).features)
    record_round_safe_action(layout, block, at_safe, settings, observed, work)


class PerRoundDiagnostics(RegressionDiagnostics):
    """Diagnostics of a regression whose safe action differs by round."""

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(CHECK_ROUND_SAFE_ACTION(block, settings))
        return iter([-code] if code else [])


CHECK_ROUND_SAFE_ACTION = as_python(check_round_safe_action)
PER_ROUND_RIDGE = RIDGE._replace(
    name="stagewise.models.per_round_ridge:PER_ROUND_RIDGE", check=check_per_round_ridge, learn=learn_per_round_ridge,
    adjust=adjust_per_round, diagnostics=PerRoundDiagnostics(), per_round=1,
)  # fmt: skip
