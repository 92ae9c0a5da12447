"""What a client is answered, and what it sends."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import shown
from stagewise.service.ids import fresh_id

LARGEST_BATCH = 1000  # what the desk takes at once
LARGEST_BODY = 1_000_000  # bytes


class DeskRefused(StagewiseError):
    """The desk understood, and says no: in its own sentence."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class DeskAway(StagewiseError):
    """An outcome could not be told: the desk did not answer in time. It may be told again."""


class Wanted(NamedTuple):
    """A decision that is wanted, where there is more to say than the context."""

    context: Mapping[str, Any] = {}
    only: Sequence[str] | None = None
    decision_id: str | None = None


class Decision(NamedTuple):
    """What to do for a user. Where `logged` is false it is the safe action, and `reason` says why."""

    decision_id: str
    action: str
    probabilities: dict[str, float]
    mode: str = "away"
    version: int = 0
    state: int = -1
    limits: Mapping[str, Mapping[str, float | None]] = {}
    fallback: str | None = None
    estimated_reward: float | None = None
    logged: bool = True
    reason: str | None = None
    """Why the safe action is served, as a code (`stagewise.Reason`); `fallback` is its sentence."""


class Refused(NamedTuple):
    """What the desk refused of a batch, in its own sentence."""

    error: str
    decision_id: str | None = None


class Told(NamedTuple):
    """What became of an outcome: which signals are in the log now, which were before, and which came too late."""

    decision_id: str
    taken: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


def asked_of(wanted: Wanted) -> dict[str, Any]:
    """Return what is sent for a decision; its id is made here, so that every retry asks for the same one."""
    if not isinstance(wanted.context, Mapping):
        raise StagewiseError(f"the context is {shown(wanted.context)}; it must be a mapping by name")
    asked: dict[str, Any] = {"context": dict(wanted.context), "decision_id": wanted.decision_id or fresh_id()}
    return asked if wanted.only is None else {**asked, "only": list(wanted.only)}


def batches(rows: Sequence[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Give rows in portions that the desk takes: neither too many nor too large.

    >>> list(batches(["a", "b", "c"], lambda row: 400_000))
    [['a', 'b'], ['c']]
    """
    portion: list[Any] = []
    total = 0
    for row in rows:
        more = size(row) + 1
        if portion and (len(portion) == LARGEST_BATCH or total + more > LARGEST_BODY):
            yield portion
            portion, total = [], 0
        portion.append(row)
        total += more
    if portion:
        yield portion


def told_of(content: Mapping[str, Any]) -> Told:
    """Return what became of an outcome."""
    return Told(content["decision_id"], *(tuple(content.get(name, ())) for name in Told._fields[1:]))


def refused_of(content: Mapping[str, Any]) -> Refused:
    """Return a refusal."""
    return Refused(content["error"], content.get("decision_id"))


def encoded(content: Any) -> bytes:
    """Return what is sent."""
    try:
        return json.dumps(content, allow_nan=False, default=plain).encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, StagewiseError):
            raise
        raise StagewiseError(f"{shown(content)} cannot be sent as JSON: {error}") from None


def size(content: Any) -> int:
    """Return how many bytes something takes."""
    return len(encoded(content))


def plain(value: Any) -> Any:
    """Return a number of NumPy as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise StagewiseError(f"{shown(value)} is no JSON; contexts and outcomes hold numbers, text and truth values")
