"""What was declared and is contradicted by the data, with the numbers: the cause of decisions while it stays so."""

import math
from typing import Any

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import DECLARED, HOME, ROVING, roving_action
from stagewise.kernels.promise import BASELINE, CEILING, DISPUTED, KINDS, MODEL, NOISE, ceiling_of, has
from stagewise.models.answers import Evidence, answers_of
from stagewise.models.part import parts_in
from stagewise.problem.thresholds import Thresholds
from stagewise.records.reason import Cause, Contradiction, Reason

HAS, ROVING_ACTION = named(has), named(roving_action)


def subject(code: int) -> tuple[int, int]:
    """Return what a kernel's code disputes, and of which constraint."""
    return (-code - DISPUTED) % KINDS, (-code - DISPUTED) // KINDS


def cause_of(
    code: int, thresholds: Thresholds, layout: Ints, settings: Floats, memory: Floats, bounds: Floats
) -> Cause:
    """Return what a kernel's code stands for, in the units of these thresholds; `bounds` are those of the round."""
    constraint, seen = subject(code)[1], Evidence()  # a model may dispute nothing by itself
    for part in parts_in(layout, memory):
        signal = 1 + constraint - part.first
        if 0 <= signal < part.signals:
            seen = answers_of(part).evidence(part, layout, settings, memory, signal)
    if HAS(layout, ROVING) and subject(code)[0] == BASELINE:
        most = float(ROVING_ACTION(layout, settings).costs[constraint])
        return contradicted(
            Contradiction.SAFE_COST_OF_A_ROUND, thresholds, constraint,
            declared=thresholds.in_unit(constraint, most), outcomes=seen.outcomes, count=seen.safe_count,
        )  # fmt: skip
    if HAS(layout, DECLARED) and subject(code)[0] == BASELINE:
        home = bounds[1 + constraint, :, int(layout[HOME])]
        low = float(home[CENTRE] - home[HALF])
        return contradicted(
            Contradiction.SAFE_COST_OF_A_USER, thresholds, constraint,
            declared=thresholds.told[constraint], found_at=thresholds.in_unit(constraint, low),
            count=seen.safe_count, mean=thresholds.in_unit(constraint, seen.safe_mean),
        )  # fmt: skip
    return cause_for(code, thresholds, ceiling_of(layout, settings, constraint), seen)


def cause_for(code: int, thresholds: Thresholds, ceiling: float, evidence: Evidence) -> Cause:
    """Return what a kernel's code stands for, in the units of these thresholds; the ceiling is signed."""
    (what, j), setting = subject(code), thresholds.bound_name
    if what == CEILING:
        bound = thresholds.in_unit(j, ceiling)
        return contradicted(Contradiction.COST_BOUND, thresholds, j, bound=bound, setting=setting)
    if what == NOISE and setting == "cost_bound":
        return noise_contradicted(thresholds, j, evidence)
    if what == BASELINE and not math.isnan(thresholds.told[j]):
        return safe_cost_contradicted(thresholds, j, thresholds.told[j], evidence)
    if what in (MODEL, NOISE):
        return contradicted(Contradiction.NO_LINEAR_MEAN, thresholds, j, setting=setting)
    return contradicted(Contradiction.SAFE_ACTION_UNSAFE, thresholds, j, threshold=thresholds.values[j])


def noise_contradicted(thresholds: Thresholds, j: int, evidence: Evidence) -> Cause:
    """Return that residuals need more noise than was declared."""
    numbers = {"declared": evidence.noise, "outcomes": evidence.outcomes, "needed": evidence.least}
    return contradicted(Contradiction.NOISE, thresholds, j, **numbers)


def safe_cost_contradicted(thresholds: Thresholds, j: int, declared: float, evidence: Evidence) -> Cause:
    """Return that outcomes at the safe action are not what was declared of it."""
    numbers = {"count": evidence.safe_count, "mean": thresholds.in_unit(j, evidence.safe_mean)}
    return contradicted(Contradiction.SAFE_COST, thresholds, j, declared=declared, **numbers)


def contradicted(found: Contradiction, thresholds: Thresholds, constraint: int, **numbers: Any) -> Cause:
    """Return that something declared of a cost is contradicted."""
    name, at_most = thresholds.names[constraint], bool(thresholds.signs[constraint] > 0.0)
    return Cause.of(Reason.CONTRADICTION, found=found, limit=name, at_most=at_most, **numbers)
