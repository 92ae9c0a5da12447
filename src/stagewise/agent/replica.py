"""Snapshots, the state of an agent as an immutable value; and replicas, which decide by one in any process."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from stagewise.agent.agent_statistics import Statistics, parse_contradiction
from stagewise.agent.base_agent import encode_offer
from stagewise.agent.identity import check_name, derive_id_prefix, derive_stream
from stagewise.agent.learned_state import LearnedState
from stagewise.agent.storage import parse_memory
from stagewise.files.paths import format_error
from stagewise.policies.policy import BasePolicy, PolicyState
from stagewise.policies.saved_policies import decode_value, encode_value, is_extension
from stagewise.problem.checks import check_integer_at_least, check_seed
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.problem.timing import parse_timestamp
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails

FORMAT, VERSION = "stagewise-snapshot", 1


@dataclass(frozen=True)
class Snapshot:
    """The policy, the memory and the alerts of an agent at one moment.

    An older snapshot keeps the guarantee while its assumptions hold, and its decisions are more cautious. It does not
    know what was found since: an alert that stops decisions, a jump, or costs that were forgotten.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> snapshot = sw.Agent(policy, seed=1).replica_snapshot()
        >>> sw.Snapshot.from_bytes(bytes(snapshot)) == snapshot, snapshot.version
        (True, 0)
    """

    policy: BasePolicy
    """The policy."""
    memory: bytes
    """The learned numbers, as the bytes of 64-bit floats."""
    version: int
    """The number of updates of the agent's memory; of two snapshots of one agent, the larger is newer.

    Of two with the same number, the one with more alerts is newer.
    """
    seed: int
    """The agent's seed."""
    agent_name: str = ""
    """The agent's name."""
    alerts: Mapping[str, ReasonDetails] = field(default_factory=dict)
    """The causes of contradictions, by the name of the finding; while one is open, the safe action is played."""
    acknowledged: Mapping[str, str] = field(default_factory=dict)
    """The notes of acknowledged alerts, by name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash((self.memory, self.version, self.seed, self.agent_name))

    def __bytes__(self) -> bytes:
        return json.dumps(self.to_dict(), allow_nan=False).encode()

    @property
    def _learned(self) -> LearnedState:
        """What the agent had learned; a new object with every call."""
        statistics = Statistics()
        statistics.alerts, statistics.acknowledged = dict(self.alerts), dict(self.acknowledged)
        return LearnedState(self.policy, self.state, statistics)

    @property
    def state(self) -> PolicyState:
        """A writable copy of the memory."""
        return PolicyState(np.frombuffer(self.memory).copy() if self.memory else np.empty(0))

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON holds it; `from_dict` restores it to the bit."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "policy": encode_value(self.policy),
            "memory": self.state.memory.tolist(),
            "learned": self.version,
            "seed": self.seed,
            "agent_name": self.agent_name,
            "alerts": {name: cause.to_json() for name, cause in self.alerts.items()},
            "acknowledged": dict(self.acknowledged),
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Snapshot":
        """Return the snapshot that `to_dict` wrote, checked.

        Args:
            content: The result of `to_dict`, as read from JSON.

        Returns:
            The snapshot.

        Raises:
            InvalidFile: The content is not a snapshot, or a value in it is invalid.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> snapshot = sw.Agent(policy, seed=1).replica_snapshot()
            >>> sw.Snapshot.from_dict(snapshot.to_dict()) == snapshot
            True
        """
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
            template = "the snapshot is {content}; it must be the result of Snapshot.to_dict()"
            raise InvalidFile(ErrorCode.WRONG_TYPE, template, content=safe_repr(content))
        try:
            policy, memory = decode_value(content["policy"]), parse_memory(content["memory"])
            fits = isinstance(policy, BasePolicy) and policy.fits(memory) and bool(np.isfinite(memory).all())
            learned, seed = check_integer_at_least(content["learned"], "learned", 0), check_seed(content["seed"])
            name = check_name(content["agent_name"], "agent_name")
            alerts = {str(alert): parse_contradiction(cause) for alert, cause in content["alerts"].items()}
            acknowledged = {str(alert): str(note) for alert, note in content["acknowledged"].items()}
        except StagewiseError as error:
            raise InvalidFile(
                ErrorCode.FILE_INVALID, "the snapshot holds an invalid value: {error}", error=format_error(error)
            ) from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            template = "the snapshot lacks a field or has one of the wrong type: {error}"
            raise InvalidFile(ErrorCode.FILE_CORRUPT, template, error=format_error(error)) from None
        if not fits:
            raise InvalidFile(ErrorCode.STATE_MISMATCH, "the snapshot holds a state that does not match its policy")
        return cls(policy, memory.tobytes(), learned, seed, name, alerts, acknowledged)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Snapshot":
        """Return the snapshot whose `bytes` these are.

        Args:
            content: The result of `bytes(snapshot)`.

        Returns:
            The snapshot.

        Raises:
            InvalidFile: The bytes are not those of a snapshot.
        """
        try:
            decoded = json.loads(content)
        except (TypeError, ValueError, RecursionError):
            template = "the snapshot is {content}; it must be the bytes of a Snapshot"
            raise InvalidFile(ErrorCode.WRONG_TYPE, template, content=safe_repr(content)) from None
        return cls.from_dict(decoded)


class Replica:
    """Decide by a snapshot of an agent, in any process.

    The confidence sets of the agent hold for all rounds at once, so any number of replicas may decide by any of its
    snapshots; all share one δ. Give each decision to `Agent.register_decision` before it is acted on,
    and its outcomes by id to `Agent.learn` when they arrive.

    Args:
        snapshot: The result of `Agent.replica_snapshot`.
        name: A name that no other replica of the agent has or had; ids and random numbers derive from it.
        round: The round to continue from, if a process restarts under the same name.

    Attributes:
        name: The name.
        round: The number of decisions so far.
        version: The version of the snapshot.

    Raises:
        InvalidProblem: The name is empty, or the snapshot is not one.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> agent = sw.Agent(policy, seed=1)
        >>> replica = sw.Replica(agent.replica_snapshot(), name="pod-3")
        >>> decision = replica.decide(sw.ArmSet(2))
        >>> agent.register_decision(decision.to_dict())
        0
        >>> agent.learn(decision.id, reward=1.0, cost=0.0)
        >>> replica.update(agent.replica_snapshot()), replica.version
        (True, 1)
    """

    def __init__(self, snapshot: Snapshot, name: str, round: int = 0) -> None:
        check_snapshot(snapshot)
        self.name = check_name(name, "name")
        if not self.name:
            text = "name is ''; a replica needs a name, since its decision ids and random numbers derive from it"
            raise InvalidProblem(ErrorCode.INVALID_NAME, text)
        self.round = check_integer_at_least(round, "round", 0)
        self._id_prefix = derive_id_prefix(snapshot.seed, snapshot.agent_name, self.name)
        self._key, self._run = derive_stream(snapshot.seed, snapshot.agent_name, self.name)
        self._snapshot, self._learned = snapshot, snapshot._learned
        self._lock = Lock()

    @property
    def version(self) -> int:
        """The version of its snapshot."""
        return self._snapshot.version

    def decide(
        self, actions: Any = None, *, only: Any = None, propose: Any = None, scores: Any = None, now: Any = None
    ) -> Decision:
        """Choose among the actions, as `Agent.decide` does.

        Args:
            actions: An action set, a table of features, or for a problem the context of a user.
            only: The actions that are offered in this call.
            propose: An action, or a mapping from actions to probabilities, as for `Agent.decide`.
            scores: A mapping from actions to scores, as for `Agent.decide`.
            now: The time, if not that of this machine; only bounds that drift use it, and windows start when the agent
                registers the decision.

        Returns:
            The decision, whose id names this replica.

        Raises:
            InvalidActions: The actions do not fit the policy.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> sw.Replica(sw.Agent(policy, seed=1).replica_snapshot(), name="pod-3").decide(sw.ArmSet(2)).round
            0
        """
        seconds = parse_timestamp(time.time() if now is None else now)
        with self._lock:
            policy, draw = self._snapshot.policy, RandomKey(self._key, self._run, self.round)
            if only is not None or propose is not None or scores is not None:
                actions = encode_offer(policy, actions, only, propose, scores)
            if policy.needs_times:
                actions = policy.at_time(actions, seconds)
            decision = self._learned.decide(actions, draw)
            self.round += 1
            return decision._with_mark(self._id_prefix, decision._offered if decision._uncached else None)

    def update(self, snapshot: Snapshot) -> bool:
        """Decide by this snapshot from now on, unless it is older than the present one.

        Args:
            snapshot: A snapshot of the same agent.

        Returns:
            Whether the snapshot is used.

        Raises:
            InvalidProblem: The snapshot belongs to another agent.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> agent = sw.Agent(policy, seed=1)
            >>> sw.Replica(agent.replica_snapshot(), name="pod-3").update(agent.replica_snapshot())
            True
        """
        check_snapshot(snapshot)
        with self._lock:
            ours = self._snapshot
            if snapshot.seed != ours.seed or not is_same_learner(snapshot.policy, ours.policy):
                text = "the snapshot belongs to another learner; create a new replica from it under another name"
                raise InvalidProblem(ErrorCode.STATE_MISMATCH, text)
            lacks_alert = snapshot.version == ours.version and ours.alerts.keys() - snapshot.alerts.keys()
            if snapshot.version < ours.version or lacks_alert:  # a test of reported costs does not wait for learning
                return False
            self._snapshot, self._learned = snapshot, snapshot._learned
            return True


def is_same_learner(one: BasePolicy, other: BasePolicy) -> bool:
    """Return whether two policies belong to one agent: equal, or one problem before and after actions were added."""
    if one.problem is not None and other.problem is not None:
        return is_extension(one.problem, other.problem) or is_extension(other.problem, one.problem)
    return bool(encode_value(one) == encode_value(other))


def check_snapshot(value: Any) -> None:
    """Raise unless the value is a valid snapshot."""
    if not isinstance(value, Snapshot):
        template = "the snapshot is {value}; it must be the result of Agent.replica_snapshot"
        raise InvalidProblem(ErrorCode.WRONG_TYPE, template, value=safe_repr(value))
    value.policy.check_state(value.state)  # kernels check no bounds
