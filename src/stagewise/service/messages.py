"""What clients send and what they are answered, as JSON; the words of the HTTP reference (docs/how-to/serve.md)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

PLAIN = r"^[^\x00-\x1f\x7f]*$(?!\n)"  # no control characters, which not every store can hold
Id = Annotated[str, Meta(min_length=1, max_length=256, pattern=PLAIN)]
"""What a client calls a decision or an outcome."""
Known = bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Annotated[str, Meta(max_length=1000)]
"""What can be known of a user: a number, a truth value, or the name of a segment."""
Words = Annotated[str, Meta(min_length=1, max_length=2000)]
Mode = Literal["off", "shadow", "canary", "live"]
LARGEST_BATCH = 1000
RESERVED = ("experiments", "keys", "kill", "revive")
"""What no experiment can be called: /v1/… is something else there."""


class Asked(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A decision that is wanted."""

    context: dict[str, Known] = {}
    """What is known of the user: every number and segment that the problem declares, by name."""
    only: Annotated[list[str], Meta(min_length=1)] | None = None
    """The actions that are on offer, one at least; left out: all of the problem's."""
    decision_id: Id | None = None
    """The client's own id: a retry with the same is answered the same. Left out: the desk makes one."""
    dry_run: bool = False
    """Only say what would be decided: nothing is logged."""
    deferred: bool = False
    """It may never be carried out: nothing is learned of it until an outcome says `shown: true`."""


class Kept(Struct):
    """A limit of a decision, in the user's own units."""

    dearest: float
    """The largest plausible mean of what was drawn from, by what is known; the lowest for an at-least limit."""
    estimate: float | None
    """The estimated mean of what was drawn from; null where the safe action is served without one."""
    threshold: float


class Decided(Struct):
    """A decision."""

    decision_id: str
    action: str
    probabilities: dict[str, float]
    """With which probability each action was served: propensities for off-policy evaluation."""
    mode: str
    """off, shadow, canary, live; killed."""
    version: int
    """The version of the problem."""
    state: int
    """The row of the log up to which the deciding state had learned."""
    limits: dict[str, Kept]
    reason: str | None = None
    """Why the safe action is served, as a code that never changes; null: for no reason of its own."""
    fallback: str | None = None
    """The same as a sentence for people."""
    estimated_reward: float | None = None
    """The estimated mean reward of what was drawn from; null where the safe action is served without one."""
    logged: bool = True
    """False: it was a dry run, or the store could not be reached and outcomes of it cannot be taken."""


class Told(Struct):
    """What became of an outcome."""

    decision_id: str
    taken: list[str]
    """Signals that are in the log by this call."""
    known: list[str] = []
    """Signals that were in the log already, with the same value."""
    late: list[str] = []
    """Signals that came after their window had closed: logged and counted, not learned from."""


class Refusal(Struct, omit_defaults=True):
    """Why something was refused, in one sentence."""

    error: str
    decision_id: str | None = None


class Changed(Struct):
    """A change of mode or of the kill switch, with who and why."""

    mode: str
    share: float
    killed: bool
    control: int
    """The row of the log that holds it."""


class ChangeMode(Struct, forbid_unknown_fields=True):
    """Another mode for an experiment."""

    mode: Mode
    reason: Words
    share: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    """canary: the share of decisions that are the policy's; the others are the safe action."""


class GivenReason(Struct, forbid_unknown_fields=True):
    """Why somebody pulls the kill switch, or lets go of it."""

    reason: Words


class Acknowledge(Struct, forbid_unknown_fields=True):
    """A person's word that a contradiction is known and the experiment may go on."""

    name: Words
    """The name of what is in doubt, as health says it."""
    reason: Words


class NewProblem(Struct, forbid_unknown_fields=True):
    """Another version of a problem."""

    problem: dict[str, Any]
    """As TOML or JSON holds it (docs/how-to/declare-a-problem.md)."""
    reason: Words


OUTCOME_WORDS = ("decision_id", "outcome_id", "shown")


class Outcome(msgspec.Struct):
    """An outcome: the signals of a decision that are known so far."""

    decision_id: str
    values: dict[str, float]
    outcome_id: str | None = None
