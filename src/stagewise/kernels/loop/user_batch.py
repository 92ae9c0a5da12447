"""Decide for many users with one memory, in compiled code; each decision equals that of a single call."""

from collections.abc import Callable

from stagewise.kernels.answer import FIRST_COST, OPTIMISTIC_REWARD, fill_probabilities, get_decision_views
from stagewise.kernels.bounds import ESTIMATE, get_workspace
from stagewise.kernels.compile import Flags, Floats, Ints, factory, kernel
from stagewise.kernels.layout import LIMITS
from stagewise.kernels.loop.round import RoundSpec, build_round
from stagewise.kernels.rules.mixture import compute_mixture_mean


@factory
def build_batch_decider(round_spec: RoundSpec) -> Callable[..., None]:
    """Return a kernel that decides for many users with the same arithmetic as for one at a time."""
    decide = build_round(round_spec).decide

    @kernel
    def decide_users(
        numbers: Floats, segments: Floats, draws: Ints, features: Floats, eligible: Flags, layout: Ints,
        settings: Floats, memory: Floats, codes: Ints, decision_bounds: Floats, estimates: Floats,
        probabilities: Floats, answer: Floats, scratch: Floats,
    ) -> None:  # fmt: skip
        """Write for each user the action's code, its bounds and estimates (1 + m,), and the probabilities (K + 1,).

        A user is scaled numbers (c,), segments, and three integers that determine its draws. `features` (K, D) are the
        rows of all actions; the columns after the first two are overwritten for every user.
        """
        workspace = get_workspace(layout, features.shape[0], scratch)
        views, first_segment = get_decision_views(layout, answer), 2 + numbers.shape[1]
        for user in range(codes.size):
            for action in range(features.shape[0]):
                for i in range(numbers.shape[1]):
                    features[action, 2 + i] = numbers[user, i]
                for i in range(segments.shape[1]):
                    features[action, first_segment + i] = segments[user, i]
            codes[user] = decide(
                features, eligible, layout, settings, memory, answer, scratch, int(draws[user, 0]),
                int(draws[user, 1]), int(draws[user, 2]),
            )  # fmt: skip
            decision_bounds[user, 0] = answer[OPTIMISTIC_REWARD]
            for j in range(layout[LIMITS]):
                decision_bounds[user, 1 + j] = answer[FIRST_COST + j]
            for signal in range(1 + layout[LIMITS]):
                estimates[user, signal] = compute_mixture_mean(
                    workspace.bounds[signal, ESTIMATE], views.shares, views.places
                )
            fill_probabilities(layout, answer, probabilities[user])

    return decide_users
