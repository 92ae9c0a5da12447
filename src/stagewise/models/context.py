"""Number and sum of the outcomes that a memory has learned of every action in a context.

Diagnostics of models of actions in a context, by action and by segment.

Models of actions in a context: linear per action, or rates by action and segment.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    MODEL_BLOCKS,
    PER_ACTION_RIDGE,
    SAFE_INDEX,
    SEGMENT_RATES,
    ModelBlock,
    count_regressions,
    get_model_block,
    get_segment_column,
)
from stagewise.models.arms import SMALLEST_RATE
from stagewise.models.diagnostics import Evidence, Marks, MeanChange, ModelDiagnostics, Sums, register, split_at_marks
from stagewise.models.model_block import ModelBlockSpec
from stagewise.models.per_action_ridge import fill_per_action_estimates, get_action_regression
from stagewise.models.rate_changes import RATE_MARKS, find_shifts
from stagewise.models.regression import JOINT, OBSERVATIONS, SQUARES, get_ridge_statistics
from stagewise.models.regression_tests import (
    LARGEST,
    build_evidence,
    check_regression,
    compute_regression_sums,
    find_regression_changes,
)
from stagewise.models.segment_rates import (
    compute_action_tally,
    count_segments,
    count_slots,
    fill_pulls,
    fill_rates,
    fill_segments,
    fill_tallies,
    get_lowest_value,
)


@kernel
def fill_totals(layout: Ints, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write for every signal and action (1 + m, K) the number of outcomes and their sum; costs are signed."""
    for index in range(layout[MODEL_BLOCKS]):
        block = get_model_block(layout, memory, index)
        if block.kind == PER_ACTION_RIDGE:
            for action in range(count_regressions(block)):
                regression = get_action_regression(block, memory, action)
                pulls[block.first, action] = regression.tally[OBSERVATIONS]
                totals[block.first, action] = regression.tally[SQUARES + 1]
        if block.kind == SEGMENT_RATES:
            for action in range(block.size):
                tally = compute_action_tally(block, memory, action, settings)
                pulls[block.first, action] = tally.pulls
                totals[block.first, action] = tally.pulls * tally.mean


PIECE, FITS, SUMMED, CHECK_REGRESSION = (
    as_python(get_action_regression),
    as_python(fill_per_action_estimates),
    as_python(get_ridge_statistics),
    as_python(check_regression),
)
SLOTS, TALLIES, TALLY, LEAST = (
    as_python(count_slots),
    as_python(fill_tallies),
    as_python(compute_action_tally),
    as_python(get_lowest_value),
)
RATES, PULLS, SEGMENTS, MET = (
    as_python(fill_rates),
    as_python(fill_pulls),
    as_python(fill_segments),
    as_python(count_segments),
)
REGRESSIONS, COLUMN = as_python(count_regressions), as_python(get_segment_column)


