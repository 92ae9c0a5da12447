"""A decider without a learner: it decides by a snapshot, and its decisions go back to the one that learns."""

from threading import Lock
from typing import Any

from stagewise.policies.agent.guard import guarded
from stagewise.policies.agent.names import mark_of, name_of, stream_of
from stagewise.policies.agent.offers import offered_by
from stagewise.policies.agent.snapshot import Snapshot
from stagewise.policies.changed import extends
from stagewise.policies.encoded import encoded
from stagewise.policies.learning import Learning
from stagewise.problem.checks import shown, whole_at_least
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.window import moment
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.reason import Reason


class Replica:
    """Decide by a learner's snapshot, in any process, with random numbers of one's own.

    The confidence sets of the one learner hold for all rounds at once, so that any number of replicas may decide by
    any of its snapshots: there is one δ for all. Send each decision to the learner (`Agent.adopt`) before it is acted
    on, and its outcomes by its id whenever they come. Replicas of other names never share random numbers; a process
    that starts anew takes a new name, or gives the `round` to go on from.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    >>> agent = sw.Agent(policy, seed=1)
    >>> replica = sw.Replica(agent.snapshot(), name="pod-3")
    >>> decision = replica.decide(sw.Arms(2))
    >>> agent.adopt(decision.plain())
    0
    >>> agent.learn(decision.id, reward=1.0, cost=0.0)
    >>> replica.update(agent.snapshot()), replica.version
    (True, 1)
    """

    def __init__(self, snapshot: Snapshot, name: str, round: int = 0) -> None:
        check_snapshot(snapshot)
        self.name = name_of(name, "name")
        if not self.name:
            raise InvalidProblem("name is ''; a replica needs one, since its ids and random numbers follow from it")
        self.round = whole_at_least(round, "round", 0)
        self._mark = mark_of(snapshot.seed, snapshot.name, self.name)
        self._key, self._run = stream_of(snapshot.seed, snapshot.name, self.name)
        self._snapshot, self._state, self._notes, self._alone = snapshot, snapshot.state, snapshot.notes, Lock()

    @property
    def version(self) -> int:
        """How much its snapshot knows."""
        return self._snapshot.version

    def decide(self, actions: Any = None, *, only: Any = None, now: Any = None) -> Decision:
        """Choose among the actions, as `Agent.decide` does; `only` names those that are on offer in this call.

        `now` is taken, and checked, as an agent without windows does: windows are the learner's, and begin when it
        adopts the decision.
        """
        if now is not None:
            moment(now)
        with self._alone:
            policy, state, notes = self._snapshot.policy, self._state, self._notes
            offered, draw = actions, Draw(self._key, self._run, self.round)
            if only is not None:
                offered = offered_by(policy, actions, only)
            decision = policy.choose(state, offered, draw)
            if notes.doubts or decision.reason is Reason.CONTRADICTION:
                decision = guarded(
                    policy, state, notes, decision, offered, lambda other: other.choose(state, offered, draw)
                )
            self.round += 1
            return decision._made_by(self._mark, decision._offered if decision._unfollowed else None)

    def update(self, snapshot: Snapshot) -> bool:
        """Decide by this snapshot from now on, unless it knows less; say whether it is so."""
        check_snapshot(snapshot)
        with self._alone:
            ours = self._snapshot
            if snapshot.seed != ours.seed or not akin(snapshot.policy, ours.policy):
                raise InvalidProblem(
                    "the snapshot is of another learner than the replica's own; make another replica of it, under "
                    "another name"
                )
            if snapshot.version < ours.version:
                return False
            self._snapshot, self._state, self._notes = snapshot, snapshot.state, snapshot.notes
            return True


def akin(one: Learning, other: Learning) -> bool:
    """Say whether two policies are one learner's: the same, or the same problem before and after actions were added."""
    if one.problem is not None and other.problem is not None:
        return extends(one.problem, other.problem) or extends(other.problem, one.problem)
    return bool(encoded(one) == encoded(other))


def check_snapshot(value: Any) -> None:
    """Refuse what is no snapshot."""
    if not isinstance(value, Snapshot):
        raise InvalidProblem(f"the snapshot is {shown(value)}; it must be what Agent.snapshot returned")
    value.policy.own(value.state)  # kernels check no bounds
