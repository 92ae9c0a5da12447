"""Snapshots: the state of an agent as an immutable value, for replicas."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stagewise.agent.identity import check_name
from stagewise.agent.statistics import Statistics, parse_contradiction
from stagewise.agent.storage import parse_memory
from stagewise.files.paths import format_error
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.policy import State
from stagewise.policies.policy_encoding import decode_value, encode_value
from stagewise.problem.checks import check_integer_at_least, check_seed
from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import ReasonDetails

FORMAT, VERSION = "stagewise-snapshot", 1


@dataclass(frozen=True)
class Snapshot:
    """The policy, the memory and the alerts of an agent at one moment.

    An older snapshot is as safe as a newer one: decisions by it are more cautious.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> snapshot = sw.Agent(policy, seed=1).snapshot()
        >>> sw.Snapshot.from_bytes(bytes(snapshot)) == snapshot, snapshot.version
        (True, 0)
    """

    policy: BasePolicy
    """The policy."""
    memory: bytes
    """The learned numbers, as the bytes of 64-bit floats."""
    version: int
    """The number of updates of the agent's memory; of two snapshots of one agent, the larger is newer."""
    seed: int
    """The agent's seed."""
    name: str = ""
    """The agent's name."""
    alerts: Mapping[str, ReasonDetails] = field(default_factory=dict)
    """The causes of contradictions, by the name of the finding; while one is open, the safe action is played."""
    acknowledged: Mapping[str, str] = field(default_factory=dict)
    """The notes of acknowledged alerts, by name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash((self.memory, self.version, self.seed, self.name))

    def __bytes__(self) -> bytes:
        return json.dumps(self.to_dict(), allow_nan=False).encode()

    @property
    def statistics(self) -> Statistics:
        """The alerts as `Statistics`; a new object with every call."""
        statistics = Statistics()
        statistics.alerts, statistics.acknowledged = dict(self.alerts), dict(self.acknowledged)
        return statistics

    @property
    def state(self) -> State:
        """A writable copy of the memory."""
        return State(np.frombuffer(self.memory).copy() if self.memory else np.empty(0))

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as JSON holds it; `from_dict` restores it to the bit."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "policy": encode_value(self.policy),
            "memory": self.state.memory.tolist(),
            "learned": self.version,
            "seed": self.seed,
            "name": self.name,
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
            >>> snapshot = sw.Agent(policy, seed=1).snapshot()
            >>> sw.Snapshot.from_dict(snapshot.to_dict()) == snapshot
            True
        """
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise InvalidFile(
                ErrorCode.WRONG_TYPE,
                "the snapshot is {content}; it must be the result of Snapshot.to_dict()",
                content=safe_repr(content),
            )
        try:
            policy, memory = decode_value(content["policy"]), parse_memory(content["memory"])
            fits = isinstance(policy, BasePolicy) and policy.fits(memory) and bool(np.isfinite(memory).all())
            learned, seed = check_integer_at_least(content["learned"], "learned", 0), check_seed(content["seed"])
            name = check_name(content["name"], "name")
            alerts = {str(alert): parse_contradiction(cause) for alert, cause in content["alerts"].items()}
            acknowledged = {str(alert): str(note) for alert, note in content["acknowledged"].items()}
        except StagewiseError as error:
            raise InvalidFile(
                ErrorCode.FILE_INVALID, "the snapshot holds an invalid value: {error}", error=format_error(error)
            ) from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InvalidFile(
                ErrorCode.FILE_CORRUPT,
                "the snapshot lacks a field or has one of the wrong type: {error}",
                error=format_error(error),
            ) from None
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
            raise InvalidFile(
                ErrorCode.WRONG_TYPE,
                "the snapshot is {content}; it must be the bytes of a Snapshot",
                content=safe_repr(content),
            ) from None
        return cls.from_dict(decoded)
