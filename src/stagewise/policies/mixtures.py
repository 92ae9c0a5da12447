"""From a kernel's mixture to a Decision, and to the table a person reads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import HOPE, UNFOLLOWED, costs_in, fill_odds_of, written_in
from stagewise.kernels.bounds import HOPED, dearest_in
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import CERTIFIED, HOME, LIMITS, SWITCHES
from stagewise.kernels.promise import DRAWN, PREFERRED
from stagewise.kernels.rules.mixture import mean_of
from stagewise.policies.certified_choice import SampledMixture, sampled_mixture
from stagewise.policies.compiled import NEW, Chosen
from stagewise.policies.settings import CAUSES
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Estimates, Row, Table

SAFEST = "sampled from the mixture with the highest optimistic reward whose pessimistic costs are within the limits"
DARING = (
    "sampled from the mixture with the highest optimistic reward whose optimistic costs are, which may break a limit"
)
PROPOSED = "sampled from the proposed mixture if its regret is certified, otherwise from the optimistic mixture"
CERTIFIED_SAMPLE = "sampled from the posterior-sampling mixture, whose regret is certified"
HIGHEST_SAMPLED = (
    "sampled from the posterior-sampling mixture (highest sampled reward within the limits, certified regret)"
)
HIGHEST_SCORE = "sampled from the posterior-sampling mixture (highest score within the limits, certified regret)"
OPTIMISTIC = "sampled from the optimistic mixture; the regret of the posterior-sampling mixture is not certified"

UNIT = 0.0, 1.0  # the span of a reward that is shown as it is learned
WRITTEN_IN, COSTS_IN, DEAREST_IN, MEAN_OF = named(written_in), named(costs_in), named(dearest_in), named(mean_of)


class Blend(NamedTuple):
    """A mixture that is safe, with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float
    dearest: Floats  # (m,) signed
    gap: float


class MixtureBasis(NamedTuple):
    """What a decision that was sampled from a mixture is explained by."""

    seen: Chosen
    played: Blend
    solved: bool  # the mixture stands in the kernel's answer
    thresholds: Thresholds
    why: str | None  # how it was chosen, where the layout does not say
    names: Sequence[str] | None
    span: tuple[float, float]

    def __call__(self) -> Table:
        """Return the leading actions and the safe one with their estimates and bounds."""
        return table(self)

    def estimates(self) -> Estimates:
        """Return the estimates of the mixture: of each action, by its probability."""
        seen, (low, length) = self.seen, self.span
        if self.solved:
            written = WRITTEN_IN(seen.layout, seen.answer)
            means = [MEAN_OF(row, written.shares, written.places) for row in seen.estimates]
        else:
            weights = self.weights
            means = [float(weights[weights > 0.0] @ row[weights > 0.0]) for row in seen.estimates]
        return Estimates(float(low + length * means[0]), self.thresholds.in_units(np.array(means[1:])))

    @property
    def weights(self) -> Floats:
        """The probabilities (K + 1,), the safe action's last."""
        weights, home = self.played.probabilities.copy(), int(self.seen.layout[HOME])
        if home >= 0:
            weights[-1], weights[home] = weights[-1] + weights[home], 0.0
        return weights


def solved_blend(seen: Chosen) -> Blend:
    """Return the mixture that stands in a kernel's answer."""
    answer, layout, odds = seen.answer, seen.layout, np.empty(len(seen.features) + 1)
    fill_odds_of(layout, answer, odds)
    return NEW(Blend, (odds, answer.item(HOPE), COSTS_IN(answer, layout.item(LIMITS)), 0.0))


def decision_from(
    seen: Chosen,
    action: Any,
    thresholds: Thresholds,
    round_: int,
    *,
    blend: Blend | None = None,
    why: str | None = None,
    names: Sequence[str] | None = None,
    kind: type[Decision] = Decision,
    span: tuple[float, float] = UNIT,
) -> Decision:
    """Return the decision that a kernel's answer stands for: of this mixture, or of its own.

    `span` is where the reward's range begins in the user's units, and its length.
    """
    played, code, home = solved_blend(seen) if blend is None else blend, seen.code, seen.layout.item(HOME)
    features = seen.features if seen.features.shape[1] else None
    index, cause = (int(code), None) if code >= 0 else (home, None if code == -DRAWN else CAUSES.get(-code))
    odds, dearest, values = played.probabilities, thresholds.in_units(played.dearest), thresholds.values
    hoped, gap = span[0] + span[1] * played.hoped, span[1] * played.gap
    told = (action, index, 1.0, odds, hoped, dearest, values, cause, round_, gap)
    decision = NEW(kind, told)
    decision._table = NEW(MixtureBasis, (seen, played, blend is None, thresholds, why, names, span))
    decision._offered = features
    if features is not None and seen.answer.item(UNFOLLOWED) != 0.0:
        decision._unfollowed = True
    return decision


