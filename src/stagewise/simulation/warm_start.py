"""Warm starts: the state that every run starts with, from an agent, a state or a log."""

from hashlib import sha256
from typing import Any, NamedTuple

from stagewise.agent.agent import Agent
from stagewise.policies.policy import BasePolicy, State
from stagewise.policies.policy_encoding import encode_value
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr


class WarmStart(NamedTuple):
    """The state that runs start with, and its description in results."""

    state: State
    description: dict[str, Any]


def build_warm_start(warm_start: Any, given: Any, player: Any, backend: str) -> WarmStart:
    """Return the warm start of `player`; `given` is the policy or the problem as given."""
    if given is None or not isinstance(player, BasePolicy):
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED,
            "warm_start needs one policy of stagewise, and here the policy is your own or differs by "
            "run; return the initial state from your policy's start()",
        )
    if backend == "cuda":
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED_BACKEND,
            "backend is 'cuda' and warm_start is given; use backend='cpu', since runs on a GPU start without data",
        )
    if getattr(player, "horizon", None) is not None:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "the policy has a horizon of {horizon} and warm_start used some of its rounds; leave the "
            "horizon out, since radii hold only within it",
            horizon=getattr(player, "horizon", None),
        )
    kind, state = get_state(warm_start, given)
    memory = player.check_state(state).memory
    return WarmStart(State(memory), {"from": kind, "digest": sha256(memory.tobytes()).hexdigest()})


def get_state(warm_start: Any, given: Any) -> tuple[str, Any]:
    """Return the kind of the warm start, and its state."""
    if isinstance(warm_start, Agent):
        check_policy(warm_start.policy, given.policy() if isinstance(given, Problem) else given)
        return "an agent", warm_start.state
    if isinstance(warm_start, State):
        return "a state", warm_start
    if isinstance(given, Problem):
        agent = Agent(given)
        agent.learn_frame(warm_start)
        return "a log", agent.state
    raise InvalidProblem(
        ErrorCode.WRONG_TYPE,
        "warm_start is {warm_start}; it must be an Agent, a State, or, for a Problem, a frame "
        "with columns by its names",
        warm_start=safe_repr(warm_start),
    )


def check_policy(warm_start: Any, played: Any) -> None:
    """Raise if the agent has another policy."""
    if type(warm_start) is not type(played) or encode_value(warm_start) != encode_value(played):
        raise InvalidProblem(
            ErrorCode.STATE_MISMATCH,
            "warm_start is an agent of {warm_start!r:.60}, and the policy or its settings differ; "
            "the state of one policy does not carry over to another",
            warm_start=warm_start,
        )
