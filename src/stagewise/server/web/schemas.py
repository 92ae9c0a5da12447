"""Requests and responses that only the HTTP API has; the others are in `messages`."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from stagewise.server.messages import NO_CONTROL_CHARACTERS, Id


class OutcomeRequest(Struct):
    """An outcome: these fields, and the problem's signals by name, each a number, true or false."""

    decision_id: Id
    outcome_id: Id | UnsetType = UNSET
    """The client's id of this request; a retry with the same id gets the same answer."""
    shown: bool | UnsetType = UNSET
    """False: the decision was not carried out, and nothing is learned from it."""


class ExperimentStatus(Struct):
    """Mode and version of an experiment."""

    name: str
    mode: str
    """off, shadow, canary, live."""
    share: float
    """In mode canary, the share of decisions that are the policy's."""
    killed: str | None
    """Why the kill switch is on; null if it is off."""
    version: int
    """The version of the problem."""


class ExperimentSummary(ExperimentStatus):
    """The status of an experiment."""

    snapshot: int
    """The last row of the log that the policy snapshot has learned."""
    snapshot_age_s: float
    """Age of the policy snapshot that serves decisions, in seconds."""
    alerts: dict[str, str]
    """Declared values that the data contradict and nobody has acknowledged: a message by name."""


class ExperimentDetail(ExperimentSummary):
    """An experiment with its problem."""

    problem: dict[str, Any]
    """The problem, as in a TOML file."""
    context_names: list[str]
    """The columns of a context: of the problem's context, groups and scores."""


class LogRowResponse(Struct):
    """A row of the log."""

    seq: int
    """Its place in the order of the seals: 1, 2, 3, …"""
    number: int
    """Drawn after the row was chosen; the order within a seal."""
    seen: int
    """The highest number that was visible when the row was chosen."""
    at: int
    """Microseconds since 1970."""
    kind: Literal["problem", "decision", "outcome", "control", "tick", "log"]
    key: str
    decision: int
    """For an outcome, the number of its decision; -1 otherwise."""
    body: str
    """The exact JSON text that was authenticated."""
    request_digest: str
    """The digest of the client's request, hexadecimal."""
    writer: str
    link: int
    """1, 2, 3, … among the rows of its writer."""
    mac: str
    """The authentication code of this row and of all rows before it of the same writer, hexadecimal."""


class LogPage(Struct):
    """Rows of a log, in order."""

    rows: list[LogRowResponse]
    after: int
    """The value of `after` for the next request."""
    more: bool
    """Whether there are more rows."""


class GlobalKillResponse(Struct):
    """A change of the kill switch of all experiments."""

    killed: bool
    control: int
    """The row of the change, in the log of global controls."""


class VersionResponse(Struct):
    """The version of a problem."""

    version: int


class LivenessResponse(Struct):
    """The process runs."""

    alive: bool = True


class ReadinessResponse(Struct):
    """Whether decisions can be made and written."""

    ready: bool
    why: str


class AboutResponse(Struct):
    """The version of stagewise."""

    version: str


class KeyRequest(Struct, forbid_unknown_fields=True):
    """A key to create."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9-]{0,39}$")]
    role: Literal["reader", "writer", "admin"]
    note: Annotated[str, Meta(max_length=200, pattern=NO_CONTROL_CHARACTERS)] = ""


class CreatedKey(Struct):
    """A new key."""

    name: str
    role: str
    key: str
    """The key itself; no other response contains it."""


class KeyInfo(Struct):
    """Name, role and times of a key."""

    name: str
    role: str
    note: str
    made: int
    """Microseconds since 1970."""
    revoked: int | None


class FiguresResponse(ExperimentStatus):
    """The figures of an experiment that the page shows, counted from its log."""

    killed_everywhere: bool
    """Whether the kill switch of all experiments is on."""
    now: float
    """Seconds since 1970, by the store's clock."""
    problem: dict[str, Any] | None
    delta: float
    """The error probability of the intervals in these figures."""
    lag_rows: int
    """Rows of the log that are not in these figures yet."""
    decisions: int
    offline_log_rows: int
    """Rows of an offline log that were learned before the first decision."""
    pending_count: int
    buffered_count: int
    lag_s: dict[str, float | None]
    snapshot_age_s: float | None
    max_age_s: float
    """Age at which the policy snapshot counts as stale, in seconds."""
    failed: str | None
    """Why learning fails, or null."""
    reward: dict[str, Any] | None
    proposals: list[dict[str, Any]]
    drifting: list[dict[str, Any]]
    """For each action that recent requests proposed: the share that was played, and when it is played whole."""
    limits: dict[str, dict[str, Any]]
    actions: list[dict[str, Any]]
    """For each action: how often it was served, in total and recently, and its observed means."""
    series: list[dict[str, Any]]
    bucket_s: float
    """Seconds of one interval of the series."""
    reasons: dict[str, int]
    """Number of decisions that served the safe action, by reason."""
    shadow: dict[str, int]
    """What the policy would have served in shadow, by action."""
    stops: list[Any]
    """Automatic stops."""
    controls: list[dict[str, Any]]
    alerts: Any
    warnings: list[str]
    """Names of the findings of `health` that are warnings and that nobody has acknowledged; they stop nothing."""
    last: list[dict[str, Any]]
    health: list[dict[str, Any]]
    pending: list[Any]
