"""The policy protocol: `start`, `decide` and `learn`."""

from typing import Any, NamedTuple, Protocol

from stagewise.engine.compile import Floats
from stagewise.engine.layout import ELSEWHERE
from stagewise.problem.checks import find_missing_attributes
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import FIRST, RandomKey


class State(NamedTuple):
    """The state of a policy: what it has learned.

    Attributes:
        memory: One array of floats; its layout belongs to the policy.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.UCB(arms=2)
        >>> isinstance(policy.start(), State)
        True
    """

    memory: Floats


class PlayedAction(NamedTuple):
    """A played action and its position among the cached candidates."""

    action: Any  # features or arm
    ray: int = ELSEWHERE  # the index of its ray; AT_SAFE: the safe action
    step: float = 1.0
    safe: RoundSafeAction | None = None  # the safe action of its round, where the round named it

    @classmethod
    def from_decision(cls, decision: Decision) -> "PlayedAction":
        """Return the played action of a decision; without a position where its candidates are not cached."""
        if decision._uncached:
            return cls(decision.action)
        return cls(decision.action, decision.action_index, decision.step_size, decision._safe)


class Policy(Protocol):
    """The protocol of a policy: settings and three pure functions of a state.

    Agents and simulations accept any object with these methods.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.UCB(arms=2)
        >>> decision = policy.decide(policy.start(), sw.Arms(2))
        >>> state = policy.learn(policy.start(), decision, sw.Outcome(1.0))
    """

    def start(self) -> Any:
        """Return the state before any outcome.

        Returns:
            A state of any type.
        """

    def decide(self, state: Any, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Choose among the actions; equal arguments give equal decisions.

        Args:
            state: A result of `start` or `learn`; it does not change.
            actions: The actions of the round.
            draw: The source of random numbers.

        Returns:
            The decision.
        """

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> Any:
        """Return the state after the outcome of a decision.

        Args:
            state: A result of `start` or `learn`; it does not change.
            decision: A result of `decide`.
            outcome: The observed reward and costs.

        Returns:
            The new state.
        """


def check_policy_protocol(policy: Any) -> None:
    """Raise InvalidProblem for an object that is not a policy."""
    if isinstance(policy, type) or find_missing_attributes(policy, ("start", "decide", "learn")):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "policy is {policy}; it must be a Problem (Problem.load reads a file), a policy, or an "
            "object with start, decide and learn",
            policy=safe_repr(policy),
        )
