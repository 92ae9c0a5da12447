"""What a learner knows at one moment, as a value: for those who decide elsewhere."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stagewise.files.paths import brief
from stagewise.policies.agent.names import name_of
from stagewise.policies.agent.notes import Notes, contradiction_in
from stagewise.policies.agent.saved import numbers
from stagewise.policies.encoded import decoded, encoded
from stagewise.policies.learning import Learning
from stagewise.policies.policy import State
from stagewise.problem.checks import seed_of, shown, whole_at_least
from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.records.reason import Cause

FORMAT, VERSION = "stagewise-snapshot", 1


@dataclass(frozen=True)
class Snapshot:
    """A policy and its memory; what was learned later is not in it, so that deciding by it is only more cautious.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    >>> snapshot = sw.Agent(policy, seed=1).snapshot()
    >>> sw.Snapshot.from_bytes(bytes(snapshot)) == snapshot, snapshot.version
    (True, 0)
    """

    policy: Learning
    """Which policy decides."""
    memory: bytes
    """What it has learned, as 64-bit floats."""
    version: int
    """How often the learner's memory had changed: of two snapshots of one learner the larger knows more."""
    seed: int
    """The learner's seed."""
    name: str = ""
    """The learner's name."""
    doubts: Mapping[str, Cause] = field(default_factory=dict)
    """What contradicts safety, by name: while there is any that nobody acknowledged, the safe action is played."""
    acknowledged: Mapping[str, str] = field(default_factory=dict)
    """Of it, what a person has acknowledged, and with which words."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash((self.memory, self.version, self.seed, self.name))

    def __bytes__(self) -> bytes:
        return json.dumps(self.plain(), allow_nan=False).encode()

    @property
    def notes(self) -> Notes:
        """What contradicts safety and what a person said of it, as an agent notes it; its own with every call."""
        notes = Notes()
        notes.doubts, notes.accepted = dict(self.doubts), dict(self.acknowledged)
        return notes

    @property
    def state(self) -> State:
        """The memory, to be changed as one likes."""
        return State(np.frombuffer(self.memory).copy() if self.memory else np.empty(0))

    def plain(self) -> dict[str, Any]:
        """Return values that JSON can hold; `from_plain` takes them back, to the bit."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "policy": encoded(self.policy),
            "memory": self.state.memory.tolist(),
            "learned": self.version,
            "seed": self.seed,
            "name": self.name,
            "doubts": {name: cause.plain() for name, cause in self.doubts.items()},
            "acknowledged": dict(self.acknowledged),
        }

    @classmethod
    def from_plain(cls, content: Any) -> "Snapshot":
        """Return the snapshot that `plain` wrote down, checked, or say why it is none."""
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise InvalidFile(f"the snapshot is {shown(content)}; it must be what a Snapshot's plain() returned")
        try:
            policy, memory = decoded(content["policy"]), numbers(content["memory"])
            fits = isinstance(policy, Learning) and policy.fits(memory) and bool(np.isfinite(memory).all())
            learned, seed = whole_at_least(content["learned"], "learned", 0), seed_of(content["seed"])
            name = name_of(content["name"], "name")
            doubts = {str(of): contradiction_in(cause) for of, cause in content["doubts"].items()}
            said = {str(of): str(words) for of, words in content["acknowledged"].items()}
        except StagewiseError as error:
            raise InvalidFile(f"the snapshot holds what is refused: {brief(error)}") from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InvalidFile(f"the snapshot lacks something or holds it in another form: {brief(error)}") from None
        if not fits:
            raise InvalidFile("the snapshot holds a memory that does not fit its policy")
        return cls(policy, memory.tobytes(), learned, seed, name, doubts, said)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Snapshot":
        """Return the snapshot whose `bytes` these are."""
        try:
            told = json.loads(content)
        except (TypeError, ValueError, RecursionError):
            raise InvalidFile(f"the snapshot is {shown(content)}; it must be the bytes of a Snapshot") from None
        return cls.from_plain(told)
