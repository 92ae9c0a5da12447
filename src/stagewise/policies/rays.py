"""From a kernel's verdict on rays to a Decision, and to the table a person reads."""

from functools import partial
from typing import Any

import numpy as np

from stagewise.kernels import lc_lucb, linear
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.shape import named_shape
from stagewise.kernels.sight import named_sight, sheet_size
from stagewise.policies.settings import FALLBACKS
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Listed, Rays
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table


def rays_of(actions: Any) -> Listed:
    """Return rays; a table of numbers is taken as their targets."""
    return actions.as_rays() if isinstance(actions, ActionSet) else Rays.borrowed(actions)


def own(action: Floats) -> Floats:
    """Return the action played as an array by itself, that nobody can write to.

    An open decision then keeps d numbers alive, not everything that was computed for every candidate.
    """
    copy = action.copy()
    copy.flags.writeable = False
    return copy


def decision_on_rays(
    code: int,
    sheet: Floats,
    features: Floats,
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    thresholds: Thresholds,
    round_: int,
    word: str = "ray",
) -> Decision:
    """Return the decision that the kernel's code and sheet stand for."""
    action = sheet.size - features.shape[1]
    first = action - thresholds.values.size - 4
    step, hoped, *_, news = sheet[first:action].tolist()
    return Decision(
        own(sheet[action:]),
        code if code >= 0 else -1,
        step,
        None,
        hoped,
        thresholds.in_units(sheet[first + 2 : action - 2]),
        thresholds.values,
        None if code >= 0 else FALLBACKS.get(-code),
        round_,
        partial(table, code, sheet, eligible, flags, numbers, thresholds, word),
        features,
        news != 0.0,
    )


def table(
    code: int, sheet: Floats, eligible: Flags, flags: Ints, numbers: Floats, thresholds: Thresholds, word: str
) -> Table:
    """Return the leading rays and the safe action with their bounds."""
    shape = named_shape(flags)
    count = (sheet.size - sheet_size(shape.dimension, shape.constraints, 0)) // (8 + shape.constraints)
    sight = named(named_sight)(shape, sheet, count)
    dearest = np.empty((shape.constraints, count))
    lc_lucb.fill_dearest(flags, numbers, sheet, dearest)
    word = word if shape.offers_safe else "action"
    chosen = leading(sight.hoped, eligible, code)
    rows = [
        Row(f"{word} {i}", sight.hoped[i], tuple(thresholds.signs * dearest[:, i]), sight.steps[i], i == code)
        for i in chosen
    ]
    if shape.offers_safe:
        promise = named(linear.named_promise_of)(shape, numbers)
        doubt = promise.cost_scale * sight.radii[1:] * sight.start[-1]
        centre = sight.start[1 : 1 + shape.constraints]
        dear = np.maximum(np.minimum(centre + doubt, promise.ceilings), centre - doubt)
        rows.append(
            Row(
                "safe action",
                float(sight.verdict[2 + shape.constraints]),
                tuple(thresholds.signs * dear),
                0.0,
                code < 0,
            )
        )
    why = f"the {word} with the largest hoped reward at its longest safe step"
    if not shape.returns:
        why = "the ray with the largest hoped reward at its longest plausible step, which may break a limit"
    elif not shape.offers_safe:
        why = "the action with the largest hoped reward"
    elif shape.directional:
        why = f"the {word} with the largest hoped reward at its longest plausible step, cut back to its safe step"
    hidden = hidden_count(count, eligible, len(chosen))
    return Table(thresholds.names, tuple(thresholds.signs), tuple(thresholds.values), "step", tuple(rows), hidden, why)
