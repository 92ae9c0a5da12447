"""From rows of the log to what clients are answered, and to sentences."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.errors import StagewiseError
from stagewise.service.deciding import cause_in
from stagewise.service.messages import Decided, Kept, Refusal
from stagewise.service.records import Event
from stagewise.service.store.store import StoreDown


def in_words(problem: Problem, event: Event, said: dict[str, Any], learned: str = "") -> list[str]:
    """Return a decision as sentences; `learned` is when the last row came that its state had learned."""
    row = said["state"]
    known = f"and what was learned up to row {row}{learned}" if row else "and nothing was learned yet"
    basis = f"By version {said['problem']} of the problem, {known}."
    return [*served(event, said), basis, *reward(problem, said), *limits(problem, said)]


def when(at: int) -> str:
    """Return a time as people write it.

    >>> when(1_700_000_000_250_000)
    '2023-11-14 22:13:20.250 UTC'
    """
    moment = datetime.fromtimestamp(at / 1e6, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def served(event: Event, said: Any) -> Iterator[str]:
    """Say what was served, and why."""
    chance = said["probabilities"][said["action"]]
    drawn = "for certain" if chance == 1.0 else f"drawn with probability {chance:.4g}"
    told = f"{said['action']!r} was served, {drawn}, in mode {said['mode']}"
    yield f"Decision {event.key} (row {event.seq}, {when(event.at)}): {told}."
    cause = cause_in(said)
    if cause is not None:
        yield f"The safe action was served because: {cause.sentence}."
    if "choice" in said:
        told = told_chances(said["choice"]["probabilities"])
        yield f"The policy itself would have drawn {said['choice']['action']!r}, of {told}."
    elif chance < 1.0:
        yield f"It was drawn among {told_chances(said['probabilities'])}: the best mixture under every limit."


def told_chances(probabilities: dict[str, float]) -> str:
    """Return chances as a sentence holds them, those of nothing left out."""
    return ", ".join(f"{name!r} {chance:.4g}" for name, chance in probabilities.items() if chance > 0.0)


def reward(problem: Problem, said: Any) -> Iterator[str]:
    """Say what the reward was estimated at."""
    if said["estimated_reward"] is not None:
        yield f"{problem.reward.name}: estimated at {said['estimated_reward']:.6g}."


def limits(problem: Problem, said: Any) -> Iterator[str]:
    """Say what each limit was feared to be, and what it had to be: the number of the row's own version."""
    for name, kept in said["limits"].items():
        word = "at least" if problem.limits[name].at_least else "at most"
        dearest = "nothing finite" if kept["dearest"] is None else f"{kept['dearest']:.6g}"
        mean = "no estimate" if kept["estimate"] is None else f"estimated at {kept['estimate']:.6g}"
        yield f"{name}: {mean}, {word} {dearest} by what was known; it must be {word} {kept['threshold']:.6g}."


def answer(id_: str, body: dict[str, Any], logged: bool = True) -> Decided:
    """Return a decision's row as it is answered."""
    limits = {name: Kept(kept["dearest"], kept["estimate"], kept["threshold"]) for name, kept in body["limits"].items()}
    cause = cause_in(body)
    return Decided(
        id_, body["action"], body["probabilities"], body["mode"], body["problem"], body["state"], limits,
        None if cause is None else cause.reason, None if cause is None else cause.sentence, body["estimated_reward"],
        logged,
    )  # fmt: skip


def told_of(result: Any, id_: str | None = None) -> Any:
    """Return an answer, or a refusal in its place; what nobody foresaw goes on, and so does a store that is away."""
    if isinstance(result, StagewiseError) and not isinstance(result, StoreDown):
        return Refusal(str(result), id_)
    if isinstance(result, BaseException):
        raise result
    return result
