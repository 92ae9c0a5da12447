"""Rare costs (docs/theory/rare.md): their model, their checks, and learning a log as one batch."""

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import ModelBlock
from stagewise.models.per_action_events import get_action_events, get_low
from stagewise.models.rare_events import (
    LOSS,
    RareEventsModel,
    compute_log_loss,
    copy_rare_events,
    count_feature_blocks,
    fold_events,
    get_event_table,
    get_feature_block,
    get_rare_events_assumptions,
    get_table_capacity,
    rare_events_size,
    record_rows,
    refit,
)
from stagewise.models.ridge import LinearModel
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.thresholds import Thresholds

ACTION_EVENTS, GET_LOW = as_python(get_action_events), as_python(get_low)
GET_BLOCK, GET_TABLE, GET_ASSUMPTIONS = (
    as_python(get_feature_block),
    as_python(get_event_table),
    as_python(get_rare_events_assumptions),
)
COUNT_BLOCKS, TABLE_CAPACITY, EVENTS_SIZE = (
    as_python(count_feature_blocks),
    as_python(get_table_capacity),
    as_python(rare_events_size),
)


def check_blocks(blocks: int, mixtures: bool, rare: bool) -> None:
    """Raise InvalidProblem for settings that conflict with rare costs."""
    if rare and not mixtures:
        remedy = "set mixtures=True, since bounds of rare costs need listed actions that can be mixed"
        raise InvalidProblem.conflict("rare_costs", True, "mixtures is False", remedy)
    if blocks != 1 and not rare:
        raise InvalidProblem.unused("blocks", blocks, "only rare_costs uses blocks")


def check_one_block(features: Floats, blocks: int, what: str, error: type[StagewiseError]) -> None:
    """Raise an error for actions (K, d) with features in more than one block."""
    several = features.reshape(len(features), blocks, -1).any(axis=2).sum(axis=1) > 1
    if several.any():
        raise error(
            ErrorCode.UNSUPPORTED_ACTIONS,
            f"{what} {several.argmax()} has features in more than one of the {blocks} blocks; each block has sets of "
            "its own, so leave blocks out where an action needs several",
        )


def add_rare_costs(
    model: LinearModel, thresholds: Thresholds, blocks: int, ceilings: Floats, share: float
) -> RareEventsModel:
    """Return the model with rare costs, whose confidence sets have this share of δ over all blocks."""
    d, m = model.safe.size, thresholds.values.size
    if (thresholds.signs < 0.0).any():
        remedy = "count the opposite event, since it needs upper limits"
        raise InvalidProblem.conflict("rare_costs", True, "a threshold is a lower limit", remedy)
    if d % blocks:
        remedy = "choose a divisor, since all blocks have equal length"
        raise InvalidProblem.conflict("blocks", blocks, f"there are {d} features", remedy)
    check_one_block(model.safe[np.newaxis], blocks, "safe action", InvalidProblem)
    confidence = np.array([model.confidence[0], *np.full(m, -np.log(share / (m * blocks)))])
    guesses = np.clip(thresholds.values, 1e-6, 0.5)
    settings = {**vars(model), "confidence": confidence}
    return RareEventsModel(**settings, blocks=blocks, guesses=guesses, ceilings=ceilings)


def learn_events_by_action(block: ModelBlock, settings: Floats, memory: Floats, rows: Floats, values: Floats) -> None:
    """Learn the rows (n, D) of a log, which begin with the action and its context, and the outcomes (n,)."""
    is_known, features = ~np.isnan(values), rows[:, 1 : 1 + block.size]
    for action in range(block.detail):
        mine = is_known & (rows[:, 0] == action)
        if mine.any():
            events, low = ACTION_EVENTS(block, action), GET_LOW(block, settings)
            learn_events_log(events, settings, memory, memory, np.ascontiguousarray(features[mine]), values[mine] - low)


def learn_events_log(
    block: ModelBlock, settings: Floats, before: Floats, memory: Floats, actions: Floats, outcomes: Floats
) -> None:
    """Update a model block of `before` with the rows (n, d) and outcomes (n,) of a log, and write it to `memory`.

    All rows go into one table, which is folded if it is too long. The rows can be in any order, so there are no
    sequential forecasts; a mixture replaces them.
    """
    used, hits = int(GET_TABLE(block, before).used[0]), int((outcomes > 0.0).sum())
    capacity = used + hits + 1
    batch_block = block._replace(radius=capacity, memory=0)  # so that `get_table_capacity` is the capacity
    batch = np.zeros(EVENTS_SIZE(block.size, COUNT_BLOCKS(block), capacity))
    copy_rare_events(block, before, batch_block, batch)
    record_rows(batch_block, actions, outcomes, batch)
    declared = GET_ASSUMPTIONS(block, settings)
    for which in range(COUNT_BLOCKS(block)):
        rows = actions[:, which * block.size : (which + 1) * block.size]
        chosen = rows.any(axis=1)
        if chosen.any():
            feature_block = GET_BLOCK(batch_block, batch, which)
            feature_block.sums[LOSS] += compute_log_loss(rows[chosen], outcomes[chosen], declared.bound, declared.guess)
    if used + hits < TABLE_CAPACITY(block):
        for which in range(COUNT_BLOCKS(block)):
            refit(batch_block, settings, batch, which)
    else:
        fold_events(batch_block, settings, batch)
    copy_rare_events(batch_block, batch, block, memory)
