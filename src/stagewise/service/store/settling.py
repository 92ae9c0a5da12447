"""Whether what is asked can be written, and as which row: the same for every store, and without any.

A store locks the logs that a batch touches, reads what it `wants`, has the batch settled, and writes what came out.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from stagewise.problem.words import shown
from stagewise.service.records import (
    CONFLICT,
    CONTROL,
    DECISION,
    EVERYWHERE,
    LOG,
    NEW,
    OUTCOME,
    PROBLEM,
    SAME,
    SHOWN,
    STALE,
    UNKNOWN,
    Ask,
    Event,
    Head,
    Settled,
    Verdict,
    canonical,
    linked,
)

LONGEST = 256  # letters of a name or an id, as in the messages
OWN = "#"  # begins the ids of decisions and outcomes that the store gives, and no others
HALF = re.compile("[\ud800-\udfff]")  # of a pair: UTF-8 has no letters for it

Named = tuple[str, str, str]
"""An experiment, a kind, and a key."""


class Row(NamedTuple):
    """A row of a log."""

    experiment: str
    event: Event


class Answer(NamedTuple):
    """The value of one signal of a decision."""

    experiment: str
    place: int
    signal: str
    value: float
    seq: int
    """The row that told it."""


@dataclass
class Held:
    """What a store holds of what a batch touches; settling a batch adds to it."""

    heads: dict[str, Head]
    """Where logs end; all that `touched` names."""
    rows: dict[Named, Row] = field(default_factory=dict)
    """All rows that are there of those which the batch `wants`."""
    answers: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """Signals that are known of the decisions among them: by experiment and place."""
    ends: dict[str, int] = field(default_factory=dict)
    """The last row of every experiment's log, where something is asked that holds everywhere."""


class Batch(NamedTuple):
    """What a store has to write, and what it answers then."""

    settled: list[Settled]
    rows: list[Row]
    answers: list[Answer]
    heads: dict[str, Head]
    """Those that moved."""


def touched(asks: Iterable[Ask]) -> set[str]:
    """Return the experiments whose heads a batch needs."""
    return {EVERYWHERE} | set(filter(sayable, {ask.experiment for ask in asks}))


def wants(asks: Iterable[Ask]) -> set[Named]:
    """Return the rows that a batch asks about: those with its keys, and the decisions of its outcomes."""
    named = {(ask.experiment, str(ask.kind), ask.key) for ask in asks if ask.key}
    named |= {(ask.experiment, DECISION, ask.of) for ask in asks if ask.kind == OUTCOME}
    return {name for name in named if sayable(name[0]) and sayable(name[2])}


def settle(asks: Sequence[Ask], held: Held, now: int) -> Batch:
    """Settle a batch in its order; an ask may meet what another one before it in the batch has just added."""
    before, batch = dict(held.heads), Batch([], [], [], {})
    for ask in asks:
        batch.settled.append(settled(ask, held, batch, now))
    batch.heads.update({name: head for name, head in held.heads.items() if head is not before.get(name)})
    return batch


def settled(ask: Ask, held: Held, batch: Batch, now: int) -> Settled:
    """Settle one ask, and add to the batch what is to be written."""
    refused = refusal(ask)
    if refused:
        return Settled(CONFLICT, words=refused)
    there = held.rows.get((ask.experiment, ask.kind, ask.key)) if ask.key else None
    if there is not None:
        return repeated(ask, there, held)
    if ask.kind == OUTCOME:
        return outcome(ask, held, batch, now)
    if ask.kind == DECISION and outdated(ask, held):
        return Settled(STALE, words=f"the controls changed while decision {shown(ask.key)} was made; decide again")
    if ask.kind == LOG and not begins(ask, held):
        return Settled(CONFLICT, words=f"{shown(ask.experiment)} has decisions, or another offline log")
    place = held.heads[ask.experiment].places if ask.kind == DECISION else -1
    return Settled(NEW, written(ask, ask.body, place, held, batch, now))


def repeated(ask: Ask, there: Row, held: Held) -> Settled:
    """Settle an ask whose key is in the log: what was answered first follows from the row, and from its decision's."""
    if there.event.asked != digest(ask):
        words = f"{ask.kind} {shown(ask.key)} is in the log with other content; an id stands for one content, for good"
        return Settled(CONFLICT, there.event, words)
    if ask.kind != OUTCOME:
        return Settled(SAME, there.event)
    taken = msgspec.json.decode(there.event.body)["values"]
    known = tuple(sorted(ask.values.keys() - taken))
    dated = held.rows[ask.experiment, DECISION, ask.of].event.at
    return Settled(SAME, there.event, taken=tuple(sorted(taken)), known=known, dated=dated)


def outdated(ask: Ask, held: Held) -> bool:
    """Say whether a decision was made by controls that are not the last ones."""
    own, all_ = ask.control
    return 0 <= own < held.heads[ask.experiment].control or 0 <= all_ < held.heads[EVERYWHERE].control


