"""What a policy over actions in a context has seen, all users together."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.loop.totals import fill_totals
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import State


class Totals(NamedTuple):
    """Of every signal and action (1 + m, K): how many outcomes were learned, and their sum, each scaled to [0, 1]."""

    pulls: Floats
    sums: Floats

    def since(self, earlier: "Totals") -> "Totals":
        """Return what came after an earlier moment."""
        return Totals(self.pulls - earlier.pulls, self.sums - earlier.sums)


def totals_of(policy: ContextCAPS, state: State) -> Totals:
    """Return what was seen of every action.

    >>> import stagewise as sw
    >>> policy = ContextCAPS(actions=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1, reward_model="rates")
    >>> decision = policy.decide(policy.start(), None)
    >>> totals_of(policy, policy.learn(policy.start(), decision, sw.Outcome(1.0, 0.0))).sums.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    signs = np.append(1.0, policy.thresholds.signs)
    pulls, sums = np.zeros((2, signs.size, policy.actions))
    fill_totals(policy.layout, policy.settings, policy.own(state).memory, pulls, sums)
    return Totals(pulls, sums * signs[:, np.newaxis])
