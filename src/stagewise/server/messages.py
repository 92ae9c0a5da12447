"""Requests, responses and errors of the HTTP API, as JSON (docs/reference/http.md)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from stagewise.problem.errors import StagewiseError

NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$(?!\n)"  # not every store can hold control characters
Id = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL_CHARACTERS)]
"""A client's id of a decision or an outcome."""
ContextValue = (
    bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Annotated[str, Meta(max_length=1000)] | None
)
"""A context value: a number, true or false, a level or a segment, a date as text; null: missing."""
Text = Annotated[str, Meta(min_length=1, max_length=2000)]
Mode = Literal["off", "shadow", "canary", "live"]
MAX_BATCH_SIZE = 1000
RESERVED_NAMES = ("experiments", "keys", "kill", "resume")
"""Names that an experiment cannot have, because /v1/… uses them."""


class DecisionRequest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A request for a decision."""

    context: dict[str, ContextValue] = {}
    """Every column that the problem declares, by name; one that may be missing can be null or left out."""
    only: Annotated[list[str], Meta(min_length=1)] | None = None
    """The available actions, at least one; default: all."""
    decision_id: Id | None = None
    """The client's id; a retry with the same id gets the same answer. Default: the server creates one."""
    dry_run: bool = False
    """Return what would be decided; log nothing."""
    deferred: bool = False
    """The decision may never be carried out; nothing is learned until an outcome has `shown: true`."""
    propose: str | dict[str, float] | None = None
    """An action, or probabilities by action (the rest is the safe action's): as much of it as is safe is played."""
    user: Id | None = None
    """The user: the context is kept under a key of this user, which can be destroyed; the name is not kept."""
    scores: dict[str, float] | None = None
    """A score for every action, in the range of the reward: the safe mixture with the highest score is played."""


class LimitStatus(Struct):
    """A limit of a decision, in the problem's units."""

    estimate: float | None
    """The estimated mean cost of the sampled mixture; null if the safe action is served without asking the policy."""
    pessimistic_cost: float | None
    """The upper confidence bound of the mean cost of the sampled mixture; the lower bound for an at-least limit.

    Null if it is not finite.
    """
    threshold: float


class ProposalResult(Struct, omit_defaults=True):
    """What became of `propose` or `scores`."""

    binding: list[str]
    """The limits that hold the rest back."""
    held_back: dict[str, float] = {}
    """By action, how much of its proposed probability is not played."""
    overlap: float | None = None
    """The share of the proposal that is played; left out for scores."""


class DecisionResponse(Struct):
    """A decision."""

    decision_id: str
    action: str
    probabilities: dict[str, float]
    """The probability of each action: propensities for off-policy evaluation."""
    mode: str
    """off, shadow, canary, live or killed."""
    version: int
    """The version of the problem."""
    snapshot: int
    """The last row of the log that the policy snapshot had learned."""
    limits: dict[str, LimitStatus]
    reason: str | None = None
    """Why the safe action is served, as a code that never changes; null if there is no reason."""
    message: str | None = None
    """The reason as a sentence for people."""
    estimated_reward: float | None = None
    """The estimated mean reward of the sampled mixture; null if the safe action is served without asking the policy."""
    logged: bool = True
    """False for a dry run, or if the store could not be reached; outcomes are not accepted then."""
    receipt: str | None = None
    """The number of the row in the log and its authentication code, `number:code`; null if it was not logged."""
    proposal: ProposalResult | UnsetType = UNSET
    """What became of `propose` or `scores`; left out if the request had neither."""
    reward_guarantee: str | UnsetType = UNSET
    """`forgetting` where outcomes of the reward lose weight with age, so that no theorem bounds its mean."""


class OutcomeResponse(Struct):
    """The result of an outcome."""

    decision_id: str
    accepted: list[str]
    """Signals that this request added to the log."""
    duplicate: list[str] = []
    """Signals that were in the log with the same value."""
    late: list[str] = []
    """Signals that arrived after their window closed; counted, not learned."""
    receipt: str | None = None
    """The number of the row in the log and its authentication code; null if the request added no row."""


class ErrorResponse(Struct, omit_defaults=True):
    """An error: its code, which never changes, and one sentence."""

    code: str
    message: str
    decision_id: str | None = None


class ModeResponse(Struct):
    """The mode and kill switch after a change."""

    mode: str
    share: float
    killed: bool
    control: int
    """The row of the log that has the change."""


class ModeRequest(Struct, forbid_unknown_fields=True):
    """A change of mode."""

    mode: Mode
    reason: Text
    share: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    """In mode canary, the share of decisions that the policy makes; the others get the safe action."""


class ReasonRequest(Struct, forbid_unknown_fields=True):
    """A reason for turning the kill switch on or off."""

    reason: Text


class AcknowledgeRequest(Struct, forbid_unknown_fields=True):
    """The acknowledgement of an alert."""

    name: Text
    """The name of the alert, as in the health findings."""
    reason: Text


class RelearnRequest(Struct, forbid_unknown_fields=True):
    """An action to learn again."""

    action: Text
    reason: Text
    before: float | None = None
    """The time of the first decision whose outcome counts, in seconds since 1970; default: none so far counts."""


class ProblemRequest(Struct, forbid_unknown_fields=True):
    """A new version of a problem."""

    problem: dict[str, Any]
    """As in a TOML or JSON file (docs/how-to/declare-a-problem.md)."""
    reason: Text


OUTCOME_FIELDS = ("decision_id", "outcome_id", "shown")


class OutcomeUpdate(msgspec.Struct):
    """Reported signals of a decision."""

    decision_id: str
    values: dict[str, float]
    outcome_id: str | None = None


class UnknownExperiment(StagewiseError):
    """The server has no experiment of this name."""


class UnknownDecision(StagewiseError):
    """The log has no decision with this id."""


class UnsupportedRequest(StagewiseError):
    """The request needs something that this server does not have."""


class Conflict(StagewiseError):
    """The request contradicts what is stored."""
