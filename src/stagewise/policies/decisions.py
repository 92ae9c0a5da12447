"""Decisions from the results of rounds, on rays or sampled from mixtures, and the tables that explain them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python
from stagewise.engine.layout import CERTIFIED, DIRECTIONAL, ENFORCES_LIMITS, OFFERS_SAFE, SAFE_INDEX, SWITCHES
from stagewise.engine.mixture_program import compute_mixture_mean
from stagewise.engine.workspace import (
    CONTRADICTED,
    NO_BETTER_ACTION,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_DRAWN,
    SAMPLED,
    STEP,
    STEPS,
    UNCACHED,
    compute_safe_cost,
    compute_weighted_mean,
    fill_dense_probabilities,
    fill_probabilities,
    get_limit_terms,
    get_per_limit,
    get_pessimistic_cost_rows,
    get_pessimistic_costs,
    get_played_action,
    get_weights,
)
from stagewise.models.diagnostics import build_cause
from stagewise.policies.rounds import GET_DECISION_VIEWS, NEW, RoundResult
from stagewise.policies.settings import CAUSES
from stagewise.problem.actions import ActionSet, FiniteSet, Listed, RaySet
from stagewise.problem.proposal import Proposal
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Estimates, Row, Table
from stagewise.rules.certified import propose_mixture, propose_ray, swap_crosses
from stagewise.rules.ray import compute_pessimistic_cost

MAX_ROWS = 5  # of the leading candidates in a table
MAX_KEPT_CANDIDATES = 512  # the bounds of more are not kept with a decision
PROPOSED_RAY = (
    "the proposed ray if its regret is certified, otherwise the ray with the highest optimistic reward; at its longest "
    "safe step"
)
PESSIMISTIC_COSTS = (
    "sampled from the mixture with the highest optimistic reward whose pessimistic costs are within the limits"
)
OPTIMISTIC_COSTS = (
    "sampled from the mixture with the highest optimistic reward whose optimistic costs are within the limits; it can "
    "violate a limit"
)
PROPOSED = "sampled from the proposed mixture if its regret is certified, otherwise from the optimistic mixture"
CERTIFIED_SAMPLE = "sampled from the posterior-sampling mixture, whose regret is certified"
HIGHEST_SAMPLED = (
    "sampled from the posterior-sampling mixture (highest sampled reward within the limits, certified regret)"
)
HIGHEST_SCORE = "sampled from the posterior-sampling mixture (highest score within the limits, certified regret)"
PROPOSED_SHARE = "sampled from the proposal, played as far as its pessimistic costs are within the limits"
OPTIMISTIC = "sampled from the optimistic mixture; the regret of the posterior-sampling mixture is not certified"

PESSIMISTIC_COST, SAFE_COST = as_python(compute_pessimistic_cost), as_python(compute_safe_cost)
GET_COST_ROWS, MIXTURE_MEAN = as_python(get_pessimistic_cost_rows), as_python(compute_mixture_mean)
WEIGHTED_MEAN, GET_WEIGHTS = as_python(compute_weighted_mean), as_python(get_weights)
GET_PER_LIMIT, TERMS = as_python(get_per_limit), as_python(get_limit_terms)
PROPOSE_MIXTURE, PROPOSE_RAY, SWAP_CROSSES = as_python(propose_mixture), as_python(propose_ray), as_python(swap_crosses)


def parse_rays(actions: Any) -> Listed:
    """Return rays; a table of numbers becomes their targets."""
    return actions.as_rays() if isinstance(actions, ActionSet) else RaySet.from_view(actions)


def parse_listed_actions(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays as their targets, polytopes as their vertices.

    Every other point is a mixture of these.
    """
    return actions.as_list() if isinstance(actions, ActionSet) else FiniteSet.from_view(actions)


def copy_action(action: Floats) -> Floats:
    """Return a read-only copy, so that a pending decision keeps d numbers in memory instead of the whole workspace."""
    copy = action.copy()
    copy.setflags(False)  # type: ignore[call-arg]  # by keyword it takes twice as long
    return copy


