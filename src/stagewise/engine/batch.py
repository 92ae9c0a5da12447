"""Learn the rows of a log in compiled code.

Check numeric context values against their ranges and scale them to [−1, 1], in one pass.

Decide for many users with one memory, in compiled code; each decision equals that of a single call.
"""

from collections.abc import Callable

from stagewise.engine.compile import Flags, Floats, Ints, factory, kernel
from stagewise.engine.layout import LIMITS
from stagewise.engine.mixture_program import compute_mixture_mean
from stagewise.engine.model import RoundSpec
from stagewise.engine.round import build_round
from stagewise.engine.workspace import (
    ESTIMATE,
    FIRST_COST,
    OPTIMISTIC_REWARD,
    WEIGHTS,
    compute_weighted_mean,
    fill_dense_probabilities,
    fill_probabilities,
    get_decision_views,
    get_workspace,
)


@factory
def build_log_learner(round_spec: RoundSpec) -> Callable[..., None]:
    """Return a kernel that learns the rows of a log with the same arithmetic as one outcome at a time."""
    learn = build_round(round_spec).learn

    @kernel
    def learn_rows(
        features: Floats, indices: Ints, values: Floats, layout: Ints, settings: Floats, memory: Floats, work: Floats
    ) -> None:
        """Learn the rewards and costs (n, 1 + m) of actions (n, d), or of arms given by their indices (n,)."""
        for row in range(values.shape[0]):
            learn(features[row], indices[row], 1.0, values[row], layout, settings, memory, work)

    return learn_rows


@kernel
def scale_to_range(values: Floats, ends: Floats, scaled: Floats) -> int:
    """Write each value scaled from its range (n, 2) to [−1, 1]; return the first index that is out of range, or −1.

    scaled = (2 value − (low + high)) / (high − low)        NaN is out of range
    """
    for i in range(values.size):
        low, high, value = ends[i, 0], ends[i, 1], values[i]
        if not low <= value <= high:
            return i
        position = (2.0 * value - (low + high)) / (high - low)
        scaled[i] = min(max(position, -1.0), 1.0)  # rounding may exceed the ends
    return -1


@factory
def build_batch_decider(round_spec: RoundSpec) -> Callable[..., None]:
    """Return a kernel that decides for many users with the same arithmetic as for one at a time."""
    decide, dense, given = build_round(round_spec).decide, int(round_spec.rule.dense), int(round_spec.rule.given)

    @kernel
    def decide_users(
        numbers: Floats, segments: Floats, per_action: Floats, draws: Ints, features: Floats, eligible: Flags,
        layout: Ints, settings: Floats, memory: Floats, codes: Ints, decision_bounds: Floats, estimates: Floats,
        probabilities: Floats, answer: Floats, scratch: Floats,
    ) -> None:  # fmt: skip
        """Write for each user the action's code, its bounds and estimates (1 + m,), and the probabilities (K + 1,).

        A user is scaled numbers (c,), segments, three integers that determine its draws and, where the rule takes
        them, numbers of the caller for every action (K,). `features` (K, D) are the rows of all actions; the columns
        after the first two are overwritten for every user.
        """
        workspace = get_workspace(layout, features.shape[0], scratch)
        views, first_segment = get_decision_views(layout, answer), 2 + numbers.shape[1]
        for user in range(codes.size):
            for action in range(features.shape[0]):
                for i in range(numbers.shape[1]):
                    features[action, 2 + i] = numbers[user, i]
                for i in range(segments.shape[1]):
                    features[action, first_segment + i] = segments[user, i]
                if given:
                    features[action, features.shape[1] - 1] = per_action[user, action]
            codes[user] = decide(
                features, eligible, layout, settings, memory, answer, scratch, int(draws[user, 0]),
                int(draws[user, 1]), int(draws[user, 2]),
            )  # fmt: skip
            decision_bounds[user, 0] = answer[OPTIMISTIC_REWARD]
            for j in range(layout[LIMITS]):
                decision_bounds[user, 1 + j] = answer[FIRST_COST + j]
            for signal in range(1 + layout[LIMITS]):
                if dense:
                    estimates[user, signal] = compute_weighted_mean(
                        workspace.bounds[signal, ESTIMATE], workspace.rule[WEIGHTS]
                    )
                else:
                    estimates[user, signal] = compute_mixture_mean(
                        workspace.bounds[signal, ESTIMATE], views.shares, views.places
                    )
            if dense:
                fill_dense_probabilities(layout, workspace.rule[WEIGHTS], probabilities[user])
            else:
                fill_probabilities(layout, answer, probabilities[user])

    return decide_users
