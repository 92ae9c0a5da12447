"""Analysis of decisions: estimates, exploration, certified actions, and what becomes of proposals."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import LIMITS, SAFE_INDEX
from stagewise.engine.mixture_program import compute_optimal_mixture_value
from stagewise.engine.model import Model
from stagewise.engine.workspace import CENTRE, COST_SCALE, HALF, get_limit_terms, per_limit_size, safe_step
from stagewise.models.diagnostics import UpperForecast
from stagewise.models.model_block import iter_model_blocks
from stagewise.policies.rounds import RoundResult
from stagewise.problem.proposal import ROUNDING
from stagewise.records.decision import Decision

MOST_PULLS, STEP = 1e12, 1.05  # largest forecast, and the ratio from one number of pulls to the next
LIMIT_TERMS, BEST_MIXTURE = as_python(get_limit_terms), as_python(compute_optimal_mixture_value)
SAFE_STEP = as_python(safe_step)


class DecisionAnalysis(NamedTuple):
    """One decision, candidate by candidate; the safe action is last."""

    weights: Floats  # (K + 1,) what is played of each: probabilities, or 1 − step and step
    fit: Floats  # (1 + m, K + 1) estimates, signed
    centre: Floats  # (1 + m, K + 1) of the intervals
    half: Floats  # (1 + m, K + 1)
    pessimistic_cost: Floats  # (m, K + 1) pessimistic costs
    limits: Floats  # (m,)
    best: Floats  # (K + 1,) the same weights if estimates were the truth and costs at their worst
    mixes: bool


def analyze_decision(decision: Decision, memory: Floats) -> DecisionAnalysis:
    """Return the analysis of a decision, with the estimates of this memory."""
    round_result: RoundResult = decision._round_result
    m, safe_index = int(round_result.layout[LIMITS]), int(round_result.layout[SAFE_INDEX])
    bounds, terms = round_result.workspace.bounds, LIMIT_TERMS(round_result.layout, round_result.settings)
    centre, half = bounds[:, CENTRE].copy(), bounds[:, HALF].copy()
    scaled = centre[1:] + round_result.settings[COST_SCALE] * half[1:]
    pessimistic_cost = np.maximum(np.minimum(scaled, terms.ceilings[:, None]), centre[1:] - half[1:]) if m else scaled
    mixes = decision[3] is not None
    weights = np.zeros(centre.shape[1])
    if mixes:
        weights[:] = decision[3]
        if safe_index >= 0:
            weights[-1], weights[safe_index] = weights[safe_index], 0.0
    elif decision.action_index is not None:
        weights[decision.action_index], weights[-1] = decision.step_size, 1.0 - decision.step_size
    else:
        weights[-1] = 1.0
    eligible = np.append(
        round_result.eligible if round_result.eligible.size else np.ones(len(weights) - 1, dtype=np.bool_), True
    )
    if safe_index >= 0:
        eligible[safe_index] = False
    choose = find_best_mixture if mixes else find_best_ray
    fit = compute_estimates(round_result, memory, centre, half)
    best = choose(np.where(eligible, fit[0], -np.inf), pessimistic_cost, terms.limits)
    return DecisionAnalysis(weights, fit, centre, half, pessimistic_cost, terms.limits.copy(), best, mixes)


def compute_estimates(round_result: RoundResult, memory: Floats, centre: Floats, half: Floats) -> Floats:
    """Return the estimates: the centres of intervals, except for clipped or asymmetric ones.

    A candidate without outcomes has no estimate of its own, and keeps the centre.
    """
    fit, safe_index = centre.copy(), int(round_result.layout[SAFE_INDEX])
    for model, part in iter_model_blocks(round_result.models, round_result.layout, memory):
        estimates = np.full(fit.shape[1] - 1, np.nan)
        model.diagnostics.fill_estimates(part, round_result.features, round_result.settings, memory, estimates)
        row = np.append(estimates, estimates[safe_index] if safe_index >= 0 else np.nan)
        fit[part.first] = np.where(np.isnan(row), fit[part.first], row)
    return np.clip(fit, centre - half, centre + half)


def find_best_ray(reward: Floats, pessimistic_cost: Floats, limits: Floats) -> Floats:
    """Return the weights of the ray with the highest reward at its longest safe step."""
    weights, slacks, most = one_hot(reward.size, -1), limits - pessimistic_cost[:, -1], 0.0
    if (slacks < 0.0).any():
        return weights
    for ray in np.flatnonzero(np.isfinite(reward[:-1])).tolist():
        rises = pessimistic_cost[:, ray] - pessimistic_cost[:, -1]
        step = min([1.0, *(SAFE_STEP(rise, slack) for rise, slack in zip(rises, slacks, strict=True))])
        if step * (reward[ray] - reward[-1]) > most:
            most = step * (reward[ray] - reward[-1])
            weights[:] = 0.0
            weights[ray], weights[-1] = step, 1.0 - step
    return weights


def find_best_mixture(reward: Floats, pessimistic_cost: Floats, limits: Floats) -> Floats:
    """Maximise <p, reward> subject to <p, pessimistic_cost> ≤ limits, by the rule of policies that mix."""
    m, count = limits.size, reward.size
    if m == 0:
        return one_hot(count, int(np.argmax(reward)))
    shares, indices = one_hot(m + 2, 0), np.full(m + 2, -1)  # the safe action alone, where it is itself above a limit
    rule, basis = np.empty((3 + 2 * m, count)), np.empty(per_limit_size(m) - m) if m > 1 else None
    BEST_MIXTURE(np.vstack([reward, pessimistic_cost]), limits, rule, basis, shares, indices)
    weights = np.zeros(count)
    np.add.at(weights, np.where(indices < 0, count - 1, indices), shares)
    return weights


def one_hot(count: int, index: int) -> Floats:
    """Return weights that are 1 at one index."""
    weights = np.zeros(count)
    weights[index] = 1.0
    return weights


def classify_round(view: DecisionAnalysis, played: int) -> tuple[float, float, float]:
    """Return the shares of a round that explored, exploited and were the safe action."""
    if not view.mixes:
        if view.weights[-1] == 1.0:
            return 0.0, 0.0, 1.0
        return (0.0, 1.0, 0.0) if view.best[played] > 0.0 else (1.0, 0.0, 0.0)
    safe, known = float(view.weights[-1]), float(view.weights[:-1][view.best[:-1] > 1e-9].sum())
    return max(1.0 - safe - known, 0.0), known, safe


class RoundArrays(NamedTuple):
    """What the diagnostics of a round's models read."""

    models: tuple[Model, ...]
    layout: Ints
    settings: Floats
    features: Floats  # (K, d)


