"""Rare costs (docs/theory/rare.md): their model and their checks."""

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.models.rare_events import RareEventsModel
from stagewise.models.ridge import LinearModel
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.thresholds import Thresholds


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
        template = (
            "{what} {several} has features in more than one of the {blocks} blocks; each block has sets of "
            "its own, so leave blocks out where an action needs several"
        )
        raise error(ErrorCode.UNSUPPORTED_ACTIONS, template, what=what, several=several.argmax(), blocks=blocks)


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
