"""What rare costs add to a policy (docs/theory/rare.md): their model, what they refuse, and a log as one batch."""

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import Part, blocks_of, events_size, table_capacity
from stagewise.kernels.signals.events import LOSS, block_of, copy_events, declared_of_events, table_of
from stagewise.kernels.signals.refit import fold, note_rows, refit
from stagewise.models.events import EventCosts, loss_of_log
from stagewise.models.linear import LinearModel
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.problem.thresholds import Thresholds

BLOCK_OF, TABLE_OF, DECLARED = named(block_of), named(table_of), named(declared_of_events)
BLOCKS_OF, TABLE_CAPACITY, EVENTS_SIZE = named(blocks_of), named(table_capacity), named(events_size)


def check_blocks(blocks: int, mixtures: bool, rare: bool) -> None:
    """Refuse what rare costs cannot be played with."""
    if rare and not mixtures:
        raise InvalidProblem("rare_costs is True without mixtures; its sets are for actions that are listed and mixed")
    if blocks != 1 and not rare:
        raise InvalidProblem(f"blocks is {blocks} without rare_costs; only the sets of rare costs come in blocks")


def check_one_block(features: Floats, blocks: int, what: str, error: type[StagewiseError]) -> None:
    """Refuse actions (K, d) that have features in more than one block."""
    several = features.reshape(len(features), blocks, -1).any(axis=2).sum(axis=1) > 1
    if several.any():
        raise error(
            f"{what} {int(several.argmax())} has features in more than one of the {blocks} blocks; "
            "each block has sets of its own, so leave blocks out where an action needs several"
        )


def rare_costs(model: LinearModel, thresholds: Thresholds, blocks: int, ceilings: Floats, share: float) -> EventCosts:
    """Return the same with rare costs, which have this share of δ for the sets of all blocks, and no other sets."""
    d, m = model.safe.size, thresholds.values.size
    if (thresholds.signs < 0.0).any():
        raise InvalidProblem("a threshold is from below; with rare_costs it is from above: count what does not happen")
    if d % blocks:
        raise InvalidProblem(f"blocks is {blocks}, and there are {d} features; all blocks have equal length")
    check_one_block(model.safe[np.newaxis], blocks, "safe action", InvalidProblem)
    confidence = np.array([model.confidence[0], *np.full(m, -np.log(share / (m * blocks)))])
    guesses = np.clip(thresholds.values, 1e-6, 0.5)
    told = {**vars(model), "confidence": confidence}
    return EventCosts(**told, blocks=blocks, guesses=guesses, ceilings=ceilings)


def learn_events_log(
    part: Part, settings: Floats, before: Floats, memory: Floats, actions: Floats, values: Floats
) -> None:
    """Write a part as it is `before`, with the rows (n, d) and values (n, 1 + m) of a log in it.

    All of them go into one table, which is folded if it is too long. The rows may stand in any order, so that there are
    no forecasts: a mixture stands for them.
    """
    seen = np.ascontiguousarray(values[:, part.first])
    used, hits = int(TABLE_OF(part, before).used[0]), int((seen > 0.0).sum())
    capacity = used + hits + 1
    wide = part._replace(radius=capacity, memory=0)  # its `table_capacity`
    batch = np.zeros(EVENTS_SIZE(part.size, BLOCKS_OF(part), capacity))
    copy_events(part, before, wide, batch)
    note_rows(wide, actions, seen, batch)
    declared = DECLARED(part, settings)
    for which in range(BLOCKS_OF(part)):
        own = actions[:, which * part.size : (which + 1) * part.size]
        chosen = own.any(axis=1)
        if chosen.any():
            block = BLOCK_OF(wide, batch, which)
            block.sums[LOSS] += loss_of_log(own[chosen], seen[chosen], declared.bound, declared.guess)
    if used + hits < TABLE_CAPACITY(part):
        for which in range(BLOCKS_OF(part)):
            refit(wide, settings, batch, which)
    else:
        fold(wide, settings, batch)
    copy_events(wide, batch, part, memory)