def begins(ask: Ask, held: Held) -> bool:
    """Say whether a part of an offline log comes before all decisions, and after the part before it of the same log."""
    before = held.rows.get((ask.experiment, LOG, str(int(ask.key) - 1)))
    return not held.heads[ask.experiment].places and (
        ask.key == "1" if before is None else before.event.asked == ask.asked
    )


def outcome(ask: Ask, held: Held, batch: Batch, now: int) -> Settled:
    """Settle signals: each counts once; another value than the one that is known refuses the whole outcome."""
    decision = held.rows.get((ask.experiment, DECISION, ask.of))
    if decision is None:
        return Settled(UNKNOWN, words=f"no decision {shown(ask.of)} is in the log of {shown(ask.experiment)}")
    place = decision.event.place
    answers = held.answers.setdefault((ask.experiment, place), {})
    signals = sorted(ask.values)
    for signal in signals:
        if answers.get(signal, ask.values[signal]) != ask.values[signal]:
            words = f"{signal} of decision {shown(ask.of)} is {answers[signal]} in the log, not {ask.values[signal]}"
            return Settled(CONFLICT, words=f"{words}; what was told once stays")
    both = {**answers, **ask.values}
    if both.get(SHOWN) == 0.0 and len(both) > 1:
        words = f"decision {shown(ask.of)} cannot have an outcome and not have been shown"
        return Settled(CONFLICT, words=f"{words}; what was told first stays")
    taken = tuple([signal for signal in signals if signal not in answers])
    known = tuple([signal for signal in signals if signal in answers])
    if not taken and not ask.key:
        return Settled(SAME, known=known)
    event = written(ask, without(ask.body, known), place, held, batch, now)
    for signal in taken:
        answers[signal] = float(ask.values[signal])
        batch.answers.append(Answer(ask.experiment, place, signal, answers[signal], event.seq))
    verdict: Verdict = NEW if taken else SAME  # an id that adds nothing is remembered too: it stands for one content
    return Settled(verdict, event, taken=taken, known=known, dated=decision.event.at)


def written(ask: Ask, body: bytes, place: int, held: Held, batch: Batch, now: int) -> Event:
    """Return the row that follows the end of its log, and move that end."""
    head = held.heads[ask.experiment]
    seq, at = head.seq + 1, max(now, head.at, ask.at)
    key = ask.key or (f"{OWN}{seq}" if ask.kind in (DECISION, OUTCOME) else str(seq))
    if ask.experiment == EVERYWHERE:
        body = with_ends(body, held)
    asked = digest(ask)
    chain = linked(head.chain, [ask.experiment, seq, at, ask.kind, key, place, asked.hex()], body)
    event = Event(seq, at, ask.kind, key, place, body, chain, asked)
    row = Row(ask.experiment, event)
    batch.rows.append(row)
    held.rows[ask.experiment, ask.kind, key] = row
    places = head.places + (ask.kind == DECISION)
    control = seq if ask.kind in (CONTROL, PROBLEM) else head.control
    held.heads[ask.experiment] = Head(seq, at, places, control, chain)
    return event


def without(body: bytes, known: Sequence[str]) -> bytes:
    """Return an outcome's body less the signals that are in the log already."""
    if not known:
        return body
    said = msgspec.json.decode(body)
    said["values"] = {signal: value for signal, value in said["values"].items() if signal not in known}
    return canonical(said)


def with_ends(body: bytes, held: Held) -> bytes:
    """Return a control that holds everywhere, with the last row of each log before it: what follows knows it."""
    ends = held.ends | {name: head.seq for name, head in held.heads.items() if name != EVERYWHERE}
    return canonical({**msgspec.json.decode(body), "ends": {name: seq for name, seq in ends.items() if seq}})


def holds_everywhere(asks: Iterable[Ask]) -> bool:
    """Say whether a batch asks for what holds everywhere, so that it needs to know where every log ends."""
    return any(ask.experiment == EVERYWHERE for ask in asks)


def digest(ask: Ask) -> bytes:
    """Return what tells the same content from another: of what a client sent, or else of the body."""
    return ask.asked or hashlib.sha256(ask.body).digest()


def sayable(text: str) -> bool:
    """Say whether every store can hold a name or an id, in its columns and in its indices."""
    return len(text) <= LONGEST and "\0" not in text and (text.isascii() or HALF.search(text) is None)


def refusal(ask: Ask) -> str:
    """Say what no log can hold; empty: nothing of the kind."""
    for name in (ask.experiment, ask.key, *ask.values):
        if not sayable(name):
            return f"{shown(name)} is no name or id: up to {LONGEST} letters, none of value 0 or half of a pair"
    for signal, value in ask.values.items():
        if not math.isfinite(value):
            return f"{signal} is {value}; a signal is a finite number"
    if (
        ask.key.startswith(OWN)
        if ask.kind in (DECISION, OUTCOME)
        else ask.kind not in (PROBLEM, LOG) and ask.key.isdecimal()
    ):
        return f"the id {shown(ask.key)} may be one of the store's own; choose another"
    if ask.experiment == EVERYWHERE and ask.kind != CONTROL:
        return f"a {ask.kind} belongs to an experiment; only controls hold everywhere"
    return ""
