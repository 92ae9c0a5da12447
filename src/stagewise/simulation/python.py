"""One run of any policy in a world, round by round, as a person would play it by hand."""

from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.trace import Trace, note
from stagewise.problem.polytope import Box, Polytope
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.simulation.judge import Judge
from stagewise.worlds.arms import ArmsWorld


class Hand:
    """A run that can be continued: any object with start, decide and learn."""

    def __init__(self, policy: Any, judge: Judge, trace: Trace, seed: int, run: int) -> None:
        self.policy, self.judge, self.trace = policy, judge, trace
        self.seed, self.run = seed, run
        self.state = policy.start()
        self.best: float | None = None

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        world, judge = self.judge.world, self.judge
        fixed = isinstance(world, ArmsWorld) or world.actions_in(Draw()) is world.actions
        for round_ in range(first, last):
            draw = Draw(self.seed, self.run, round_)
            actions = world.actions_in(draw)
            if self.best is None or not fixed:
                self.best = judge.best(actions)
            decision = self.policy.decide(self.state, actions, draw)
            means = judge.signed(expected(decision, actions, judge))
            note(self.trace, round_, self.best, means, judge.limits)
            self.state = self.policy.learn(self.state, decision, world.outcome(decision.action, draw))


def expected(decision: Decision, actions: Any, judge: Judge) -> Floats:
    """Return the true expected reward and costs of a decision: of the action, or of the mixture it was drawn from."""
    world = judge.world
    if decision.probabilities is None:
        return world.means(decision.action)
    total = np.zeros(judge.signs.size)
    chances = decision.probabilities
    features: Any = actions.vertices if isinstance(actions, Box | Polytope) else getattr(actions, "features", None)
    for index in np.flatnonzero(chances):
        listed = index < len(chances) - 1
        place = judge.safe if not listed else index if isinstance(world, ArmsWorld) else features[index]
        total += chances[index] * world.means(place)
    return total