def get_arrays(result: RoundResult) -> RoundArrays:
    """Return what the diagnostics of a decision's models read."""
    return RoundArrays(result.models, result.layout, result.settings, result.features)


def forecast_costs(arrays: RoundArrays, memory: Floats, action: int) -> list[UpperForecast | None]:
    """Return the forecast of each cost (m,) of an action; None: its model does not count pulls."""
    models, layout, settings, features = arrays
    forecasts: list[UpperForecast | None] = [None] * int(layout[LIMITS])
    for model, part in iter_model_blocks(models, layout, memory):
        for signal in range(part.signals):
            j = part.first + signal - 1
            if j >= 0:
                forecasts[j] = model.diagnostics.forecast(part, features, settings, memory, action, signal)
    return forecasts


def compute_pulls_needed(round_result: RoundResult, memory: Floats, arm: int, limits: Floats) -> float | None:
    """Return how many more pulls an arm needs until its costs are certified, if their means stay the same.

    None: a model does not count pulls. Infinite: an estimate is above its limit.
    """
    most = 0.0
    for j, forecast in enumerate(forecast_costs(get_arrays(round_result), memory, arm)):
        if forecast is None:
            return None
        count = max(forecast.pulls, 1.0)
        while count < MOST_PULLS and forecast.upper(count) > limits[j]:
            count *= STEP
        most = max(most, count - forecast.pulls if count < MOST_PULLS else math.inf)
    return most


