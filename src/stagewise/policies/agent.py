"""An agent: a policy with its memory and its seed, for use by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.draw import signed
from stagewise.policies.policy import Policy, State
from stagewise.policies.saved import read, written
from stagewise.problem.checks import array
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


class Agent:
    """Decide, learn, save, load.

    Outcomes may come late, in any order or never: the confidence sets hold for all rounds at once, so deciding on older
    knowledge is only more cautious. An outcome belongs to one decision and can be learned once.

    >>> import stagewise as sw
    >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5), seed=1)
    >>> decision = agent.decide(sw.Arms(2))
    >>> agent.learn(decision, reward=0.7, cost=0.1)
    >>> agent.round, agent.waiting
    (1, 0)
    """

    def __init__(self, policy: Policy, seed: int | np.random.Generator = 0) -> None:
        if not all(hasattr(policy, verb) for verb in ("start", "decide", "learn")):
            raise InvalidProblem(f"policy is {policy!r}; it must have start, decide and learn, as LCLUCB has")
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
            raise InvalidProblem(
                f"seed is {seed!r}; it must be a whole number from 0 to 2**64 - 1, or a numpy Generator"
            )
        self.policy = policy
        self.seed = int(seed)
        self.round = 0
        self._key = signed(self.seed)
        self._state: State = policy.start()
        self._open: dict[int, Floats | int] = {}  # by round: the action played

    @property
    def state(self) -> State:
        """A copy of the policy's memory."""
        return State(self._state.memory.copy())

    @property
    def waiting(self) -> int:
        """How many decisions have no outcome yet."""
        return len(self._open)

    def decide(self, actions: Any) -> Decision:
        """Choose among the actions: an action set, or a table of features."""
        round_ = self.round
        decision = self.policy.decide(self._state, actions, Draw(self._key, 0, round_))
        self._open[round_] = decision.action
        self.round = round_ + 1
        return decision

    def learn(self, decision: Decision | int, reward: Any, cost: Any = None) -> None:
        """Take in the outcome of a decision, given as itself or by its round."""
        round_ = decision.round if isinstance(decision, Decision) else decision
        waiting = self._open.get(round_)
        if waiting is None:
            known = isinstance(round_, int | np.integer) and 0 <= round_ < self.round
            why = (
                "its outcome was learned already, and once is all it counts" if known else "this agent did not make it"
            )
            raise InvalidOutcome(f"the outcome is for round {round_!r}; {why}")
        if isinstance(decision, Decision) and not np.array_equal(decision.action, waiting):
            raise InvalidOutcome(
                f"the decision of round {round_} is not the one this agent made; it played another action"
            )
        values = self.policy.values(reward, cost)
        self._state = self.policy.absorb(self._state, waiting, values)
        del self._open[round_]

    def learn_log(self, features: Any, rewards: Any, costs: Any = None) -> None:
        """Take in logged data of any earlier policy: actions (n, d) or arms (n,), rewards (n,), costs (n,) or (n, m).

        The bounds stay valid as long as each logged action was chosen without looking at its own outcome or later ones.
        """
        actions = self.policy.logged(features)
        seen = array(rewards, "the logged rewards", InvalidOutcome)
        if seen.shape != (len(actions),):
            raise InvalidOutcome(
                f"the logged rewards have shape {seen.shape}; they must be one for each of {len(actions)}"
            )
        rows = rows_of(costs, len(actions))
        if len(rows) != len(actions):
            raise InvalidOutcome(f"there are {len(rows)} logged costs; they must be one row for each of {len(actions)}")
        values = [self.policy.values(float(r), c) for r, c in zip(seen, rows, strict=True)]
        for action, value in zip(actions, values, strict=True):
            self._state = self.policy.absorb(self._state, action, value)

    def save(self, path: str | Path) -> None:
        """Write policy, memory, seed and open decisions to a JSON file, all or nothing."""
        waiting = {str(round_): np.asarray(action).tolist() for round_, action in self._open.items()}
        written(Path(path), self.policy, self._state.memory, self.seed, self.round, waiting)

    @classmethod
    def load(cls, path: str | Path) -> "Agent":
        """Return the saved agent; it goes on as if it had never stopped, to the bit."""
        saved = read(Path(path))
        agent = cls(saved.policy, saved.seed)
        agent.round = saved.round
        agent._state = State(saved.memory)
        for round_, action in saved.waiting.items():
            agent._open[int(round_)] = np.array(action) if isinstance(action, list) else int(action)
        return agent


def rows_of(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping holds a column for each constraint."""
    if costs is None:
        return [None] * count
    if isinstance(costs, Mapping):
        columns = {name: list(column) for name, column in costs.items()}
        if any(len(column) != count for column in columns.values()):
            raise InvalidOutcome(f"the logged costs have columns of other lengths than the {count} logged actions")
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    return list(costs)
