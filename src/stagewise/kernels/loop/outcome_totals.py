"""Number and sum of the outcomes that a memory has learned of every action in a context."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import MODEL_BLOCKS, PER_ACTION_RIDGE, SEGMENT_RATES, count_regressions, get_model_block
from stagewise.kernels.models.per_action_ridge import get_action_regression
from stagewise.kernels.models.ridge import OBSERVATIONS, SQUARES
from stagewise.kernels.models.segment_rates import compute_action_tally


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
