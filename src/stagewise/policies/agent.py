"""An agent: a policy with its memory and its seed, for use by hand."""

from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from stagewise.files.paths import content_of, path_of
from stagewise.kernels.draw import signed
from stagewise.policies.learning import Learning
from stagewise.policies.ownership import Ownership
from stagewise.policies.policy import Played, Policy, State, check_verbs
from stagewise.policies.saved import ORDERS, Order, check_kind, check_same, entry_of, held_entry, read, written
from stagewise.problem.checks import as_array, entries_of, is_listing, kept, one_of, outcomes, seed_of, shown, switch
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.tables import named
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome

WHOLE = (int, np.integer)  # a union would be built again in every round
NO_ROUND = (bool, np.timedelta64)
PREPARED = ("_ours", "_choose", "_take", "_values", "_alone", "_saving")


class Agent:
    """Decide, learn, save, load.

    Outcomes may come late, in any order or never, where that does not depend on what they are: the confidence sets hold
    for all rounds at once, so deciding on older knowledge is only more cautious. They are learned in the order of the
    decisions: an outcome is held until every earlier decision is answered or forgotten. `order="arrival"` learns each
    at once, which is valid only under one more promise: nothing that is offered depends on outcomes that exist but were
    not learned yet (docs/guide.md). An outcome belongs to one decision and can be given once. Threads may share an
    agent: one call at a time has its memory, the others wait.

    >>> import stagewise as sw
    >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5), seed=1)
    >>> decision = agent.decide(sw.Arms(2))
    >>> agent.learn(decision, reward=0.7, cost=0.1)
    >>> agent.round, agent.waiting, agent.held
    (1, 0, 0)
    """

    def __init__(self, policy: Policy, seed: int | np.random.Generator = 0, order: Order = "decision") -> None:
        check_verbs(policy)
        self.policy = policy
        self.order = one_of(order, ORDERS, "order")
        self.seed = seed_of(seed.integers(2**63) if isinstance(seed, np.random.Generator) else seed)
        self.round = 0
        self._key = signed(self.seed)
        self._state: Any = policy.start()
        self._open: dict[int, Any] = {}  # by round: what was played, or the decision where only three verbs are known
        self._held: dict[int, tuple[Any, Any]] = {}  # by round: the same, and its outcome as it is learned from
        self._oldest = 0  # every decision before it is answered or forgotten
        self._files = Ownership()
        self._prepare()

    def _prepare(self) -> None:
        """Set what follows from the policy or is never copied: its verbs, and locks, of which `_saving` comes first."""
        policy, self._alone, self._saving = self.policy, Lock(), Lock()
        self._ours = ours = policy if isinstance(policy, Learning) else None  # None: three verbs are all that is known
        own = ours is not None and type(ours).decide is Learning.decide
        self._choose: Callable[..., Decision] = getattr(policy, "choose" if own else "decide")
        self._take: Callable[..., Any] = policy.learn if ours is None else ours.take  # trusts what was kept here
        self._values: Callable[[Any, Any], Any] = own_outcome if ours is None else ours.values

    def __getstate__(self) -> dict[str, Any]:
        """Return a moment of the agent that nobody shares, for a copy or a pickle, whatever other threads do."""
        with self._alone:
            kept = {name: value for name, value in vars(self).items() if name not in PREPARED}
            kept |= {name: dict(value) for name, value in kept.items() if isinstance(value, dict)}
            kept["policy"] = copy(self.policy)  # it works out some of its numbers when they are first asked for
            kept["_state"] = deepcopy(self._state)
            kept["_files"] = self._files.copied()
            return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._prepare()

    @property
    def state(self) -> Any:
        """A copy of the policy's memory."""
        with self._alone:
            return deepcopy(self._state)

    @property
    def waiting(self) -> int:
        """How many decisions have no outcome yet."""
        return len(self._open)

    @property
    def held(self) -> int:
        """How many outcomes are held back until earlier decisions are answered or forgotten."""
        return len(self._held)

    def decide(self, actions: Any) -> Decision:
        """Choose among the actions: an action set, or a table of features."""
        with self._alone:
            round_ = self.round
            decision = self._choose(self._state, actions, Draw(self._key, 0, round_))
            if self._ours is None:
                self._open[round_] = decision
            elif decision._unfollowed:
                self._open[round_] = Played(decision.action)  # it has no place among candidates not followed yet
                self._state = self._ours.follow(self._state, decision)
            else:
                self._open[round_] = Played(decision.action, decision.index, decision.step)
            self.round = round_ + 1
            return decision

    def learn(self, decision: Decision | int, reward: Any, cost: Any = None) -> None:
        """Take in the outcome of a decision, given as itself or by its round; a bad one is refused at once."""
        with self._alone:
            round_: Any = decision
            action: Any = None
            if isinstance(decision, Decision):
                round_, action = decision.round, decision.action
            counted = type(round_) is int or (isinstance(round_, WHOLE) and not isinstance(round_, NO_ROUND))
            waiting = self._open.get(round_) if counted else None
            if waiting is None:
                known = counted and 0 <= round_ < self.round
                why = (
                    "its outcome was given already, and once is all it counts, or it was forgotten"
                    if known
                    else "this agent did not make it"
                )
                raise InvalidOutcome(f"the outcome is for round {shown(round_)}; {why}")
            if action is not None and action is not waiting.action and not np.array_equal(action, waiting.action):
                raise InvalidOutcome(
                    f"the decision of round {round_} is not the one this agent made; it played another action"
                )
            values = self._values(reward, cost)
            if round_ == self._oldest or self._is_due(round_):
                self._state = self._take(self._state, waiting, values)
                self._oldest = round_ + 1
            else:
                if self._ours is None:
                    self._take(self._state, waiting, values)  # a rehearsal: what is refused is refused now
                self._held[int(round_)] = waiting, values
            del self._open[round_]
            if self._held:
                self._release()

    def _is_due(self, round_: int) -> bool:
        """Say whether an outcome may be learned now."""
        if self.order == "arrival":
            return True
        while self._oldest < round_ and self._oldest not in self._open:
            self._oldest += 1
        return self._oldest == round_

    def _release(self) -> None:
        """Learn what is held behind no open decision any more, in the order of the decisions."""
        while self._held and self._oldest not in self._open:
            if self._oldest in self._held:
                self._state = self._take(self._state, *self._held[self._oldest])
                del self._held[self._oldest]
            self._oldest += 1

    def forget(self, before: int) -> int:
        """Give up waiting for the outcomes of all rounds below `before`, and return how many there were.

        What was held behind them is learned. That leaves the bounds valid only where neither the outcome nor later ones
        decide whether it is given up: go by age.
        """
        if isinstance(before, bool) or not isinstance(before, int | np.integer) or not 0 <= before <= self.round:
            raise InvalidOutcome(
                f"before is {shown(before)}; it must be a round from 0 to {self.round}, which is the next"
            )
        with self._alone:
            given_up = [round_ for round_ in self._open if round_ < before]
            for round_ in given_up:
                del self._open[round_]
            self._release()
        return len(given_up)

    def learn_log(self, features: Any, rewards: Any, costs: Any = None) -> None:
        """Take in logged data of any earlier policy: actions (n, d) or arms (n,), rewards (n,), costs (n,) or (n, m).

        Costs may also be a mapping of columns by name, or a data frame whose columns have the limits' names. True and
        False count as 1 and 0.

        The bounds stay valid as long as each logged action was chosen without looking at its own outcome or later ones.
        A log is one batch, in whatever order its rows stand, and is learned at once, also while decisions are open:
        then nothing offered so far may depend on its outcomes, nor its actions on the outcomes that are still open.
        """
        policy = self._ours
        if policy is None:
            raise InvalidProblem("this policy has only start, decide and learn; a log is for policies of stagewise")
        actions, seen = policy.logged(features), outcomes(rewards, "the logged rewards")
        if seen.shape != (len(actions),):
            raise InvalidOutcome(
                f"the logged rewards have shape {seen.shape}; they must be one for each of {len(actions)}"
            )
        rows, values = rows_of(costs, len(actions)), []
        if len(rows) != len(actions):
            raise InvalidOutcome(f"there are {len(rows)} logged costs; they must be one row for each of {len(actions)}")
        for i, row in enumerate(rows):
            try:
                values.append(policy.values(float(seen[i]), row))
            except InvalidOutcome as error:
                raise InvalidOutcome(f"row {i} of the log: {error}") from None
        with self._alone:
            self._state = policy.absorb_log(self._state, actions, values)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write policy, memory, seed and open decisions to a JSON file, all or nothing; others decide meanwhile.

        The path must be new, or hold what this agent loaded or saved there last: then nobody else went on from it.
        `overwrite` replaces any plain file.
        """
        place, replaces = path_of(path), switch(overwrite, "overwrite")
        check_kind(self.policy)
        policy: Any = self._ours
        with self._saving:
            with self._alone:
                memory, round_ = self._state.memory.copy(), self.round
                waiting, held = dict(self._open), dict(self._held)
            content = {
                **self._files.stamp(),
                "seed": self.seed,
                "round": round_,
                "memory": memory.tolist(),
                "waiting": {str(r): entry_of(played) for r, played in waiting.items()},
                "order": self.order,
                "held": {str(r): held_entry(policy, *entry) for r, entry in held.items()},
            }
            self._files.write(place, written(policy, content), round_, replaces)

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None) -> "Agent":
        """Return the saved agent; it goes on as if it had never stopped, to the bit.

        It has the policy of the file. With `policy` a file of another policy, or of other settings, is refused.
        Of several that load one file the first to save keeps it, and the others are refused.
        """
        place = path_of(path)
        content = content_of(place)
        saved = read(place, content)
        if policy is not None:
            check_same(place, saved.policy, policy)
        agent = cls(saved.policy, saved.seed, saved.order)
        agent.round = saved.round
        agent._state = State(saved.memory)
        agent._open, agent._held = saved.waiting, saved.held
        agent._oldest = min(agent._open, default=agent.round)
        agent._files = Ownership(saved.generation)
        agent._files.learn(place, content, saved.round)
        return agent


def own_outcome(reward: Any, cost: Any) -> Outcome:
    """Return an outcome that stays as it is whatever its giver does with a list of costs."""
    return Outcome(kept(reward), kept(cost))


def rows_of(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping or a data frame holds a column for each constraint."""
    if costs is None:
        return [None] * count
    by_name = named(costs, "the logged costs")
    if by_name is not None:
        if not all(is_listing(column) for column in by_name.values()):
            raise InvalidOutcome("the logged costs hold a number where a column belongs; give one list for each name")
        columns = {name: entries_of(column, "a logged cost", InvalidOutcome) for name, column in by_name.items()}
        if any(len(column) != count for column in columns.values()):
            raise InvalidOutcome(f"the logged costs have columns of other lengths than the {count} logged actions")
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    if not is_listing(costs):
        raise InvalidOutcome(
            f"the logged costs are {shown(costs)}; they must be one row of costs for each logged action"
        )
    return list(costs) if isinstance(costs, list | tuple) else list(as_array(costs, "the logged costs", InvalidOutcome))