def attach_round(
    decision: Decision,
    result: RoundResult,
    memory: Floats,
    thresholds: Thresholds,
    of_round: RoundSafeAction | None = None,
) -> Decision:
    """Return the decision with its round, and with the contradiction as its cause where the code is one."""
    if of_round is not None:
        decision._safe = of_round
    if len(result.features) <= MAX_KEPT_CANDIDATES:
        decision._round_result = result
    if result.code > -CONTRADICTED:
        return decision
    arrays = result.models, result.layout, result.settings, memory, result.workspace.bounds
    return decision._replace(reason_details=build_cause(result.code, thresholds, *arrays))


def select_leading(optimistic_reward: Floats, eligible: Flags, code: int) -> list[int]:
    """Return the eligible candidates with the largest optimistic reward, including the one played."""
    order = [int(i) for i in np.argsort(-optimistic_reward, kind="stable") if eligible.size == 0 or eligible[i]]
    first = order[:MAX_ROWS]
    if code >= 0 and code not in first:
        first[-1] = code
    return first


def count_hidden(result: RoundResult, row_count: int) -> int:
    """Return the number of eligible candidates that have no row."""
    return (int(result.eligible.sum()) if result.eligible.size else len(result.features)) - row_count


class SafeActionBasis(NamedTuple):
    """The explanation of a round that plays only the safe action, without estimates."""

    limits: Thresholds
    label: str
    optimistic_reward: float
    why: str

    def __call__(self) -> Table:
        """Return the table with one row, the safe action."""
        limits, row = self.limits, Row(self.label, self.optimistic_reward, tuple(self.limits.at_safe), 1.0, True)
        return Table(limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, self.why)

    def estimates(self) -> Estimates | None:
        """Return None: there are no estimates."""
        return None


# Rays.


def build_ray_decision(
    result: RoundResult, thresholds: Thresholds, round_: int, word: str = "ray", why: str | None = None
) -> Decision:
    """Return the decision of a kernel's answer; `why` describes the choice where the rule does not."""
    code, answer, _, layout, _, features, _, _ = result
    index, cause = (code, None) if code >= 0 else (None, CAUSES.get(-code))
    answer.setflags(False)  # type: ignore[call-arg]  # the decision keeps parts of it; a keyword takes twice as long
    action, costs = get_played_action(layout, answer), get_pessimistic_costs(layout, answer)
    costs, reward = thresholds.to_user_units(costs), answer.item(OPTIMISTIC_REWARD)
    fields = action, index, answer.item(STEP), None, reward, costs, thresholds.values, cause, round_, 0.0
    decision = NEW(Decision, fields)
    decision._table, decision._offered = NEW(RayBasis, (result, thresholds, word, why)), features
    if answer.item(UNCACHED) != 0.0:
        decision._uncached = True
    return decision


class RayBasis(NamedTuple):
    """The data of the explanation of a decision on rays."""

    result: RoundResult
    thresholds: Thresholds
    word: str
    why: str | None

    def estimates(self) -> Estimates:
        """Return the estimates of the played point."""
        result = self.result
        index = result.code if result.code >= 0 else len(result.features)
        return self.estimates_at(index, float(result.workspace.rule[STEPS, index]))

    def estimates_at(self, index: int, step: float) -> Estimates:
        """Return the estimates at a step along a ray; the safe action has the last index and step 0."""
        estimates = self.result.estimates
        if step == 1.0 or index == len(self.result.features):
            means = estimates[:, index]
        else:
            means = (1.0 - step) * estimates[:, -1] + step * estimates[:, index]
        return Estimates(float(means[0]), self.thresholds.to_user_units(means[1:]))

    def __call__(self) -> Table:
        """Return the leading rays and the safe action with their estimates and bounds."""
        result, thresholds, word, why = self
        area, code, arrays = result.workspace, result.code, (result.layout, result.settings)
        rewards, steps = area.rule[OPTIMISTIC_REWARDS], area.rule[STEPS]
        switches, limits, signs = int(result.layout[SWITCHES]), range(thresholds.values.size), thresholds.signs
        word = word if switches & OFFERS_SAFE or word == "arm" else "action"
        sampled, proposal = sample_rays(result) if switches & CERTIFIED and why is None and code >= 0 else (None, code)
        rows = []

        def add_row(label: str, index: int, costs: Any, step: float, is_played: bool) -> None:
            means, drawn = self.estimates_at(index, step), None if sampled is None else float(sampled[index])
            estimates = means.reward, tuple(means.costs.tolist()), drawn
            rows.append(Row(label, float(rewards[index]), tuple(signs * costs), step, is_played, *estimates))

        chosen = select_leading(rewards[:-1], result.eligible, code)
        for i in chosen:
            costs = np.array([PESSIMISTIC_COST(*arrays, area.bounds, j, i, steps[i]) for j in limits])
            add_row(f"{word} {i}", i, costs, float(steps[i]), i == code)
        if switches & OFFERS_SAFE:
            costs = np.array([SAFE_COST(*arrays, area.bounds, j) for j in limits])
            add_row("safe action", len(result.features), costs, 0.0, code < 0)
        how, hidden = why or describe_ray_choice(switches, word, proposal == code), count_hidden(result, len(chosen))
        return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "step", tuple(rows), hidden, how)


