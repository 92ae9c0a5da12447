"""One decision in words: what was asked and known, what each action could cost, what was drawn, what came of it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.plain_limits import in_words
from stagewise.problem.words import shown
from stagewise.service.audit.reading import kind_of
from stagewise.service.audit.replaying import Made, Replay
from stagewise.service.deciding import Known, draw_of, offered_of
from stagewise.service.errors import UnknownDecision
from stagewise.service.records import DECISION, OUTCOME, SHOWN, Event
from stagewise.service.store.store import Store


def explained(store: Store, experiment: str, id_: str) -> str:
    """Return a decision in words; its bounds are computed again from the log."""
    replay = Replay(store, experiment)
    event = store.find(experiment, DECISION, id_)
    if event is None:
        raise UnknownDecision(f"{shown(id_)} is no decision of {shown(experiment)}")
    said = msgspec.json.decode(event.body)
    made = Made(said["problem"], said["state"], event.seq)
    known = next(known for known, _ in replay.known_at([made]))
    lines = [*served(event, said), *asked(said), *learned(store, experiment, said)]
    if known is not None:
        lines += [*limits(known.problem, said), *bounds(known, replay.key, id_, said)]
    different = replay.difference(known, event)
    lines.append("Made again from the log: the same to the bit." if different is None else f"Made again: {different}.")
    return "\n".join([*lines, *came(store, experiment, event, replay.versions[said["problem"]].problem)])


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
    yield f"Decision {event.key} (row {event.seq}, {when(event.at)}): {said['action']!r}, {drawn}, mode {said['mode']}."
    if said["fallback"] is not None:
        yield f"The safe action was served because: {said['fallback']}."
    if "choice" in said:
        told = told_chances(said["choice"]["probabilities"])
        yield f"The policy itself would have drawn {said['choice']['action']!r}, of {told}."
    elif chance < 1.0:
        yield f"It was drawn among {told_chances(said['probabilities'])}: the best mixture under every limit."


def told_chances(probabilities: dict[str, float]) -> str:
    """Return chances as a sentence holds them, those of nothing left out."""
    return ", ".join(f"{name!r} {chance:.4g}" for name, chance in probabilities.items() if chance > 0.0)


def asked(said: Any) -> Iterator[str]:
    """Say what was asked."""
    context = ", ".join(f"{name} = {value!r}" for name, value in said["asked"]["context"].items())
    only = said["asked"].get("only")
    offer = "all actions on offer" if only is None else f"on offer: {', '.join(map(repr, only))} and the safe action"
    yield f"Asked for {context or 'a user of whom nothing is told'}; {offer}."


def learned(store: Store, experiment: str, said: Any) -> Iterator[str]:
    """Say what was known."""
    row = said["state"]
    if row == 0:
        yield f"By version {said['problem']} of the problem; nothing was learned yet."
        return
    last = store.events(experiment, row - 1, 1)
    at = f" ({when(last[0].at)})" if last else ""
    yield f"By version {said['problem']} of the problem, and what was learned up to row {row}{at}."


def limits(problem: Problem, said: Any) -> Iterator[str]:
    """Say what each limit was feared to be, and what it may be."""
    for name, kept in said["limits"].items():
        limit = in_words(problem.limits[name])
        word = "at least" if limit.startswith("at least") else "at most"
        yield f"  {name}: {word} {kept['dearest']:.6g} in expectation by what was known; it must be {limit}."


def bounds(known: Known, key: bytes, id_: str, said: Any) -> Iterator[str]:
    """Say what was known of every action on offer, as the policy saw it."""
    offered = offered_of(known, said["asked"]["context"], said["asked"].get("only"))
    decision = known.policy.choose(known.state, offered, draw_of(key, id_))
    yield "What the policy knew of each action (the reward hoped for, the highest plausible cost, its chance):"
    table = decision.explanation().splitlines()[1:]
    yield from (f"  {line}" for line in table)


def came(store: Store, experiment: str, event: Event, problem: Problem) -> Iterator[str]:
    """Say which outcomes came when, and which did not."""
    told: set[str] = set()
    for row in kind_of(store, experiment, OUTCOME, event.seq):
        if row.place == event.place:
            values = msgspec.json.decode(row.body)["values"]
            told |= set(values)
            said = ", ".join("it was not shown" if n == SHOWN and not v else f"{n} = {v:g}" for n, v in values.items())
            yield f"Outcome (row {row.seq}, {when(row.at)}, {(row.at - event.at) / 1e6:.1f} s later): {said}."
            if values.get(SHOWN) == 0.0:
                yield "So nothing is learned from it."
                return
    if msgspec.json.decode(event.body)["asked"].get("deferred") and SHOWN not in told:
        yield "It was deferred, and nobody has said that it was shown: nothing is learned from it."
        return
    now = store.head(experiment).at
    for name in problem.signals:
        window = problem.windows.get(name)
        if name in told:
            continue
        if window is None:
            yield f"No {name} has come; it has no window, so it is waited for."
        elif now - event.at < window.seconds * 1e6:
            yield f"No {name} has come yet; its window closes at {when(event.at + round(window.seconds * 1e6))}."
        else:
            yield f"No {name} came; {window.in_words}."
