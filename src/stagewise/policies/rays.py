"""From a kernel's answer on rays to a Decision, and to the table a person reads."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import HOPE, STEP, UNFOLLOWED, action_in, costs_in
from stagewise.kernels.bounds import HOPED, STEPS
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import CERTIFIED, DIRECTIONAL, OFFERS_SAFE, RETURNS, SWITCHES
from stagewise.kernels.promise import safe_cost
from stagewise.kernels.rules.ray import pessimistic
from stagewise.policies.certified_choice import sampled_rays
from stagewise.policies.compiled import NEW, Chosen
from stagewise.policies.settings import CAUSES
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Estimates, Row, Table

PROPOSED_RAY = (
    "the proposed ray if its regret is certified, otherwise the ray with the highest optimistic reward; at its longest "
    "safe step"
)
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


class RayBasis(NamedTuple):
    """What a decision on rays is explained by."""

    seen: Chosen
    thresholds: Thresholds
    word: str
    why: str | None

    def __call__(self) -> Table:
        """Return the leading rays and the safe action with their estimates and bounds."""
        return table(*self)

    def estimates(self) -> Estimates:
        """Return the estimates of the point that is played."""
        seen = self.seen
        place = seen.code if seen.code >= 0 else len(seen.features)
        return estimates_at(seen, self.thresholds, place, float(seen.workspace.rule[STEPS, place]))


def estimates_at(seen: Chosen, thresholds: Thresholds, place: int, step: float) -> Estimates:
    """Return the estimates at a step along a ray; the safe action's place is the last, and its step is 0."""
    found = seen.estimates
    if step == 1.0 or place == len(seen.features):
        means = found[:, place]
    else:
        means = (1.0 - step) * found[:, -1] + step * found[:, place]
    return Estimates(float(means[0]), thresholds.in_units(means[1:]))


def decision_on_rays(
    seen: Chosen, thresholds: Thresholds, round_: int, word: str = "ray", why: str | None = None
) -> Decision:
    """Return the decision that a kernel's answer stands for; `why` says how it was chosen where the rule does not."""
    code, answer, features, values = seen.code, seen.answer, seen.features, thresholds.values
    index, cause = (code, None) if code >= 0 else (-1, CAUSES.get(-code))
    action = ACTION_IN(answer, features.shape[1]).copy()  # as `own`
    action.setflags(False)  # type: ignore[call-arg]
    dearest = thresholds.in_units(COSTS_IN(answer, values.size))
    told = (action, index, answer.item(STEP), None, answer.item(HOPE), dearest, values, cause, round_, 0.0)
    decision = NEW(Decision, told)
    decision._table, decision._offered = NEW(RayBasis, (seen, thresholds, word, why)), features
    if answer.item(UNFOLLOWED) != 0.0:
        decision._unfollowed = True
    return decision


def table(seen: Chosen, thresholds: Thresholds, word: str, why: str | None) -> Table:
    """Return the leading rays and the safe action with their estimates and bounds."""
    area, code, told = seen.workspace, seen.code, (seen.layout, seen.settings)
    hoped, steps, switches = area.rule[HOPED, :-1], area.rule[STEPS], int(seen.layout[SWITCHES])
    limits, signs = range(thresholds.values.size), thresholds.signs
    word = word if switches & OFFERS_SAFE or word == "arm" else "action"
    sample = sampled_rays(seen) if switches & CERTIFIED and why is None and code >= 0 else None
    chosen, rows = leading(hoped, seen.eligible, code), []

    def row(label: str, place: int, dear: Any, step: float, is_played: bool) -> Row:
        found = estimates_at(seen, thresholds, place, step)
        drawn = None if sample is None else float(sample.rewards[place])
        known = found.reward, tuple(found.costs.tolist()), drawn
        return Row(label, float(area.rule[HOPED, place]), tuple(signs * dear), step, is_played, *known)

    for i in chosen:
        dear = np.array([PESSIMISTIC(*told, area.bounds, j, i, steps[i]) for j in limits])
        rows.append(row(f"{word} {i}", i, dear, float(steps[i]), i == code))
    if switches & OFFERS_SAFE:
        dear = np.array([SAFE_COST(*told, area.bounds, j) for j in limits])
        rows.append(row("safe action", len(seen.features), dear, 0.0, code < 0))
    hidden = hidden_count(len(seen.features), seen.eligible, len(chosen))
    how = why or how_chosen(switches, word, sample is None or sample.proposal == code)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "step", tuple(rows), hidden, how)


def how_chosen(switches: int, word: str, as_sampled: bool) -> str:
    """Return how a rule chooses among rays; `as_sampled`: posterior sampling proposed what is played."""
    best = f"the {word} with the highest optimistic reward"
    if not switches & RETURNS:
        return f"{best} at its longest plausible step, which may break a limit"
    if not switches & OFFERS_SAFE:
        return best
    if switches & DIRECTIONAL:
        return f"{best} at its longest plausible step, cut back to its longest safe step"
    if switches & CERTIFIED and as_sampled:
        return f"the {word} that posterior sampling proposes, whose regret is certified, at its longest safe step"
    if switches & CERTIFIED:
        return f"{best}, at its longest safe step; the regret of the posterior-sampling proposal is not certified"
    return f"{best} at its longest safe step"