def sample_rays(result: RoundResult) -> tuple[Floats, int]:
    """Return the sampled rewards at the longest steps that the sampled costs allow, and the best ray; -1: none.

    The posterior sample of a certified round is computed again from its workspace.
    """
    bounds, rule = result.workspace.bounds.copy(), result.workspace.rule.copy()
    SWAP_CROSSES(bounds, rule)  # the round has swapped them back
    gains = np.zeros(bounds.shape[2])
    proposal = PROPOSE_RAY(result.layout, result.settings, bounds, result.eligible, gains)
    gains[-1] = 0.0
    return bounds[0, SAMPLED, -1] + gains, int(proposal)


def describe_ray_choice(switches: int, word: str, as_sampled: bool) -> str:
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


# Mixtures.


class BoundedMixture(NamedTuple):
    """A safe mixture with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    optimistic_reward: float
    pessimistic_cost: Floats  # (m,) signed
    solver_gap: float


def read_mixture(result: RoundResult) -> BoundedMixture:
    """Return the mixture of a kernel's answer."""
    _, answer, _, layout, _, features, _, _ = result
    odds = np.empty(len(features) + 1)
    fill_probabilities(layout, answer, odds)
    return NEW(BoundedMixture, (odds, answer.item(OPTIMISTIC_REWARD), get_pessimistic_costs(layout, answer), 0.0))


def read_dense_mixture(result: RoundResult) -> BoundedMixture:
    """Return the mixture of a rule that writes the probability of every action."""
    layout, answer, odds = result.layout, result.answer, np.empty(len(result.features) + 1)
    fill_dense_probabilities(layout, GET_WEIGHTS(layout, len(result.features), result.scratch), odds)
    return NEW(BoundedMixture, (odds, answer.item(OPTIMISTIC_REWARD), get_pessimistic_costs(layout, answer), 0.0))


def sample_code(probabilities: Floats, lottery: float) -> int:
    """Return the kernel code of the action that a uniform number in (0, 1) samples from a mixture (K + 1,).

    >>> sample_code(np.array([0.25, 0.75, 0.0]), 0.3)
    1
    >>> sample_code(np.array([0.25, 0.5, 0.25]), 0.9) == -SAFE_ACTION_DRAWN
    True
    """
    possible, safe = np.flatnonzero(probabilities), probabilities.size - 1
    if probabilities[safe] == 1.0:
        return -NO_BETTER_ACTION
    passed = np.searchsorted(np.cumsum(probabilities[possible]), lottery, side="right")
    index = int(possible[min(int(passed), possible.size - 1)])
    return index if index < safe else -SAFE_ACTION_DRAWN


