"""What every run of a simulation has learned before: by an agent, in a state, or from a log."""

from hashlib import sha256
from typing import Any, NamedTuple

from stagewise.policies.agent.agent import Agent
from stagewise.policies.encoded import encoded
from stagewise.policies.learning import Learning
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem


class Begun(NamedTuple):
    """Where runs begin, and what a result says of it."""

    state: State
    told: dict[str, Any]


def begun_from(learned: Any, given: Any, player: Any, backend: str) -> Begun:
    """Return where runs of `player` begin; `given` is the policy or the problem as it was given."""
    if given is None or not isinstance(player, Learning):
        raise InvalidProblem(
            "learned is given, and the policy is drawn for each run or one of your own; it is for one policy of "
            "stagewise, and your own returns from start() what it begins with"
        )
    if backend == "cuda":
        raise InvalidProblem("backend is 'cuda' and learned is given; runs on a GPU begin with nothing, so use 'cpu'")
    if getattr(player, "horizon", None) is not None:
        raise InvalidProblem(
            f"the policy has a horizon of {player.horizon}, within which its radii hold, and what was learned "  # type: ignore[attr-defined]
            "before took some of it; leave the horizon out"
        )
    kind, state = state_of(learned, given)
    memory = player.own(state).memory
    return Begun(State(memory), {"from": kind, "digest": sha256(memory.tobytes()).hexdigest()})


def state_of(learned: Any, given: Any) -> tuple[str, Any]:
    """Return of what kind it is, and its state."""
    if isinstance(learned, Agent):
        check_policy(learned.policy, given.policy() if isinstance(given, Problem) else given)
        return "an agent", learned.state
    if isinstance(learned, State):
        return "a state", learned
    if isinstance(given, Problem):
        agent = Agent(given)
        agent.learn_frame(learned)
        return "a log", agent.state
    raise InvalidProblem(
        f"learned is {shown(learned)}; it must be an Agent, a State, or for a Problem a frame of columns by its names"
    )


def check_policy(learned: Any, played: Any) -> None:
    """Refuse what an agent of another policy has learned."""
    if type(learned) is not type(played) or encoded(learned) != encoded(played):
        raise InvalidProblem(
            f"learned is an agent of {learned!r:.60}, and the policy played is another, or has other settings; what "
            "was learned under them does not carry over"
        )
