"""Rounds of many users by one memory, without coming back to Python in between: each as if it came alone."""

from collections.abc import Callable

from stagewise.kernels.answer import FIRST_COST, HOPE, fill_odds_of, written_in
from stagewise.kernels.bounds import FIT, workspace_in
from stagewise.kernels.compile import Flags, Floats, Ints, factory, kernel
from stagewise.kernels.layout import LIMITS
from stagewise.kernels.loop.round import Form, round_for
from stagewise.kernels.ranges import fill_scaled
from stagewise.kernels.rules.mixture import mean_of

OUTSIDE = -(2**31)  # the code of a user of whom a number lies outside its range: nothing is decided


@factory
def users_for(form: Form) -> Callable[..., None]:
    """Return what decides for many users, by the same arithmetic as for one at a time."""
    decide = round_for(form).decide

    @kernel
    def decide_users(
        values: Floats, ends: Floats, segments: Floats, draws: Ints, features: Floats, eligible: Flags, layout: Ints,
        settings: Floats, memory: Floats, codes: Ints, promises: Floats, estimates: Floats, odds: Floats,
        answer: Floats, numbers: Floats, scratch: Floats,
    ) -> None:  # fmt: skip
        """Write for each user the code of what is played, its bounds and estimates (1 + m,), and the odds (K + 1,).

        A user is numbers in their ranges (c, 2), segments, and three numbers to draw by. `features` (K, D) are the rows
        of all actions, in which the places after the first two are written anew for everybody.
        """
        area = workspace_in(layout, features.shape[0], scratch)
        written = written_in(layout, answer)
        for user in range(codes.size):
            codes[user] = OUTSIDE
            if fill_scaled(values[user], ends, numbers) < 0:
                for action in range(features.shape[0]):
                    for i in range(numbers.size):
                        features[action, 2 + i] = numbers[i]
                    for i in range(segments.shape[1]):
                        features[action, 2 + numbers.size + i] = segments[user, i]
                codes[user] = decide(
                    features, eligible, layout, settings, memory, answer, scratch, int(draws[user, 0]),
                    int(draws[user, 1]), int(draws[user, 2]),
                )  # fmt: skip
                promises[user, 0] = answer[HOPE]
                for j in range(layout[LIMITS]):
                    promises[user, 1 + j] = answer[FIRST_COST + j]
                for signal in range(1 + layout[LIMITS]):
                    estimates[user, signal] = mean_of(area.bounds[signal, FIT], written.shares, written.places)
                fill_odds_of(layout, answer, odds[user])

    return decide_users