def build_mixture_decision(
    result: RoundResult,
    action: Any,
    thresholds: Thresholds,
    round_: int,
    *,
    blend: BoundedMixture | None = None,
    why: str | None = None,
    names: Sequence[str] | None = None,
    kind: type[Decision] = Decision,
    span: tuple[float, float] = (0.0, 1.0),
    proposal: Proposal | None = None,
) -> Decision:
    """Return the decision of a kernel's answer, for this mixture or for its own; `action` None: the answer has it.

    `span` is the low end and the length of the reward's range, in the user's units.
    """
    if proposal is not None and not proposal.is_scores:
        blend, why = read_dense_mixture(result), PROPOSED_SHARE
    code, answer, _, layout, _, features, _, _ = result
    played, (low, length), cause = read_mixture(result) if blend is None else blend, span, None
    index: int | None = int(code)
    probabilities, reward, costs, gap = played
    if action is None:  # the decision keeps a part of the answer, not of the whole workspace
        answer.setflags(False)  # type: ignore[call-arg]  # by keyword it takes twice as long
        action = get_played_action(layout, answer)
    if code < 0:
        safe_index = layout.item(SAFE_INDEX)
        index = None if safe_index < 0 else safe_index
        cause = None if code == -SAFE_ACTION_DRAWN else CAUSES.get(-code)
    costs, reward, gap = thresholds.to_user_units(costs), low + length * reward, length * gap if gap else 0.0
    fields = action, index, 1.0, probabilities, reward, costs, thresholds.values, cause, round_, gap
    decision = NEW(kind, fields)
    decision._table = NEW(MixtureBasis, (result, played, blend is None, thresholds, why, names, span, proposal))
    if proposal is not None:
        decision._proposal = proposal
    elif features.shape[1]:
        decision._offered = features
        if answer.item(UNCACHED) != 0.0:
            decision._uncached = True
    return decision


class MixtureBasis(NamedTuple):
    """The data of the explanation of a decision that is sampled from a mixture."""

    result: RoundResult
    played: BoundedMixture
    solved: bool  # the mixture is in the kernel's answer
    thresholds: Thresholds
    why: str | None  # how it was chosen, where the layout does not determine it
    names: Sequence[str] | None
    span: tuple[float, float]
    proposal: Proposal | None = None

    def estimates(self) -> Estimates:
        """Return the estimates of the mixture: of each action, by its probability."""
        result, (low, length) = self.result, self.span
        if self.solved:
            written = GET_DECISION_VIEWS(result.layout, result.answer)
            means = [MIXTURE_MEAN(row, written.shares, written.places) for row in result.estimates]
        else:
            means = [self.mean(row) for row in result.estimates]
        return Estimates(float(low + length * means[0]), self.thresholds.to_user_units(np.array(means[1:])))

    @property
    def weights(self) -> Floats:
        """The probabilities (K + 1,), the safe action's last."""
        weights, safe_index = self.played.probabilities.copy(), int(self.result.layout[SAFE_INDEX])
        if safe_index >= 0:
            weights[-1], weights[safe_index] = weights[-1] + weights[safe_index], 0.0
        return weights

    def mean(self, values: Floats) -> float:
        """Return the mean of values (K + 1,) under the mixture."""
        return WEIGHTED_MEAN(values, self.weights)

    def to_units(self, costs: Floats) -> Floats:
        """Return signed costs (m, K + 1) in the user's own units (K + 1, m)."""
        return np.array([self.thresholds.to_user_units(column) for column in costs.T])

    def __call__(self) -> Table:
        """Return the leading actions, the safe one, and the mixture with their estimates and bounds."""
        result, played, _, thresholds, why, names, (low, length), _ = self
        area, code, safe_index = result.workspace, result.code, int(result.layout[SAFE_INDEX])
        probabilities, rewards_by_rule = played.probabilities, area.rule[OPTIMISTIC_REWARDS]
        optimistic_reward = low + length * rewards_by_rule
        pessimistic_cost = self.to_units(GET_COST_ROWS(result.layout, area.rule))
        rewards, means = low + length * result.estimates[0], self.to_units(result.estimates[1:])
        certified = why is None and bool(int(result.layout[SWITCHES]) & CERTIFIED)
        sample = sample_mixture(result) if certified else None
        drawn = [] if sample is None else [low + length * column for column in sample[:2] if column is not None]
        proposed = None if self.proposal is None or self.proposal.is_scores else self.proposal.values
        mixed = [i for i in range(len(result.features)) if probabilities[i] > 0.0 and i != safe_index]
        leading = select_leading(rewards_by_rule[:-1], result.eligible, code)
        leading = [i for i in leading if i not in mixed and rewards_by_rule[i] > -np.inf]
        shown = [*mixed, *leading][: max(MAX_ROWS, len(mixed))]
        word = "action" if safe_index < 0 or result.features.shape[1] else "arm"
        rows = []
        for i in [*shown, -1]:
            label = f"{word} {i}" if names is None else names[i]
            if i < 0:
                label = "safe action" if names is None else f"{names[safe_index]} (safe)"
            weight, is_played = float(probabilities[i if i >= 0 else safe_index]), i == code if i >= 0 else code < 0
            estimates: Any = (float(rewards[i]), tuple(means[i]), *(float(column[i]) for column in drawn))
            bounds = float(optimistic_reward[i]), tuple(pessimistic_cost[i])
            row = Row(label, *bounds, weight, is_played, *estimates)
            rows.append(
                row if proposed is None else row._replace(proposed=float(proposed[i if i >= 0 else safe_index]))
            )
        if sum(each.weight > 0.0 for each in rows) > 1:
            fit, costs = self.estimates(), tuple(thresholds.to_user_units(played.pessimistic_cost).tolist())
            sampled = [] if sample is None else [low + length * self.mean(c) for c in sample[:2] if c is not None]
            estimates = (fit.reward, tuple(fit.costs.tolist()), *sampled)
            bounds, weight = (self.mean(optimistic_reward), costs), float(self.weights.sum())
            whole = Row("mixture", *bounds, weight, False, *estimates)
            rows.append(whole if proposed is None else whole._replace(proposed=float(proposed.sum())))
        hidden = max(count_hidden(result, len(shown)) - int(safe_index >= 0), 0)
        how = why or (describe_certificate(sample) if certified else PESSIMISTIC_COSTS)
        return Table(thresholds.names, tuple(thresholds.signs), tuple(thresholds.values), "probability", tuple(rows),
                     hidden, how, thresholds.promises)  # fmt: skip


