"""Safe mixtures for function classes: by bounds of every action, or by every plausible function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    HALF,
    NO_BETTER_ACTION,
    NO_PLAUSIBLE_FUNCTION,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_COST_UNCERTAIN,
    SOLVER_FAILED,
    UNCACHED,
    answer_size,
    compute_bonus_factors,
    workspace_size,
)
from stagewise.models.function_class import FunctionBounds
from stagewise.policies.decisions import (
    GET_PER_LIMIT,
    TERMS,
    BoundedMixture,
    build_mixture_decision,
    copy_action,
    sample_code,
)
from stagewise.policies.rounds import GET_DECISION_VIEWS, GET_WORKSPACE, RoundResult
from stagewise.policies.settings import CAUSES
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails
from stagewise.rules.mixture import Vertex, choose_mixture, compute_pessimistic_costs

WEIGH = as_python(compute_bonus_factors)
# Optimistic rewards, the plausible functions of each signal, and the bonus per unit of each cost's width.
Solve = Callable[[Floats, tuple[Floats, ...], Floats], Vertex]


class RoundActions(NamedTuple):
    """The actions of a round."""

    size: int  # n actions
    eligible: Flags
    safe: Any  # the safe action's arm or features
    safe_index: int  # the index of the safe arm; −1: it is beside the list
    features: Floats | None  # (n, d)

    def action(self, code: int) -> Any:
        """Return the arm or the features of the played action."""
        if self.features is None:
            return code if code >= 0 else self.safe_index
        return copy_action(self.features[code] if code >= 0 else self.safe)


class Rule(NamedTuple):
    """The constraints of a mixture."""

    layout: Ints
    settings: Floats
    thresholds: Thresholds

    @property
    def limits(self) -> Floats:
        """The limits on costs (m,)."""
        return TERMS(self.layout, self.settings).limits


def decide_mixture(
    offer: RoundActions, bounds: FunctionBounds | None, rule: Rule, solve: Solve | None, draw: RandomKey
) -> Decision:
    """Return the decision for a round; `bounds` is None where a class has no plausible function.

    Without `solve` the bounds of every action decide.
    """
    if bounds is None:
        return build_safe_decision(offer, rule.thresholds, draw.round, CAUSES[NO_PLAUSIBLE_FUNCTION])
    result, blend = solve_by_bounds(offer, bounds, rule, draw), None
    if solve is not None and result.code not in (-SAFE_ACTION_COST_UNCERTAIN, -BOUNDS_NOT_FINITE):
        lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
        code, blend = solve_by_functions(result, bounds, offer, solve, lottery)
        result = result._replace(code=code)
    return build_mixture_decision(result, offer.action(result.code), rule.thresholds, draw.round, blend=blend)


def solve_by_bounds(offer: RoundActions, bounds: FunctionBounds, rule: Rule, draw: RandomKey) -> RoundResult:
    """Return the best safe mixture by the lowest and the highest plausible value of every action.

    A unit of a cost's width adds (1 − r₀)/(τ − c₀) to the optimistic reward, with the smallest plausible r₀ and the
    largest plausible c₀. Other actions than x₀ can be played when the width of c₀ is at most the certain slack
    (docs/theory/unknown-baseline.md, factor 2).
    """
    m, count = rule.thresholds.values.size, offer.size
    features = np.empty((count, 0)) if offer.features is None else offer.features
    answer, scratch = np.empty(answer_size(m, features.shape[1])), np.empty(workspace_size(m, count))
    area, written = GET_WORKSPACE(rule.layout, count, scratch), GET_DECISION_VIEWS(rule.layout, answer)
    area.bounds[:, CENTRE] = 0.5 * (bounds.highest + bounds.lowest)
    area.bounds[:, HALF] = 0.5 * (bounds.highest - bounds.lowest)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    each = GET_PER_LIMIT(rule.layout, area.per_limit)
    arguments = (rule.layout, rule.settings, area.bounds, offer.eligible, 0, area.rule, each.factors)
    code = choose_mixture(*arguments, each.basis if m > 1 else None, written.shares, written.places, lottery, answer)
    answer[UNCACHED] = 0.0
    return RoundResult(int(code), answer, scratch, rule.layout, rule.settings, features, offer.eligible, ())


def solve_by_functions(
    result: RoundResult, bounds: FunctionBounds, offer: RoundActions, solve: Solve, lottery: float
) -> tuple[int, BoundedMixture]:
    """Return the kernel code and the mixture of a rule that bounds costs function by function."""
    optimistic_reward = result.workspace.rule[OPTIMISTIC_REWARDS]
    columns = np.flatnonzero(optimistic_reward[:-1] > -np.inf)
    tables = tuple(signal[:, [*columns, -1]] for signal in bounds.tables)
    rewards = np.append(optimistic_reward[columns], optimistic_reward[-1])
    mixed = build_safe_vertex(rewards, True)
    if columns.size:
        factors = np.empty(len(tables) - 1)
        WEIGH(result.layout, result.settings, result.workspace.bounds, factors)
        mixed = solve(rewards, tables, 0.5 * factors)  # half of them: per unit of a cost's width
        mixed = mixed if np.isfinite(mixed.value) else build_safe_vertex(rewards, False)
    if mixed.shares[-1] == 1.0:  # the rest is rounding
        mixed.shares[:-1] = 0.0
    code = sample_code(mixed.shares, lottery)
    if code >= 0:
        code = int(columns[code])
    elif code == -NO_BETTER_ACTION and not mixed.solved:
        code = -SOLVER_FAILED
    probabilities = np.zeros(offer.size + 1)
    probabilities[columns] = mixed.shares[:-1]
    probabilities[offer.safe_index] += mixed.shares[-1]
    gap = max(0.0, mixed.bound - mixed.value)
    return code, BoundedMixture(probabilities, mixed.value, compute_pessimistic_costs(mixed.shares, tables[1:]), gap)


def build_safe_vertex(rewards: Floats, solved: bool) -> Vertex:
    """Return the vertex of the safe action."""
    return Vertex(np.eye(rewards.size)[-1], float(rewards[-1]), float(rewards[-1]), solved, 0)


def build_safe_decision(offer: RoundActions, thresholds: Thresholds, round_: int, cause: ReasonDetails) -> Decision:
    """Return a decision for the safe action, without bounds."""
    probabilities = np.zeros(offer.size + 1)
    probabilities[offer.safe_index] = 1.0
    fields = (probabilities, 1.0, thresholds.at_safe, thresholds.values, cause, round_)
    return Decision(offer.action(-1), None if offer.safe_index < 0 else offer.safe_index, 1.0, *fields)
