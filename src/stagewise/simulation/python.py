"""One run of any policy in a world, round by round, as a person would play it by hand."""

from typing import Any

from stagewise.kernels.audit import HOPELESS, MISSED, UNKNOWN, watch, weigh_hope
from stagewise.kernels.trace import Trace, note
from stagewise.policies.policy import State
from stagewise.records.draw import Draw
from stagewise.records.reason import Reason
from stagewise.simulation.decided import expected
from stagewise.simulation.judge import Judge


class Hand:
    """A run that can be continued: any object with learned, decide and learn."""

    def __init__(
        self, policy: Any, judge: Judge, trace: Trace, seed: int, run: int, learned: State | None = None
    ) -> None:
        self.policy, self.judge, self.trace = policy, judge, trace
        self.seed, self.run = seed, run
        self.state = policy.start() if learned is None else State(learned.memory.copy())
        self.best: float | None = None
        if trace.audit.size:
            trace.audit[MISSED:] = UNKNOWN  # a decision does not show the intervals of every candidate
            if not getattr(policy, "hopes", False):  # one of someone's own says so by `hopes = True`
                trace.audit[HOPELESS] = UNKNOWN

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        world, judge = self.judge.world, self.judge
        same = world.offers_same
        for round_ in range(first, last):
            draw = Draw(self.seed, self.run, round_)
            actions = world.actions_in(draw)
            if self.best is None or not same:
                self.best = judge.best(actions)
            decision = self.policy.decide(self.state, actions, draw)
            means = judge.signs * expected(decision, actions, judge, round_)
            note(self.trace, round_, self.best, means, judge.limits)
            if self.trace.audit.size:
                safe = float(judge.safe_means_in(actions)[0])
                watch(self.trace.audit, round_, self.best, safe, means, judge.limits)
                if decision.reason is not Reason.SAFE_COST_UNCERTAIN:
                    weigh_hope(self.trace.audit, self.best, decision.hoped + decision.gap)
            outcome = world.outcome_played(decision.index, decision.action, actions, draw)
            self.state = self.policy.learn(self.state, decision, outcome)