Sample = tuple[Floats, Floats | None, bool]  # rewards (K + 1,), scores if they differ, whether its mixture is played


def sample_mixture(result: RoundResult) -> Sample | None:
    """Return the posterior sample of a certified round, computed again from its workspace; None: none was proposed.

    The scores are the objective of the sampled mixture.
    """
    if result.code < 0 and result.code != -SAFE_ACTION_DRAWN:
        return None
    area, m, arrays = result.workspace, result.workspace.bounds.shape[0] - 1, (result.layout, result.settings)
    bounds, rule = area.bounds.copy(), area.rule.copy()
    prices, basis = GET_PER_LIMIT(result.layout, area.per_limit.copy())
    shares, indices = np.zeros(m + 2), np.full(m + 2, -1)
    limits = TERMS(*arrays).limits
    PROPOSE_MIXTURE(*arrays, bounds, result.eligible, rule, prices, basis if m > 1 else None, limits, shares, indices)
    written, width = GET_DECISION_VIEWS(result.layout, result.answer), rule.shape[1]
    proposed = compute_action_shares(shares, indices, width)
    is_played = np.array_equal(proposed, compute_action_shares(written.shares, written.places, width))
    return bounds[0, SAMPLED], rule[OPTIMISTIC_REWARDS] if (prices > 0.0).any() else None, is_played


def compute_action_shares(shares: Floats, indices: Ints, width: int) -> Floats:
    """Return the weight of every action (K + 1,), the safe one last."""
    weights = np.zeros(width)
    np.add.at(weights, np.where(indices < 0, width - 1, indices), shares)
    return weights


def describe_certificate(sample: Sample | None) -> str:
    """Return the sentence for the mixture of a certified choice."""
    if sample is None:
        return CERTIFIED_SAMPLE
    _, scores, is_played = sample
    return OPTIMISTIC if not is_played else HIGHEST_SAMPLED if scores is None else HIGHEST_SCORE
