"""A run of a policy's own round against a known truth: how far the true expected cost went over a threshold."""

import math
from collections.abc import Callable
from functools import cache

from stagewise.engine.compile import Flags, Floats, Ints, kernel
from stagewise.engine.mixture_program import compute_mixture_mean
from stagewise.engine.model import RoundSpec
from stagewise.engine.random import OUTCOME, normal, uniform
from stagewise.engine.round import build_round
from stagewise.engine.workspace import STEP, get_decision_views
from stagewise.models.arms import ARMS


@cache
def build_loop(form: RoundSpec) -> Callable[..., tuple[float, int]]:
    """Return the loop for one form of round."""
    decide, learn = build_round(form).decide, build_round(form).learn
    mixes, arms = int(form.mixes), int(form.models[0] == ARMS)

    @kernel
    def play(
        features: Floats, everything: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, work: Floats, means: Floats, values: Floats, parameters: Floats, truths: Floats,
        noise: Floats, thresholds: Floats, seed: int, run: int, rounds: int,
    ) -> tuple[float, int]:  # fmt: skip
        """Return the largest excess, and in how many rounds something else than the safe action was dared.

        What counts is the cost of the point played on rays, and the expected cost of a mixture. Arms are coins, linear
        signals have Gaussian noise.
        """
        written, last, excess, dared = get_decision_views(layout, answer), truths.shape[1] - 1, -math.inf, 0
        action, shares, indices = written.action, written.shares, written.places
        for t in range(rounds):
            code = decide(features, everything, layout, settings, memory, answer, scratch, seed, run, t)
            dared += code >= 0
            for signal in range(values.size):
                stream, position = OUTCOME, signal
                if arms:
                    means[signal] = truths[signal, code if code >= 0 else last]
                    values[signal] = 1.0 if uniform(seed, run, t, stream, position) < means[signal] else 0.0
                else:
                    means[signal] = 0.0
                    for i in range(action.size):
                        means[signal] += parameters[signal, i] * action[i]
                    values[signal] = means[signal] + noise[signal] * normal(seed, run, t, stream, position)
            for j in range(thresholds.size):
                cost = compute_mixture_mean(truths[1 + j], shares, indices) if mixes else means[1 + j]
                excess = max(excess, cost - thresholds[j])
            learn(action, max(code, -1), answer[STEP], values, layout, settings, memory, work)
        return excess, dared

    return play
