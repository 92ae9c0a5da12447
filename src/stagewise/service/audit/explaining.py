"""One decision in words: what was asked and known, what each action could cost, what was drawn, what came of it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.words import shown
from stagewise.service.answers import in_words, when
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
    problem = replay.versions[made.version].problem
    lines = [*in_words(problem, event, said, learned(store, experiment, made.state)), *asked(said)]
    if known is not None:
        lines += bounds(known, replay.key, id_, said)
    different = replay.difference(known, event)
    lines.append("Made again from the log: the same to the bit." if different is None else f"Made again: {different}.")
    return "\n".join([*lines, *came(store, experiment, event, problem)])


def asked(said: Any) -> Iterator[str]:
    """Say what was asked."""
    context = ", ".join(f"{name} = {value!r}" for name, value in said["asked"]["context"].items())
    only = said["asked"].get("only")
    offer = "all actions on offer" if only is None else f"on offer: {', '.join(map(repr, only))} and the safe action"
    yield f"Asked for {context or 'a user of whom nothing is told'}; {offer}."


def learned(store: Store, experiment: str, row: int) -> str:
    """Return when a row came, in words."""
    last = store.events(experiment, row - 1, 1) if row else []
    return f" ({when(last[0].at)})" if last else ""


def bounds(known: Known, key: bytes, id_: str, said: Any) -> Iterator[str]:
    """Say what was known of every action on offer, as the policy saw it."""
    offered = offered_of(known, said["asked"]["context"], said["asked"].get("only"))
    decision = known.policy.choose(known.state, offered, draw_of(key, id_))
    yield "What the policy knew of each action (estimates, bounds, and its probability):"
    table = decision.explain().splitlines()[1:]
    yield from (f"  {line}" for line in table)


def came(store: Store, experiment: str, event: Event, problem: Problem) -> Iterator[str]:
    """Say which outcomes came when, and which did not."""
    told: set[str] = set()
    for row in store.all_of_kind(experiment, OUTCOME, event.seq):
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
