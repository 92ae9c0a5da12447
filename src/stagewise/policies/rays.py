"""From a kernel's answer on rays to a Decision, and to the table a person reads."""

from functools import partial
from typing import Any

import numpy as np

from stagewise.kernels.answer import HOPE, STEP, UNFOLLOWED, action_in, costs_in
from stagewise.kernels.bounds import HOPED, STEPS
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import CERTIFIED, DIRECTIONAL, OFFERS_SAFE, RETURNS, SWITCHES
from stagewise.kernels.promise import safe_cost
from stagewise.kernels.rules.ray import pessimistic
from stagewise.policies.compiled import NEW, Chosen
from stagewise.policies.settings import CAUSES
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table

PESSIMISTIC, SAFE_COST, COSTS_IN, ACTION_IN = named(pessimistic), named(safe_cost), named(costs_in), named(action_in)


def rays_of(actions: Any) -> Listed:
    """Return rays; a table of numbers is taken as their targets."""
    return actions.as_rays() if isinstance(actions, ActionSet) else Rays.borrowed(actions)


def listed_of(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays by their ends and polytopes by their vertices.

    That suffices: every other point is a mixture of these.
    """
    return actions.as_list() if isinstance(actions, ActionSet) else Finite.borrowed(actions)


def own(action: Floats) -> Floats:
    """Return the action played as an array by itself, that nobody can write to.

    An open decision then keeps d numbers alive, not everything that was computed for every candidate.
    """
    copy = action.copy()
    copy.setflags(False)  # type: ignore[call-arg]  # by its name it would take twice as long
    return copy


def decision_on_rays(seen: Chosen, thresholds: Thresholds, round_: int, word: str = "ray") -> Decision:
    """Return the decision that a kernel's answer stands for."""
    code, answer, features, values = seen.code, seen.answer, seen.features, thresholds.values
    index, cause = (code, None) if code >= 0 else (-1, CAUSES.get(-code))
    action = ACTION_IN(answer, features.shape[1]).copy()  # as `own`
    action.setflags(False)  # type: ignore[call-arg]
    dearest = thresholds.in_units(COSTS_IN(answer, values.size))
    told = (action, index, answer.item(STEP), None, answer.item(HOPE), dearest, values, cause, round_, 0.0)
    decision = NEW(Decision, told)
    decision._table, decision._offered = partial(table, seen, thresholds, word), features
    if answer.item(UNFOLLOWED) != 0.0:
        decision._unfollowed = True
    return decision


def table(seen: Chosen, thresholds: Thresholds, word: str) -> Table:
    """Return the leading rays and the safe action with their bounds."""
    area, code, told = seen.workspace, seen.code, (seen.layout, seen.settings)
    hoped, steps, switches = area.rule[HOPED, :-1], area.rule[STEPS], int(seen.layout[SWITCHES])
    limits, signs = range(thresholds.values.size), thresholds.signs
    word = word if switches & OFFERS_SAFE or word == "arm" else "action"
    chosen, rows = leading(hoped, seen.eligible, code), []
    for i in chosen:
        dear = np.array([PESSIMISTIC(*told, area.bounds, j, i, steps[i]) for j in limits])
        rows.append(Row(f"{word} {i}", float(hoped[i]), tuple(signs * dear), float(steps[i]), i == code))
    if switches & OFFERS_SAFE:
        dear = np.array([SAFE_COST(*told, area.bounds, j) for j in limits])
        rows.append(Row("safe action", float(area.rule[HOPED, -1]), tuple(signs * dear), 0.0, code < 0))
    why = f"the {word} with the largest hoped reward at its longest safe step"
    if not switches & RETURNS:
        why = "the ray with the largest hoped reward at its longest plausible step, which may break a limit"
    elif not switches & OFFERS_SAFE:
        why = f"the {word} with the largest hoped reward"
    elif switches & DIRECTIONAL:
        why = f"the {word} with the largest hoped reward at its longest plausible step, cut back to its safe step"
    elif switches & CERTIFIED:
        why = f"the {word} that a draw proposed, its regret being certified, or else the most hopeful; at its safe step"
    hidden = hidden_count(len(seen.features), seen.eligible, len(chosen))
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "step", tuple(rows), hidden, why)
