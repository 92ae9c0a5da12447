"""The log explains every answer, and the answers explain every row of the log."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
from tests.server.contending.clients import HUNG_UP, SIGNALS, Said

from stagewise.server.controls import Controls, is_in_canary
from stagewise.server.decide import decode_decision
from stagewise.server.event_log import Event

WINDOW = 1_000_000  # microseconds
REASONS = {"off": "experiment_off", "shadow": "shadow", "canary": "outside_canary"}
HAIR = 1_000  # microseconds by which a store's clock may follow its server's meanwhile


class Told(NamedTuple):
    """A signal of a decision, as it is in the log."""

    value: float
    row: Event
    late: bool


class Log(NamedTuple):
    """What rows say, by id."""

    decisions: dict[str, tuple[Event, Any]]
    outcomes: dict[str, tuple[Event, Any]]
    signals: dict[str, dict[str, Told]]
    """Of each decision."""


def read(events: Sequence[Event], everywhere: Sequence[Event]) -> Log:
    """Read a log whose rows follow one another, obey the controls before them, and tell each signal once."""
    log, controls = Log({}, {}, {}), Controls()
    stopped = standing(everywhere)
    for number, event in enumerate(events, 1):
        assert event.seq == number
        assert event.seen < event.number
        body = msgspec.json.decode(event.body)
        if event.kind in ("control", "problem"):
            controls = controls.apply(event)
        elif event.kind == "decision":
            assert event.key not in log.decisions
            log.decisions[event.key], log.signals[event.key] = (event, body), {}
            obeyed(event, body, controls, stopped)
        elif event.kind == "outcome":
            assert event.key not in log.outcomes
            log.outcomes[event.key] = event, body
            note(event, body, log)
    return log


def standing(everywhere: Sequence[Event]) -> list[Controls]:
    """Return what held for all experiments, in order; a change is written while nothing else is."""
    return list(accumulate(everywhere, Controls.apply, initial=Controls()))


def obeyed(event: Event, body: Any, own: Controls, stopped: list[Controls]) -> None:
    """A decision was made by the controls that held when it was written."""
    first, second = body["control"]
    assert first == own.row, "no decision is written under controls that are past"
    everywhere = [controls for controls in stopped if controls.row < event.number][-1]
    assert everywhere.row == second, "nor under those of all experiments"
    killed = own.killed is not None or everywhere.killed is not None
    assert body["mode"] == ("killed" if killed else own.mode)
    left = own.mode == "canary" and not is_in_canary(event.key, own.share)
    if killed or left or own.mode in ("off", "shadow"):
        assert (body["action"], body["reason"] in ("killed", "tripped")) == ("nothing", killed)
        assert killed or body["reason"] == REASONS[own.mode]


def note(event: Event, body: Any, log: Log) -> None:
    """Note the signals of an outcome: each is told once, and none of what was not shown."""
    decision, mine = log.decisions[body["decision_id"]][0], log.signals[body["decision_id"]]
    assert event.decision == decision.number
    assert not mine.keys() & body["values"].keys()
    late = event.at - decision.at >= WINDOW
    mine |= {name: Told(float(value), event, late and name in SIGNALS) for name, value in body["values"].items()}
    assert "shown" not in mine or mine["shown"].value or len(mine) == 1


def explain(said: Sequence[Said], log: Log) -> None:
    """Hold every answer against the log, and the log against the answers."""
    by_id: dict[str, Said] = {}
    for one in said:
        if one.status != HUNG_UP:
            try:
                (decided if one.path == "decisions" else told)(one, log, by_id)
            except (AssertionError, KeyError) as error:
                raise AssertionError(f"{error!r}: {one}") from error
    nobody_else(said, log)


def decided(one: Said, log: Log, _: Any) -> None:
    """Explain what was answered to who asked for a decision."""
    id_, context = one.sent["decision_id"], one.sent["context"]
    if one.status == 422:
        assert context["age"] == "old"
        return
    event, body = log.decisions[id_]
    assert event.at <= one.ended + HAIR
    if one.status == 409:
        assert body["request"]["context"] != context
        assert one.answer["code"] == "conflict"
        assert f"decision '{id_}' is in the log with other content" in one.answer["message"]
    else:
        assert one.status == 200
        assert body["request"]["context"] == context
        assert one.answer == msgspec.to_builtins(decode_decision(event.body).to_response(id_, event.receipt))


def told(one: Said, log: Log, by_id: dict[str, Said]) -> None:
    """Explain what was answered to who told an outcome."""
    id_, own = one.sent["decision_id"], one.sent.get("outcome_id")
    there = log.decisions.get(id_)
    if one.status == 404:
        assert one.answer["code"] == "unknown_decision"
        assert there is None or one.began <= there[0].at + HAIR, "it was there before it was asked for"
        return
    if one.status == 409:
        conflict(one, log)
        return
    assert one.status == 200
    known = log.signals[id_]
    assert {name: known[name].value for name in one.values} == one.values
    assert all(known[name].row.at <= one.ended + HAIR for name in one.values)
    assert sorted([*one.answer["accepted"], *one.answer["duplicate"]]) == sorted(one.values)
    assert one.answer["late"] == [name for name in one.answer["accepted"] if known[name].late]
    by = {known[name].row.seq for name in one.answer["accepted"]}
    assert len(by) <= 1, "what a call tells is one row"
    if own is None:
        assert all(known[name].row.key == f"#{known[name].row.number}" for name in one.answer["accepted"])
    else:
        row, body = log.outcomes[own]
        assert body["decision_id"] == id_
        assert by <= {row.seq}
        first = by_id.setdefault(own, one)
        assert first.values == one.values, "an id stands for one content"
        assert first.answer == one.answer, "a retry is answered the same"
        assert body["values"] == {name: one.values[name] for name in one.answer["accepted"]}


def conflict(one: Said, log: Log) -> None:
    """Trace a conflict to the row that it is with: the sentence says which, and the row was there."""
    id_, own, words = one.sent["decision_id"], one.sent.get("outcome_id"), one.answer["message"]
    before = {name: it for name, it in log.signals.get(id_, {}).items() if it.row.at <= one.ended + HAIR}
    other = re.search(r"(\w+) of decision '([^']+)' is ([\d.]+) in the log, not ([\d.]+);", words)
    if other is not None:
        name, of, there, sent = other.groups()
        assert (of, float(there), float(sent)) == (id_, before[name].value, one.values[name])
        assert float(there) != float(sent)
    elif f"outcome '{own}' is in the log with other content" in words:
        row, body = log.outcomes[own or ""]
        assert row.at <= one.ended + HAIR
        known = log.signals[body["decision_id"]]
        same = body["decision_id"] == id_ and body["values"].items() <= one.values.items()
        earlier = all(name in known and known[name].row.seq <= row.seq for name in one.values)
        assert not (same and earlier and len(one.values) == len(body["values"])), "it is the same content"
    else:
        assert f"decision '{id_}' cannot have both an outcome and shown: false" in words
        shown = one.values.get("shown", before["shown"].value if "shown" in before else 1.0)
        assert shown == 0.0
        assert len(before.keys() | one.values.keys()) > 1


def nobody_else(said: Sequence[Said], log: Log) -> None:
    """Every row is what somebody sent, and was told of; what is refused has left none."""
    good = [one for one in said if one.status in (200, HUNG_UP)]
    asked = {(one.sent["decision_id"], one.sent["context"]["age"]) for one in good if one.path == "decisions"}
    assert {(key, body["request"]["context"]["age"]) for key, (_, body) in log.decisions.items()} <= asked
    told = [one for one in good if one.path == "outcomes"]
    taken = {
        (one.sent["decision_id"], name) for one in told for name in (one.answer or {"accepted": one.values})["accepted"]
    }
    assert {(id_, name) for id_, signals in log.signals.items() for name in signals} <= taken