def count_learned(round_result: RoundResult, memory: Floats, index: int) -> Floats | None:
    """Return the number of learned outcomes of each cost (m,) of a candidate.

    None: the model does not distinguish candidates.
    """
    counts = np.zeros(int(round_result.layout[LIMITS]))
    for model, part in iter_model_blocks(round_result.models, round_result.layout, memory):
        learned = model.diagnostics.count_learned(part, round_result.features, memory, index)
        if learned is None:
            return None
        if part.first > 0:
            counts[part.first - 1] = learned
    return counts


def estimate_plays_needed(view: DecisionAnalysis, counts: Floats, index: int) -> float:
    """Return about how many more plays a candidate needs; half-widths shrink with the root of the count."""
    gap, most = view.limits - view.fit[1:, index], 0.0
    for j in range(gap.size):
        if view.pessimistic_cost[j, index] <= view.limits[j]:
            continue
        if gap[j] <= 0.0:
            return math.inf
        excess: Any = (view.pessimistic_cost[j, index] - view.fit[1 + j, index]) / gap[j]
        most = max(most, max(float(counts[j]), 1.0) * (float(excess) ** 2 - 1.0))
    return most


LIMIT_TERMS = as_python(get_limit_terms)
RATIO, HALVINGS = 1.25, 6  # from one number of plays to the next, and how often the last interval is halved
MAX_CELLS = 12  # cells of an action that are forecast: those that are proposed most
WHOLE, ABOVE_LIMIT = "whole", "its estimate is beyond a limit"
NO_FORECAST, FORECAST = "no forecast for this model", "at the recent rate, with means as they are"


class Proposed(NamedTuple):
    """One recent decision on a proposal."""

    features: Floats  # (K, d)
    weights: Floats  # (K,) as proposed
    probabilities: Floats  # (K,) as played


class ProposalSummary(NamedTuple):
    """What became of one action in the recent proposals, and when it is played whole.

    Attributes:
        action: The name of the action.
        proposed: Its mean proposed probability in the recent decisions on a proposal.
        overlap: The share of it that was played.
        plays_until_whole: The outcomes that it needs until its pessimistic costs are within the limits, if its means
            stay as they are, over all cells in which it was proposed; None: see the note.
        decisions_until_whole: The decisions until then at the recent rate, in the slowest cell; None: see the note.
        note: What the numbers assume, or why there are none.
    """

    action: str
    proposed: float
    overlap: float
    plays_until_whole: float | None
    decisions_until_whole: float | None
    note: str


class Wait(NamedTuple):
    """The plays and the decisions until an action is certain in a cell, or in all of several cells."""

    plays: float
    decisions: float
    cells: int = 1
    beyond: int = 0  # cells in which its estimate is not below a limit

    @property
    def note(self) -> str:
        """What the numbers assume, or why there are none."""
        if not math.isinf(self.plays):
            return FORECAST
        return f"{ABOVE_LIMIT} in {self.beyond} of {self.cells} groups" if self.beyond < self.cells else ABOVE_LIMIT


NEVER = Wait(math.inf, math.inf, beyond=1)


