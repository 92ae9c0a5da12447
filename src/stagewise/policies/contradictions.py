"""Causes of decisions where the data contradict a declared value."""

import math
from collections.abc import Sequence
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import PER_ROUND_SAFE, SAFE_COST_DECLARED, SAFE_INDEX, get_round_safe_action
from stagewise.engine.limits import (
    CONTRADICTED,
    CONTRADICTION_KINDS,
    MEAN_COST_BOUND,
    MODEL,
    NOISE,
    SAFE_COST,
    get_ceiling,
    has_switch,
)
from stagewise.engine.model import Model
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.diagnostics import Evidence
from stagewise.models.model_block import iter_model_blocks
from stagewise.problem.thresholds import Thresholds
from stagewise.records.reason import Contradiction, FallbackReason, ReasonDetails

HAS, ROUND_SAFE_ACTION = as_python(has_switch), as_python(get_round_safe_action)


def decode_subject(code: int) -> tuple[int, int]:
    """Return the kind of a kernel's contradiction code and its constraint."""
    return (-code - CONTRADICTED) % CONTRADICTION_KINDS, (-code - CONTRADICTED) // CONTRADICTION_KINDS


def build_cause(
    code: int,
    thresholds: Thresholds,
    models: Sequence[Model],
    layout: Ints,
    settings: Floats,
    memory: Floats,
    bounds: Floats,
) -> ReasonDetails:
    """Return the cause of a kernel's code in the thresholds' units; `bounds` are those of the round."""
    constraint, evidence = decode_subject(code)[1], Evidence()  # a model can have no evidence
    for model, block in iter_model_blocks(models, layout, memory):
        signal = 1 + constraint - block.first
        if 0 <= signal < block.signals:
            evidence = model.diagnostics.get_evidence(block, layout, settings, memory, signal)
    if HAS(layout, PER_ROUND_SAFE) and decode_subject(code)[0] == SAFE_COST:
        most = float(ROUND_SAFE_ACTION(layout, settings).costs[constraint])
        return build_contradiction(
            Contradiction.SAFE_COST_OF_A_ROUND, thresholds, constraint,
            declared=thresholds.to_user_unit(constraint, most), outcomes=evidence.outcomes, count=evidence.safe_count,
        )  # fmt: skip
    if HAS(layout, SAFE_COST_DECLARED) and decode_subject(code)[0] == SAFE_COST:
        safe_bounds = bounds[1 + constraint, :, int(layout[SAFE_INDEX])]
        low = float(safe_bounds[CENTRE] - safe_bounds[HALF])
        return build_contradiction(
            Contradiction.SAFE_COST_OF_A_USER, thresholds, constraint,
            declared=thresholds.declared_safe[constraint], found_at=thresholds.to_user_unit(constraint, low),
            count=evidence.safe_count, mean=thresholds.to_user_unit(constraint, evidence.safe_mean),
        )  # fmt: skip
    return build_cause_from_evidence(code, thresholds, get_ceiling(layout, settings, constraint), evidence)


def build_cause_from_evidence(code: int, thresholds: Thresholds, ceiling: float, evidence: Evidence) -> ReasonDetails:
    """Return the cause of a kernel's code in the thresholds' units; the ceiling is signed."""
    (what, j), setting = decode_subject(code), thresholds.bound_name
    if what == MEAN_COST_BOUND:
        bound = thresholds.to_user_unit(j, ceiling)
        return build_contradiction(Contradiction.MEAN_COST_BOUND, thresholds, j, bound=bound, setting=setting)
    if what == NOISE and setting == "mean_cost_bound":
        return build_noise_cause(thresholds, j, evidence)
    if what == SAFE_COST and not math.isnan(thresholds.declared_safe[j]):
        return build_safe_cost_cause(thresholds, j, thresholds.declared_safe[j], evidence)
    if what in (MODEL, NOISE):
        return build_contradiction(Contradiction.NO_LINEAR_MEAN, thresholds, j, setting=setting)
    return build_contradiction(Contradiction.SAFE_ACTION_UNSAFE, thresholds, j, threshold=thresholds.values[j])


def build_noise_cause(thresholds: Thresholds, j: int, evidence: Evidence) -> ReasonDetails:
    """Return the cause: the residuals are larger than the declared noise allows."""
    unit = abs(thresholds.to_user_unit(j, 1.0) - thresholds.to_user_unit(j, 0.0))
    numbers = {"declared": unit * evidence.noise, "outcomes": evidence.outcomes, "needed": unit * evidence.least}
    return build_contradiction(Contradiction.NOISE, thresholds, j, **numbers)


def build_safe_cost_cause(thresholds: Thresholds, j: int, declared: float, evidence: Evidence) -> ReasonDetails:
    """Return the cause: outcomes of the safe action contradict its declared cost."""
    numbers = {"count": evidence.safe_count, "mean": thresholds.to_user_unit(j, evidence.safe_mean)}
    return build_contradiction(Contradiction.SAFE_COST, thresholds, j, declared=declared, **numbers)


def build_contradiction(found: Contradiction, thresholds: Thresholds, constraint: int, **numbers: Any) -> ReasonDetails:
    """Return the cause for a contradicted value of a cost."""
    name, at_most = thresholds.names[constraint], bool(thresholds.signs[constraint] > 0.0)
    return ReasonDetails.of(FallbackReason.ASSUMPTION_CONTRADICTED, found=found, limit=name, at_most=at_most, **numbers)
