"""What every policy is: settings, memory and three verbs."""

from typing import Any, NamedTuple, Protocol

from stagewise.kernels.compile import Floats
from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.problem.checks import missing, shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.round_safe import SafeOfRound
from stagewise.records.decision import Decision
from stagewise.records.draw import FIRST, Draw
from stagewise.records.outcome import Outcome


class State(NamedTuple):
    """A policy's memory: only what the next round needs."""

    memory: Floats


class Played(NamedTuple):
    """An action that was played, and where it lies among the candidates that the memory follows."""

    action: Any  # features or arm
    ray: int = ELSEWHERE  # on whose ray; AT_SAFE: the safe action
    step: float = 1.0
    safe: SafeOfRound | None = None  # the safe action of its round, where that was the round's own

    @classmethod
    def by(cls, decision: Decision) -> "Played":
        """Return what a decision played; candidates that were not followed yet give it no place."""
        if decision._unfollowed:
            return cls(decision.action)
        return cls(decision.action, decision.index, decision.step, decision._safe)


class Policy(Protocol):
    """Choose under limits: `decide` changes nothing, `learn` returns a new memory, of whatever kind `start` made."""

    def start(self) -> Any:
        """Return the memory of a policy that has seen nothing."""

    def decide(self, state: Any, actions: Any, draw: Draw = FIRST) -> Decision:
        """Choose among the actions; equal arguments give equal decisions."""

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> Any:
        """Return the memory after the decision's outcome was seen."""


def check_verbs(policy: Any) -> None:
    """Refuse what is not a policy."""
    if isinstance(policy, type) or missing(policy, ("start", "decide", "learn")):
        raise InvalidProblem(
            f"policy is {shown(policy)}; it must be a Problem (Problem.load reads a file), a policy, or an object with "
            "start, decide and learn"
        )
