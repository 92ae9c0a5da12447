"""What is sent and answered by HTTP alone, besides `messages`."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from stagewise.service.messages import PLAIN


class Standing(Struct):
    """Which experiment, and who decides in it."""

    name: str
    mode: str
    """off, shadow, canary, live."""
    share: float
    """canary: the share of decisions that are the policy's."""
    killed: str | None
    """Why the kill switch is on; null: it is off."""
    version: int
    """The version of the problem."""


class Summary(Standing):
    """An experiment, and how it stands."""

    state: int
    """The row of the log up to which the deciding state has learned."""
    snapshot_age_s: float
    """How old what decisions are made of is, in seconds."""
    doubts: dict[str, str]
    """What the data contradict and nobody has acknowledged, by name, in words."""


class Whole(Summary):
    """An experiment with its problem."""

    problem: dict[str, Any]
    """As TOML or JSON holds it."""


class Row(Struct):
    """A row of the log."""

    seq: int
    at: int
    """Microseconds since 1970."""
    kind: Literal["problem", "decision", "outcome", "control", "tick", "log"]
    key: str
    place: int
    """A decision's number; -1: it is no decision and no outcome."""
    body: str
    """The row's JSON exactly as it was digested, as text."""
    chain: str
    """The digest of this row and all before it, in hexadecimal digits."""
    asked: str
    """The digest of what a client sent, in hexadecimal digits."""


class Page(Struct):
    """Some rows of a log, in order."""

    rows: list[Row]
    after: int
    """Ask for what follows this row to go on."""
    more: bool
    """Whether there were more when this was read."""


class Everywhere(Struct):
    """A change of the kill switch of all experiments."""

    killed: bool
    control: int
    """The row that holds it, in the log of what holds everywhere."""


class Version(Struct):
    """A version of a problem."""

    version: int


class Alive(Struct):
    """The process is there."""

    alive: bool = True


class Ready(Struct):
    """Whether decisions are better than the safe action now."""

    ready: bool
    why: str


class About(Struct):
    """What runs here."""

    version: str


class NewKey(Struct, forbid_unknown_fields=True):
    """A key that is wanted."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9-]{0,39}$")]
    role: Literal["reader", "writer", "admin"]
    note: Annotated[str, Meta(max_length=200, pattern=PLAIN)] = ""


class MadeKey(Struct):
    """A key that was made."""

    name: str
    role: str
    key: str
    """The key itself: this is the only time that it is shown."""


class KnownKey(Struct):
    """What is known of a key."""

    name: str
    role: str
    note: str
    made: int
    """Microseconds since 1970."""
    revoked: int | None


class Figures(Standing):
    """What the page shows of an experiment, counted from its log."""

    killed_everywhere: bool
    """Whether it is the kill switch of all experiments that is on."""
    now: float
    """Seconds since 1970, by the store's clock."""
    problem: dict[str, Any] | None
    delta: float
    """What the bands of these figures may fail by."""
    behind: int
    """How many rows of the log are not in these figures yet."""
    decisions: int
    log_rows: int
    """How many rows of an offline log were learned before the first decision."""
    waiting: int
    held: int
    lag_s: dict[str, float | None]
    snapshot_age_s: float | None
    max_age_s: float
    """The age of what decisions are made of from which on learning counts as stopped, in seconds."""
    failed: str | None
    """Why nothing is learned of it just now."""
    reward: dict[str, Any] | None
    limits: dict[str, dict[str, Any]]
    actions: list[dict[str, Any]]
    """For each: how often it was served, of all and lately, and what was seen of it."""
    series: list[dict[str, Any]]
    bucket_s: float
    """How many seconds a part of the series covers."""
    fallbacks: dict[str, int]
    would: dict[str, int]
    """What the policy would have served in shadow, by action."""
    trips: list[Any]
    controls: list[dict[str, Any]]
    doubts: Any
    last: list[dict[str, Any]]
    health: list[dict[str, Any]]
    pending: list[Any]