def forecast_wait(costs: Sequence[UpperForecast], limits: Floats, safe_costs: Floats) -> Wait:
    """Return the plays until all upper ends U are within the limits, and the decisions, were it always proposed.

        decisions = Σ_n max(1, max_j (U_j(n) − c₀_j) / (τ_j − c₀_j))        over the plays (docs/theory/guard.md)

    Infinite: a mean is not below its limit.
    """
    if any(cost.mean >= limit for cost, limit in zip(costs, limits.tolist(), strict=True)):
        return NEVER

    def wait(more: float) -> float:
        """Return the expected decisions until the next play; 1: the action is whole."""
        rises = (
            (cost.upper(cost.pulls + more) - safe) / (limit - safe)
            for cost, limit, safe in zip(costs, limits.tolist(), safe_costs.tolist(), strict=True)
        )
        return float(max(1.0, *rises))

    plays, decisions, start = 0.0, 0.0, max(min(cost.pulls for cost in costs), 4.0)
    while wait(plays) > 1.0:
        step = (RATIO - 1.0) * (start + plays)
        if plays > MOST_PULLS:
            return NEVER
        for _ in range(HALVINGS):
            if wait(plays + step) > 1.0:
                break
            step /= 2.0
        decisions += step * wait(plays + 0.5 * step)
        plays += step
        if step < 1.0:
            break
    return Wait(plays, decisions)


def summarize_proposals(
    policy: Any, memory: Floats, proposed: Iterable[Proposed], decisions: int
) -> tuple[ProposalSummary, ...]:
    """Return what became of each proposed action in recent decisions; `decisions` is the number of all of them."""
    rows = list(proposed)
    if not rows:
        return ()
    safe = int(policy.layout[SAFE_INDEX])
    weights, played = (np.array([row[at] for row in rows]) for at in (1, 2))
    summaries = []
    for action in np.flatnonzero(weights.any(axis=0)).tolist():
        if action == safe:
            continue
        kept = np.minimum(weights[:, action], played[:, action]).sum() / weights[:, action].sum()
        asked = [(row, float(weight)) for row, weight in zip(rows, weights[:, action], strict=True) if weight > 0.0]
        wait = forecast_action(policy, memory, action, asked, decisions)
        note = NO_FORECAST if wait is None else wait.note
        note = WHOLE if kept >= 1.0 - ROUNDING or (wait is not None and wait.plays == 0.0) else note
        wait = Wait(0.0, 0.0) if note == WHOLE else wait
        plays, rounds = (None if math.isinf(one) else math.ceil(one) for one in (wait or NEVER)[:2])
        name = str(policy.names[action])
        summaries.append(ProposalSummary(name, float(weights[:, action].mean()), float(kept), plays, rounds, note))
    return tuple(summaries)


def forecast_action(
    policy: Any, memory: Floats, action: int, asked: Sequence[tuple[Proposed, float]], decisions: int
) -> Wait | None:
    """Return the plays until an action is whole in the cells of these decisions, and the decisions until the last is.

    None: a model does not count plays.
    """
    layout, settings, declared = policy.layout, policy.settings, np.array(policy.declared_costs)
    limits, cells = LIMIT_TERMS(layout, settings).limits, dict[tuple[int, ...], tuple[float, Proposed]]()
    for row, weight in asked:
        costs = forecast_costs(RoundArrays(policy.rounds.spec.models, layout, settings, row.features), memory, action)
        if any(cost is None for cost in costs):
            return None
        key = tuple(cost.cell for cost in costs if cost is not None)
        cells[key] = cells.get(key, (0.0, row))[0] + weight, row
    plays, rounds, beyond = 0.0, 0.0, 0
    chosen = sorted(cells.values(), key=lambda one: -one[0])[:MAX_CELLS]
    for weight, row in chosen:
        arrays = RoundArrays(policy.rounds.spec.models, layout, settings, row.features)
        costs, safe = (forecast_costs(arrays, memory, at) for at in (action, int(layout[SAFE_INDEX])))
        ends = [math.inf if one is None else one.upper(one.pulls) for one in safe]
        safe_costs = np.minimum(declared, ends)
        if not (safe_costs < limits).all():
            return NEVER
        wait = forecast_wait([cost for cost in costs if cost is not None], limits, safe_costs)
        plays, rounds = plays + wait.plays, max(rounds, wait.decisions * decisions / weight)
        beyond += math.isinf(wait.plays)
    return Wait(plays, rounds, len(chosen), beyond)
