"""One run of any policy in a world, round by round, as a person would do it by hand."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.policy import Policy
from stagewise.records.draw import Draw
from stagewise.worlds.linear import LinearWorld


class Run(NamedTuple):
    """The true expected values of every round's action."""

    reward: Floats  # (T,)
    cost: Floats  # (T, m)


def one_run(policy: Policy, world: LinearWorld, rounds: int, seed: int, run: int) -> Run:
    """Play `rounds` rounds; the world's noise and the policy's draws are functions of seed, run and round."""
    means = np.empty((rounds, len(world.parameters)))
    state = policy.start()
    for round_ in range(rounds):
        draw = Draw(seed, run, round_)
        decision = policy.decide(state, world.actions, draw)
        means[round_] = world.means(np.asarray(decision.action))
        outcome = world.outcome(np.asarray(decision.action), draw)
        state = policy.absorb(state, decision.action, policy.values(outcome.reward, outcome.cost))
    return Run(means[:, 0], means[:, 1:])
