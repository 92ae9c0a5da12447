"""What a memory has seen of every action in a context: how often, and what it came to in all."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import APIECE, CELLS, PARTS, part_of, regressions_of
from stagewise.kernels.signals.apiece import piece_of
from stagewise.kernels.signals.cells import tally_of
from stagewise.kernels.signals.ridge import SQUARES, TAKEN


@kernel
def fill_totals(layout: Ints, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write of every signal and action (1 + m, K) how many outcomes were learned, and their sum; costs are signed."""
    for which in range(layout[PARTS]):
        part = part_of(layout, memory, which)
        if part.kind == APIECE:
            for action in range(regressions_of(part)):
                piece = piece_of(part, memory, action)
                pulls[part.first, action] = piece.tally[TAKEN]
                totals[part.first, action] = piece.tally[SQUARES + 1]
        if part.kind == CELLS:
            for action in range(part.size):
                tally = tally_of(part, memory, action, settings)
                pulls[part.first, action] = tally.pulls
                totals[part.first, action] = tally.pulls * tally.mean
