"""The answer of a decision as one flat array.

Layout: step, optimistic reward, optimistic reward of the safe action, uncached flag | pessimistic costs (m,) |
shares (m + 2,) | candidate indices (m + 2,) | action (d,). Index −1 is the safe action.
"""

from typing import NamedTuple

from stagewise.kernels.compile import INDEX_TYPE, Floats, Ints, kernel
from stagewise.kernels.layout import FEATURES, LIMITS, SAFE_INDEX

STEP, OPTIMISTIC_REWARD, SAFE_OPTIMISTIC_REWARD, UNCACHED, FIRST_COST = 0, 1, 2, 3, 4


@kernel
def answer_size(m: int, d: int) -> int:
    """Return the length of an answer."""
    return FIRST_COST + m + 2 * (m + 2) + d


@kernel
def get_pessimistic_costs(answer: Floats, m: int) -> Floats:
    """Return the pessimistic costs (m,)."""
    return answer[FIRST_COST : FIRST_COST + m]


@kernel
def get_action(answer: Floats, d: int) -> Floats:
    """Return the action that is played (d,)."""
    return answer[answer.size - d :]


class DecisionViews(NamedTuple):
    """The array parts of an answer, as views of it."""

    shares: Floats  # (m + 2,) probabilities of the mixture
    places: Ints  # (m + 2,) index of the candidate that each share belongs to
    action: Floats  # (d,) the action that is played


@kernel
def get_decision_views(layout: Ints, answer: Floats) -> DecisionViews:
    """Return the mixture and the action in an answer, as views of it."""
    m = layout[LIMITS]
    shares, indices = FIRST_COST + m, FIRST_COST + 2 * m + 2
    return DecisionViews(
        answer[shares:indices],
        answer[indices : indices + m + 2].view(INDEX_TYPE),
        answer[answer.size - layout[FEATURES] :],
    )


@kernel
def fill_probabilities(layout: Ints, answer: Floats, probabilities: Floats) -> None:
    """Write the probability of every candidate; last, that of a safe action that is not listed."""
    views, safe_index, last = get_decision_views(layout, answer), layout[SAFE_INDEX], probabilities.size - 1
    for i in range(probabilities.size):
        probabilities[i] = 0.0
    for k in range(views.shares.size):
        index = views.places[k]
        if index < 0:
            index = safe_index if safe_index >= 0 else last
        probabilities[index] += views.shares[k]