class PerActionRidgeDiagnostics(ModelDiagnostics):
    """Diagnostics of a model with a regression for every action."""

    has_safe_cost_per_user = True

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        regression = PIECE(block, memory, int(layout[SAFE_INDEX]))
        observed = build_evidence(regression, settings, 0)
        mean = float(SUMMED(regression).safe_residuals[0]) / max(observed.outcomes, 1.0)
        return observed._replace(safe_count=observed.outcomes, safe_mean=mean)

    def find_contradictions(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        for action in range(REGRESSIONS(block) if block.first > 0 else 0):
            code = int(CHECK_REGRESSION(PIECE(block, memory, action), settings, memory, 0.0))
            if code:
                yield -code

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        if block.size > LARGEST:
            return None
        result: Sums = {}
        for action in range(REGRESSIONS(block)):
            result |= compute_regression_sums(PIECE(block, memory, action), settings, f"{key}.{action}")
        return result

    def count(self, block: ModelBlock, settings: Floats, memory: Floats) -> float | None:
        counts = (float(SUMMED(PIECE(block, memory, action)).observations) for action in range(REGRESSIONS(block)))
        return None if block.size > LARGEST else sum(counts)

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        regressions = [PIECE(block, memory, action) for action in range(REGRESSIONS(block))]
        for early, late, alarm in split_at_marks(marks, alarms):
            for action, regression in enumerate(regressions):
                shared = alarm + math.log(len(regressions))
                for one in find_regression_changes(regression, settings, early, late, f"{key}.{action}", shared):
                    yield one._replace(action=action)

    def fill_estimates(
        self, block: ModelBlock, features: Floats, settings: Floats, memory: Floats, fits: Floats
    ) -> None:
        FITS(block, features, settings, memory, fits)

    def count_learned(self, block: ModelBlock, features: Floats, memory: Floats, index: int) -> float | None:
        return float(SUMMED(PIECE(block, memory, index)).observations)


class SegmentRatesDiagnostics(ModelDiagnostics):
    """Diagnostics of rates by action and segment."""

    has_safe_cost_per_user = True
    kept_marks, per_doubling = RATE_MARKS

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        tally = TALLY(block, memory, int(layout[SAFE_INDEX]), settings)
        return Evidence(float(tally.pulls), 0.0, 0.0, float(tally.pulls), float(tally.mean))

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        pulls, totals = np.zeros((2, SLOTS(block, memory) * block.size))
        TALLIES(block, memory, pulls, totals)
        last = int(np.max(np.flatnonzero(pulls), initial=-1)) + 1  # cells are in the order of their segments
        result = {f"pulls {key}": pulls[:last], f"totals {key}": totals[:last]}
        return result | {f"outcomes {key}": np.array(pulls.sum())}

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the cell whose rate changed, or the cells of an action, or all cells, whose rates changed together."""
        pulls, totals = ([sums[f"{name} {key}"] for sums in marks] for name in ("pulls", "totals"))
        for found in find_shifts(pulls, totals, block.size, COLUMN(block) >= 0, alarms):
            low, known_segments, cell = float(LEAST(block, settings)), self.segments(block, memory), found.cells[0]
            is_single, actions = len(found.cells) == 1, {cell % block.size for cell in found.cells}
            means, action = (low + found.before, low + found.after), cell % block.size if len(actions) == 1 else -1
            segment = int(known_segments[0][cell // block.size]) if is_single and known_segments is not None else None
            yield MeanChange(0, found.early, found.late, means, action, segment, len(found.cells))

    def fill_estimates(
        self, block: ModelBlock, features: Floats, settings: Floats, memory: Floats, fits: Floats
    ) -> None:
        RATES(block, features, settings, memory, fits)

    def count_learned(self, block: ModelBlock, features: Floats, memory: Floats, index: int) -> float | None:
        pulls = np.zeros(block.size)
        PULLS(block, features, memory, pulls)
        return float(pulls[index])

    def segments(self, block: ModelBlock, memory: Floats) -> tuple[Floats, Floats] | None:
        if COLUMN(block) < 0:
            return None
        count = MET(block, memory)
        numbers, observed = np.zeros(count), np.zeros((count, block.size, 3))
        SEGMENTS(block, memory, numbers, observed)
        return numbers, observed


register(PER_ACTION_RIDGE, PerActionRidgeDiagnostics())


register(SEGMENT_RATES, SegmentRatesDiagnostics())


SignalModel = Literal["linear", "rates"]
NOISE = 0.5  # of numbers in a range of length 1
RESERVED = 0.1  # of δ, for actions that come later


class Signal(NamedTuple):
    """The assumptions about one signal, whose outcomes lie in [low, low + 1]."""

    signal: int  # 0: the reward
    low: float
    lower: float  # log 1/δ of the lower ends of all its actions together, and of all its segments
    upper: float  # the same of the upper ends
    declared: float  # bound of the safe action: largest cost, least reward; ±∞: none
    reference_rate: float  # reference rate, above `low`: for a cost, its limit

    def linear(self, size: int, shares: Floats, ridge: float, bound: float) -> ModelBlockSpec:
        """Return regressions on n features, one for each action; `shares` are the actions' shares of δ."""
        both = -math.log(math.exp(-self.lower) + math.exp(-self.upper))  # an ellipsoid has both ends
        rows = [[ridge, 1.0, 0.0, NOISE, bound, both - math.log(share), 0.0] for share in shares]
        numbers = np.concatenate([*rows, [self.low, self.low + 1.0, self.declared]])
        return ModelBlockSpec((PER_ACTION_RIDGE, self.signal, 1, size, JOINT, 0, 0, shares.size, 0), numbers)

    def rates(self, column: int, shares: Floats) -> ModelBlockSpec:
        """Return rates, by the segment in a column of the rows; −1: by action alone."""
        clipped_rate = min(max(self.reference_rate, SMALLEST_RATE), 0.5)
        numbers = np.concatenate([[self.low, self.declared, clipped_rate, self.lower, self.upper], -np.log(shares)])
        return ModelBlockSpec((SEGMENT_RATES, self.signal, 1, shares.size, 0, 0, 0, column, 0), numbers)


def compute_action_shares(actions: int, initial_actions: int) -> Floats:
    """Return each action's share of δ: initial actions share alike, later ones share what was reserved.

    >>> compute_action_shares(3, 2).round(4)
    array([0.45, 0.45, 0.05])
    """
    later = np.arange(1.0, actions - initial_actions + 1.0)
    return np.concatenate(
        [np.full(initial_actions, (1.0 - RESERVED) / initial_actions), RESERVED / (later * (later + 1.0))]
    )
