"""Decisions that sample from a mixture, and their explanations."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import CERTIFIED, LIMITS, SAFE_INDEX, SWITCHES
from stagewise.engine.limits import NO_BETTER_ACTION, SAFE_ACTION_DRAWN
from stagewise.engine.mixture_program import compute_mixture_mean
from stagewise.engine.workspace import (
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    UNCACHED,
    fill_probabilities,
    get_decision_views,
    get_pessimistic_cost_rows,
    get_pessimistic_costs,
)
from stagewise.policies.compiled_policy import NEW, RoundResult
from stagewise.policies.leading_actions import count_hidden, select_leading
from stagewise.policies.sampled_choice import SampledMixture, get_sampled_mixture
from stagewise.policies.settings import CAUSES
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Estimates, Row, Table

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
OPTIMISTIC = "sampled from the optimistic mixture; the regret of the posterior-sampling mixture is not certified"

UNIT = 0.0, 1.0  # the range of a reward that is not rescaled
GET_DECISION_VIEWS, GET_COSTS, GET_COST_ROWS, MIXTURE_MEAN = (
    as_python(get_decision_views),
    as_python(get_pessimistic_costs),
    as_python(get_pessimistic_cost_rows),
    as_python(compute_mixture_mean),
)


class BoundedMixture(NamedTuple):
    """A safe mixture with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    optimistic_reward: float
    pessimistic_cost: Floats  # (m,) signed
    solver_gap: float


class MixtureBasis(NamedTuple):
    """The data of the explanation of a decision that is sampled from a mixture."""

    result: RoundResult
    played: BoundedMixture
    solved: bool  # the mixture is in the kernel's answer
    thresholds: Thresholds
    why: str | None  # how it was chosen, where the layout does not determine it
    names: Sequence[str] | None
    span: tuple[float, float]

    def __call__(self) -> Table:
        """Return the leading actions and the safe one with their estimates and bounds."""
        return build_mixture_table(self)

    def estimates(self) -> Estimates:
        """Return the estimates of the mixture: of each action, by its probability."""
        result, (low, length) = self.result, self.span
        if self.solved:
            written = GET_DECISION_VIEWS(result.layout, result.answer)
            means = [MIXTURE_MEAN(row, written.shares, written.places) for row in result.estimates]
        else:
            weights = self.weights
            means = [float(weights[weights > 0.0] @ row[weights > 0.0]) for row in result.estimates]
        return Estimates(float(low + length * means[0]), self.thresholds.to_user_units(np.array(means[1:])))

    @property
    def weights(self) -> Floats:
        """The probabilities (K + 1,), the safe action's last."""
        weights, safe_index = self.played.probabilities.copy(), int(self.result.layout[SAFE_INDEX])
        if safe_index >= 0:
            weights[-1], weights[safe_index] = weights[-1] + weights[safe_index], 0.0
        return weights


def read_mixture(result: RoundResult) -> BoundedMixture:
    """Return the mixture of a kernel's answer."""
    answer, layout, odds = result.answer, result.layout, np.empty(len(result.features) + 1)
    fill_probabilities(layout, answer, odds)
    return NEW(BoundedMixture, (odds, answer.item(OPTIMISTIC_REWARD), GET_COSTS(answer, layout.item(LIMITS)), 0.0))


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
    span: tuple[float, float] = UNIT,
) -> Decision:
    """Return the decision of a kernel's answer, for this mixture or for its own.

    `span` is the low end and the length of the reward's range, in the user's units.
    """
    played, code, safe_index = (
        read_mixture(result) if blend is None else blend,
        result.code,
        result.layout.item(SAFE_INDEX),
    )
    features = result.features if result.features.shape[1] else None
    index, cause = (
        (int(code), None) if code >= 0 else (safe_index, None if code == -SAFE_ACTION_DRAWN else CAUSES.get(-code))
    )
    odds, pessimistic_cost, values = (
        played.probabilities,
        thresholds.to_user_units(played.pessimistic_cost),
        thresholds.values,
    )
    optimistic_reward, gap = span[0] + span[1] * played.optimistic_reward, span[1] * played.solver_gap
    fields = (action, index, 1.0, odds, optimistic_reward, pessimistic_cost, values, cause, round_, gap)
    decision = NEW(kind, fields)
    decision._table = NEW(MixtureBasis, (result, played, blend is None, thresholds, why, names, span))
    decision._offered = features
    if features is not None and result.answer.item(UNCACHED) != 0.0:
        decision._uncached = True
    return decision


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


