"""Outcome totals of a contextual policy, over all users."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import State


class Totals(NamedTuple):
    """The number and the sum of learned outcomes by signal and action (1 + m, K), scaled to [0, 1]."""

    pulls: Floats
    sums: Floats

    def since(self, earlier: "Totals") -> "Totals":
        """Return the totals since an earlier moment."""
        return Totals(self.pulls - earlier.pulls, self.sums - earlier.sums)


def compute_totals(policy: ContextCAPS, state: State) -> Totals:
    """Return the totals of every action.

    >>> import stagewise as sw
    >>> policy = ContextCAPS(actions=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1, reward_model="rates")
    >>> decision = policy.decide(policy.start(), None)
    >>> compute_totals(policy, policy.learn(policy.start(), decision, sw.Outcome(1.0, 0.0))).sums.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    signs = np.append(1.0, policy.thresholds.signs)
    pulls, sums = np.zeros((2, signs.size, policy.actions))
    memory = policy.check_state(state).memory
    for model, block in policy.iter_blocks(memory):
        model.diagnostics.fill_totals(block, policy.settings, memory, pulls[block.first], sums[block.first])
    return Totals(pulls, sums * signs[:, np.newaxis])