def drawn(probabilities: Floats, lottery: float) -> int:
    """Return what a uniform number in (0, 1) picks from a mixture (K + 1,), as a kernel's code would say it.

    >>> drawn(np.array([0.25, 0.75, 0.0]), 0.3), drawn(np.array([0.25, 0.5, 0.25]), 0.9) == -DRAWN
    (1, True)
    """
    possible, safe = np.flatnonzero(probabilities), probabilities.size - 1
    if probabilities[safe] == 1.0:
        return -PREFERRED
    passed = np.searchsorted(np.cumsum(probabilities[possible]), lottery, side="right")
    index = int(possible[min(int(passed), possible.size - 1)])
    return index if index < safe else -DRAWN


def table(basis: MixtureBasis) -> Table:
    """Return the leading actions and the safe one with their estimates and bounds."""
    seen, played, _, thresholds, why, names, (low, length) = basis
    area, code, home, probabilities = seen.workspace, seen.code, int(seen.layout[HOME]), played.probabilities
    hoped, signs, count = low + length * area.rule[HOPED], thresholds.signs, len(seen.features)
    dearest, costs = in_user_units(thresholds, DEAREST_IN(seen.layout, area.rule)), seen.estimates[1:]
    rewards, means = low + length * seen.estimates[0], in_user_units(thresholds, costs)
    certified = why is None and bool(int(seen.layout[SWITCHES]) & CERTIFIED)
    sample = sampled_mixture(seen) if certified else None
    first = leading(hoped[:-1], seen.eligible, code)
    mixed: list[int] = [i for i in range(count) if probabilities[i] > 0.0 and i != home]
    shown = [*mixed, *(i for i in first if i not in mixed and hoped[i] > -np.inf)][: max(5, len(mixed))]
    word = "action" if home < 0 or seen.features.shape[1] else "arm"
    called = [f"{word} {i}" for i in shown] if names is None else [names[i] for i in shown]

    def row(label: str, place: int, probability: float, is_played: bool) -> Row:
        known = float(rewards[place]), tuple(means[place]), *drawn_of(sample, place, low, length)
        return Row(label, float(hoped[place]), tuple(dearest[place]), float(probability), is_played, *known)

    rows = [row(name, i, probabilities[i], i == code) for i, name in zip(shown, called, strict=True)]
    safe = "safe action" if names is None else f"{names[home]} (safe)"
    rows.append(row(safe, -1, probabilities[home], code < 0))
    if sum(one.weight > 0.0 for one in rows) > 1:
        rows.append(mixture_row(basis, hoped, sample))
    hidden = max(hidden_count(count, seen.eligible, len(shown)) - int(home >= 0), 0)
    told = why or (how_certified(sample) if certified else SAFEST)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "probability", tuple(rows), hidden, told)


def how_certified(sample: SampledMixture | None) -> str:
    """Return which mixture a certified choice plays."""
    if sample is None:
        return CERTIFIED_SAMPLE
    if not sample.is_played:
        return OPTIMISTIC
    return HIGHEST_SAMPLED if sample.scores is None else HIGHEST_SCORE


def in_user_units(thresholds: Thresholds, costs: Floats) -> Floats:
    """Return signed costs (m, K + 1) of every action in the user's own units (K + 1, m)."""
    return np.array([thresholds.in_units(column) for column in costs.T])


def drawn_of(sample: SampledMixture | None, place: int, low: float, length: float) -> tuple[float | None, float | None]:
    """Return the sampled reward of an action, and its score where that is another number."""
    if sample is None:
        return None, None
    reward = low + length * float(sample.rewards[place])
    return reward, None if sample.scores is None else low + length * float(sample.scores[place])


def mixture_row(basis: MixtureBasis, hoped: Floats, sample: SampledMixture | None) -> Row:
    """Return the row of the mixture as a whole: what is expected of a draw from it."""
    weights, (low, length), found = basis.weights, basis.span, basis.estimates()
    some = weights > 0.0

    def mean(values: Floats) -> float:
        return float(weights[some] @ values[some])

    drawn_reward = None if sample is None else low + length * mean(sample.rewards)
    score = None if sample is None or sample.scores is None else low + length * mean(sample.scores)
    dearest = tuple(basis.thresholds.in_units(basis.played.dearest).tolist())
    known = found.reward, tuple(found.costs.tolist()), drawn_reward, score
    return Row("mixture", mean(hoped), dearest, float(weights.sum()), False, *known)
