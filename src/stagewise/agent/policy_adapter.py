"""A policy of one's own, which has only start, decide and learn, as agents read policies."""

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar

import numpy as np

from stagewise.policies.policy import NOTHING, BasePolicy, Policy
from stagewise.problem.checks import copy_value
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey


class PolicyAdapter(BasePolicy):
    """Adapts a policy of one's own: what was played is its decision, and the only value of an outcome an `Outcome`."""

    thresholds: Thresholds = NO_THRESHOLDS
    learns: ClassVar[str] = NOTHING
    has_parts: ClassVar[bool] = False
    value_type: ClassVar[Any] = object
    signal_names = ("outcome",)

    def __init__(self, adapted: Policy) -> None:
        self.adapted = adapted

    def __copy__(self) -> "PolicyAdapter":
        return PolicyAdapter(copy(self.adapted))

    def start(self) -> Any:
        return self.adapted.start()

    def choose(self, state: Any, actions: Any, draw: RandomKey) -> Decision:
        return self.adapted.decide(state, actions, draw)

    def get_played(self, decision: Decision) -> Any:
        return decision

    def cache_offered(self, state: Any, decision: Decision) -> Any:
        return state

    def values(self, reward: Any, cost: Any) -> Any:
        """Return the outcome (1,), which shares no list with the caller."""
        values = np.empty(1, dtype=object)
        values[0] = Outcome(copy_value(reward), copy_value(cost))
        return values

    def encode_outcome(self, signals: Mapping[str, Any]) -> None:
        """Return None: its signals have no names."""

    def check_outcome(self, state: Any, played: Any, values: Any) -> None:
        """Raise the errors of its own `learn`."""
        self.adapted.learn(state, played, values[0])

    def learn_in_place(self, state: Any, played: Any, values: Any) -> Any:
        return self.adapted.learn(state, played, values[0])

    def check_logged_actions(self, actions: Any) -> Any:
        raise reject_adapter("a log is")


def adapt_policy(policy: Any) -> BasePolicy:
    """Return a policy of stagewise as it is, and any other one in an adapter."""
    return policy if isinstance(policy, BasePolicy) else PolicyAdapter(policy)


def reject_adapter(what: str) -> InvalidProblem:
    """Return the error that something is for policies of stagewise only."""
    template = "this policy has only start, decide and learn; {what} for policies of stagewise"
    return InvalidProblem(ErrorCode.UNSUPPORTED, template, what=what)
