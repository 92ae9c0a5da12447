"""Decisions on rays, and their explanations."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import CERTIFIED, DIRECTIONAL, ENFORCES_LIMITS, OFFERS_SAFE, SWITCHES
from stagewise.engine.limits import compute_safe_cost
from stagewise.engine.workspace import (
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    STEP,
    STEPS,
    UNCACHED,
    get_action,
    get_pessimistic_costs,
)
from stagewise.policies.compiled_policy import NEW, RoundResult
from stagewise.policies.leading_actions import count_hidden, select_leading
from stagewise.policies.sampled_choice import get_sampled_rays
from stagewise.policies.settings import CAUSES
from stagewise.problem.actions import ActionSet, FiniteSet, Listed, Rays
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Estimates, Row, Table
from stagewise.rules.ray import compute_pessimistic_cost

PROPOSED_RAY = (
    "the proposed ray if its regret is certified, otherwise the ray with the highest optimistic reward; at its longest "
    "safe step"
)
PESSIMISTIC_COST, SAFE_COST, GET_COSTS, GET_ACTION = (
    as_python(compute_pessimistic_cost),
    as_python(compute_safe_cost),
    as_python(get_pessimistic_costs),
    as_python(get_action),
)


def parse_rays(actions: Any) -> Listed:
    """Return rays; a table of numbers becomes their targets."""
    return actions.as_rays() if isinstance(actions, ActionSet) else Rays.from_view(actions)


def parse_listed_actions(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays as their targets, polytopes as their vertices.

    Every other point is a mixture of these.
    """
    return actions.as_list() if isinstance(actions, ActionSet) else FiniteSet.from_view(actions)


def copy_action(action: Floats) -> Floats:
    """Return a read-only copy of the played action.

    A pending decision then keeps d numbers in memory instead of the whole workspace.
    """
    copy = action.copy()
    copy.setflags(False)  # type: ignore[call-arg]  # by keyword it takes twice as long
    return copy


class RayBasis(NamedTuple):
    """The data of the explanation of a decision on rays."""

    result: RoundResult
    thresholds: Thresholds
    word: str
    why: str | None

    def __call__(self) -> Table:
        """Return the leading rays and the safe action with their estimates and bounds."""
        return build_ray_table(*self)

    def estimates(self) -> Estimates:
        """Return the estimates of the played point."""
        result = self.result
        index = result.code if result.code >= 0 else len(result.features)
        return compute_estimates(result, self.thresholds, index, float(result.workspace.rule[STEPS, index]))


def compute_estimates(result: RoundResult, thresholds: Thresholds, index: int, step: float) -> Estimates:
    """Return the estimates at a step along a ray; the safe action has the last index and step 0."""
    estimates = result.estimates
    if step == 1.0 or index == len(result.features):
        means = estimates[:, index]
    else:
        means = (1.0 - step) * estimates[:, -1] + step * estimates[:, index]
    return Estimates(float(means[0]), thresholds.to_user_units(means[1:]))


def build_ray_decision(
    result: RoundResult, thresholds: Thresholds, round_: int, word: str = "ray", why: str | None = None
) -> Decision:
    """Return the decision of a kernel's answer; `why` describes the choice where the rule does not."""
    code, answer, features, values = result.code, result.answer, result.features, thresholds.values
    index, cause = (code, None) if code >= 0 else (-1, CAUSES.get(-code))
    action = GET_ACTION(answer, features.shape[1]).copy()  # as `copy_action`
    action.setflags(False)  # type: ignore[call-arg]
    pessimistic_cost = thresholds.to_user_units(GET_COSTS(answer, values.size))
    fields = (
        action,
        index,
        answer.item(STEP),
        None,
        answer.item(OPTIMISTIC_REWARD),
        pessimistic_cost,
        values,
        cause,
        round_,
        0.0,
    )
    decision = NEW(Decision, fields)
    decision._table, decision._offered = NEW(RayBasis, (result, thresholds, word, why)), features
    if answer.item(UNCACHED) != 0.0:
        decision._uncached = True
    return decision


def build_ray_table(result: RoundResult, thresholds: Thresholds, word: str, why: str | None) -> Table:
    """Return the leading rays and the safe action with their estimates and bounds."""
    area, code, arrays = result.workspace, result.code, (result.layout, result.settings)
    optimistic_reward, steps, switches = (
        area.rule[OPTIMISTIC_REWARDS, :-1],
        area.rule[STEPS],
        int(result.layout[SWITCHES]),
    )
    limits, signs = range(thresholds.values.size), thresholds.signs
    word = word if switches & OFFERS_SAFE or word == "arm" else "action"
    sample = get_sampled_rays(result) if switches & CERTIFIED and why is None and code >= 0 else None
    chosen, rows = select_leading(optimistic_reward, result.eligible, code), []

    def row(label: str, index: int, costs: Any, step: float, is_played: bool) -> Row:
        means = compute_estimates(result, thresholds, index, step)
        drawn = None if sample is None else float(sample.rewards[index])
        estimates = means.reward, tuple(means.costs.tolist()), drawn
        return Row(
            label, float(area.rule[OPTIMISTIC_REWARDS, index]), tuple(signs * costs), step, is_played, *estimates
        )

    for i in chosen:
        costs = np.array([PESSIMISTIC_COST(*arrays, area.bounds, j, i, steps[i]) for j in limits])
        rows.append(row(f"{word} {i}", i, costs, float(steps[i]), i == code))
    if switches & OFFERS_SAFE:
        costs = np.array([SAFE_COST(*arrays, area.bounds, j) for j in limits])
        rows.append(row("safe action", len(result.features), costs, 0.0, code < 0))
    hidden = count_hidden(len(result.features), result.eligible, len(chosen))
    how = why or describe_choice(switches, word, sample is None or sample.proposal == code)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "step", tuple(rows), hidden, how)


def describe_choice(switches: int, word: str, as_sampled: bool) -> str:
    """Return the sentence for a rule's choice; `as_sampled`: posterior sampling proposed the played ray."""
    best = f"the {word} with the highest optimistic reward"
    if not switches & ENFORCES_LIMITS:
        return f"{best} at its longest plausible step, which can violate a limit"
    if not switches & OFFERS_SAFE:
        return best
    if switches & DIRECTIONAL:
        return f"{best} at its longest plausible step, cut back to its longest safe step"
    if switches & CERTIFIED and as_sampled:
        return f"the {word} that posterior sampling proposes, whose regret is certified, at its longest safe step"
    if switches & CERTIFIED:
        return f"{best}, at its longest safe step; the regret of the posterior-sampling proposal is not certified"
    return f"{best} at its longest safe step"
