"""One run of any policy in a world, round by round, as a person would play it by hand."""

from typing import Any

from stagewise.engine.trace import (
    INTERVAL_MISSES,
    OPTIMISM_FAILURES,
    UNKNOWN,
    Trace,
    audit_round,
    count_optimism_failure,
    record_round,
)
from stagewise.policies.policy import State
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import Reason
from stagewise.simulation.decision_checks import compute_expected_means
from stagewise.simulation.oracle import Oracle


class PythonRun:
    """A run that can be continued: any object with learned, decide and learn."""

    def __init__(
        self, policy: Any, oracle: Oracle, trace: Trace, seed: int, run: int, warm_start: State | None = None
    ) -> None:
        self.policy, self.oracle, self.trace = policy, oracle, trace
        self.seed, self.run = seed, run
        self.state = policy.start() if warm_start is None else State(warm_start.memory.copy())
        self.best: float | None = None
        if trace.audit.size:
            trace.audit[INTERVAL_MISSES:] = UNKNOWN  # a decision does not show the intervals of every candidate
            if not getattr(policy, "is_optimistic", False):  # one of someone's own says so by `hopes = True`
                trace.audit[OPTIMISM_FAILURES] = UNKNOWN

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        world, oracle = self.oracle.world, self.oracle
        same = world.has_fixed_actions
        for round_ in range(first, last):
            draw = RandomKey(self.seed, self.run, round_)
            actions = world.actions_in(draw)
            if self.best is None or not same:
                self.best = oracle.best(actions)
            decision = self.policy.decide(self.state, actions, draw)
            means = oracle.signs * compute_expected_means(decision, actions, oracle, round_)
            record_round(self.trace, round_, self.best, means, oracle.limits)
            if self.trace.audit.size:
                safe = float(oracle.safe_means_in(actions)[0])
                audit_round(self.trace.audit, round_, self.best, safe, means, oracle.limits)
                if decision.reason is not Reason.SAFE_ACTION_COST_UNCERTAIN:
                    count_optimism_failure(
                        self.trace.audit, self.best, decision.optimistic_reward + decision.solver_gap
                    )
            outcome = world.outcome_played(decision.action_index, decision.action, actions, draw)
            self.state = self.policy.learn(self.state, decision, outcome)
