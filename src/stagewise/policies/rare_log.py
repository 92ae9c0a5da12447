"""A log of rare costs, absorbed as one batch (docs/theory/rare.md)."""

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import Part, events_size
from stagewise.kernels.signals.events import LOSS, block_of, copy_events, declared_of, table_of
from stagewise.kernels.signals.refit import fold, note_rows, refit
from stagewise.models.events import loss_of_log

BLOCK_OF, TABLE_OF, DECLARED, EVENTS_SIZE = named(block_of), named(table_of), named(declared_of), named(events_size)


def absorb_events(
    part: Part, settings: Floats, before: Floats, memory: Floats, actions: Floats, values: Floats
) -> None:
    """Write a part as it is `before`, with the rows (n, d) and values (n, 1 + m) of a log in it.

    All of them go into one table, which is folded if it is too long. The rows may stand in any order, so that there are
    no forecasts: a mixture stands for them.
    """
    seen = np.ascontiguousarray(values[:, part.first])
    used, hits = int(TABLE_OF(part, before).used[0]), int((seen > 0.0).sum())
    room = used + hits + 1
    wide = part._replace(radius=room, memory=0)
    batch = np.zeros(EVENTS_SIZE(part.size, part.similarity, room))
    copy_events(part, before, wide, batch)
    note_rows(wide, actions, seen, batch)
    declared = DECLARED(part, settings)
    for which in range(part.similarity):
        own = actions[:, which * part.size : (which + 1) * part.size]
        chosen = own.any(axis=1)
        if chosen.any():
            block = BLOCK_OF(wide, batch, which)
            block.sums[LOSS] += loss_of_log(own[chosen], seen[chosen], declared.bound, declared.guess)
    if used + hits < part.radius:
        for which in range(part.similarity):
            refit(wide, settings, batch, which)
    else:
        fold(wide, settings, batch)
    copy_events(wide, batch, part, memory)