def build_mixture_table(basis: MixtureBasis) -> Table:
    """Return the leading actions and the safe one with their estimates and bounds."""
    result, played, _, thresholds, why, names, (low, length) = basis
    area, code, safe_index, probabilities = (
        result.workspace,
        result.code,
        int(result.layout[SAFE_INDEX]),
        played.probabilities,
    )
    optimistic_reward, signs, count = (
        low + length * area.rule[OPTIMISTIC_REWARDS],
        thresholds.signs,
        len(result.features),
    )
    pessimistic_cost, costs = convert_costs(thresholds, GET_COST_ROWS(result.layout, area.rule)), result.estimates[1:]
    rewards, means = low + length * result.estimates[0], convert_costs(thresholds, costs)
    certified = why is None and bool(int(result.layout[SWITCHES]) & CERTIFIED)
    sample = get_sampled_mixture(result) if certified else None
    first = select_leading(optimistic_reward[:-1], result.eligible, code)
    mixed: list[int] = [i for i in range(count) if probabilities[i] > 0.0 and i != safe_index]
    rows_shown = [*mixed, *(i for i in first if i not in mixed and optimistic_reward[i] > -np.inf)][
        : max(5, len(mixed))
    ]
    word = "action" if safe_index < 0 or result.features.shape[1] else "arm"
    labels = [f"{word} {i}" for i in rows_shown] if names is None else [names[i] for i in rows_shown]

    def row(label: str, index: int, probability: float, is_played: bool) -> Row:
        estimates = float(rewards[index]), tuple(means[index]), *get_sampled_reward(sample, index, low, length)
        return Row(
            label,
            float(optimistic_reward[index]),
            tuple(pessimistic_cost[index]),
            float(probability),
            is_played,
            *estimates,
        )

    rows = [row(name, i, probabilities[i], i == code) for i, name in zip(rows_shown, labels, strict=True)]
    safe = "safe action" if names is None else f"{names[safe_index]} (safe)"
    rows.append(row(safe, -1, probabilities[safe_index], code < 0))
    if sum(each.weight > 0.0 for each in rows) > 1:
        rows.append(build_mixture_row(basis, optimistic_reward, sample))
    hidden = max(count_hidden(count, result.eligible, len(rows_shown)) - int(safe_index >= 0), 0)
    reason = why or (describe_certificate(sample) if certified else PESSIMISTIC_COSTS)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "probability", tuple(rows), hidden, reason)


def describe_certificate(sample: SampledMixture | None) -> str:
    """Return the sentence for the mixture of a certified choice."""
    if sample is None:
        return CERTIFIED_SAMPLE
    if not sample.is_played:
        return OPTIMISTIC
    return HIGHEST_SAMPLED if sample.scores is None else HIGHEST_SCORE


def convert_costs(thresholds: Thresholds, costs: Floats) -> Floats:
    """Return signed costs (m, K + 1) of every action in the user's own units (K + 1, m)."""
    return np.array([thresholds.to_user_units(column) for column in costs.T])


def get_sampled_reward(
    sample: SampledMixture | None, index: int, low: float, length: float
) -> tuple[float | None, float | None]:
    """Return the sampled reward of an action, and its score where it differs."""
    if sample is None:
        return None, None
    reward = low + length * float(sample.rewards[index])
    return reward, None if sample.scores is None else low + length * float(sample.scores[index])


def build_mixture_row(basis: MixtureBasis, optimistic_reward: Floats, sample: SampledMixture | None) -> Row:
    """Return the row of the mixture: the expected values of a sample."""
    weights, (low, length), means = basis.weights, basis.span, basis.estimates()
    some = weights > 0.0

    def mean(values: Floats) -> float:
        return float(weights[some] @ values[some])

    drawn_reward = None if sample is None else low + length * mean(sample.rewards)
    score = None if sample is None or sample.scores is None else low + length * mean(sample.scores)
    pessimistic_cost = tuple(basis.thresholds.to_user_units(basis.played.pessimistic_cost).tolist())
    estimates = means.reward, tuple(means.costs.tolist()), drawn_reward, score
    return Row("mixture", mean(optimistic_reward), pessimistic_cost, float(weights.sum()), False, *estimates)
