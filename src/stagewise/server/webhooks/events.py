"""Events of webhooks: rows of the log that change what is served, and alerts that the learner finds in it."""

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from stagewise.agent.changes import identify_change
from stagewise.records.reason import Contradiction, ReasonDetails
from stagewise.server.controls import ACKNOWLEDGE, KILL, MODE, RESUME, TRIP, Controls
from stagewise.server.event_log import CONTROL, PROBLEM, Event, encode_canonical
from stagewise.server.store.base import Store

if TYPE_CHECKING:
    from stagewise.server.experiments import Experiment


class EventType(StrEnum):
    """What happened. Codes never change."""

    STOP = "stop"
    """A person or the server turned the kill switch on."""
    RESUME = "resume"
    """A person turned it off."""
    ALERT = "alert"
    """The data contradict a declared value: the safe action is served until a person acknowledges it."""
    ACKNOWLEDGE = "acknowledge"
    """A person acknowledged an alert or a warning."""
    WARNING = "warning"
    """The data contradict what a limit promises, and decisions go on."""
    JUMP = "jump"
    """The mean of an action moved further than declared."""
    VERSION = "version"
    """The problem has a new version."""
    MODE = "mode"
    """The mode changed."""


TYPES = {
    KILL: EventType.STOP, TRIP: EventType.STOP, RESUME: EventType.RESUME, MODE: EventType.MODE,
    ACKNOWLEDGE: EventType.ACKNOWLEDGE,
}  # fmt: skip


class WebhookEvent(NamedTuple):
    """An event; the same one has the same id, whoever sends it and however often."""

    id: str
    type: EventType
    body: bytes


def build_event(id_: str, type_: EventType, at: int, message: str, **data: Any) -> WebhookEvent:
    """Return an event, at a time in microseconds."""
    timestamp = datetime.fromtimestamp(at / 1e6, UTC).isoformat().replace("+00:00", "Z")
    body = {"type": type_, "timestamp": timestamp, "data": {"message": message, **data}}
    return WebhookEvent(id_, type_, encode_canonical(body))


def read_changes(store: Store, name: str, after: int, last: int) -> Iterator[tuple[Event, WebhookEvent | None]]:
    """Yield the control and problem rows in a range of numbers, with the event of each that is one."""
    kinds = (store.iter_events_of_kind(name, kind, after) for kind in (CONTROL, PROBLEM))
    for row in merge(*kinds, key=attrgetter("number")):
        if row.number > last:
            return
        yield row, build_change(name, row)


def build_change(name: str, row: Event) -> WebhookEvent | None:
    """Return the event of a control or problem row; None: it changes nothing that is served."""
    body = msgspec.json.decode(row.body)
    if row.kind == PROBLEM:
        type_, what = EventType.VERSION, f"version {body['version']} of the problem"
        data = {"version": body["version"]}
    else:
        found = TYPES.get(body["what"])
        if found is None:
            return None
        type_, data = found, {field: value for field, value in body.items() if field in ("mode", "share", "name")}
        share = f" with a share of {body['share']:g}" if body.get("mode") == "canary" else ""
        what = {
            EventType.MODE: f"mode {body.get('mode')}{share}",
            EventType.RESUME: "resumed",
            EventType.ACKNOWLEDGE: f"the alert {body.get('name')!r} is acknowledged",
        }.get(type_, "")
    message = f"{what}, by {body['actor']}"
    message += f": {body['reason']}" if body.get("reason") else ""
    killed = Controls().apply(row).killed
    if killed is not None:
        message, data = killed.message, {"reason": killed.reason, "details": dict(killed.details)}
    data |= {"experiment": name or None, "actor": body["actor"], "number": row.number}
    return build_event(f"evt_{row.mac.hex()[:32]}", type_, row.at, message, **data)


def list_findings(experiment: "Experiment") -> dict[str, tuple[str, EventType, ReasonDetails]]:
    """Return open alerts and warnings by what distinguishes them, each with its name, type and cause."""
    findings = dict[str, tuple[str, EventType, ReasonDetails]]()
    for type_, open_ in ((EventType.ALERT, experiment.alerts), (EventType.WARNING, experiment.warnings)):
        for name, cause in open_.items():
            is_jump = cause.details.get("found") == Contradiction.CHANGE
            key = encode_canonical([name, *(identify_change(cause) if is_jump else ())]).decode()
            findings[key] = name, EventType.JUMP if is_jump else type_, cause
    return findings


def build_finding(
    experiment: "Experiment", key: str, acknowledged: int, name: str, type_: EventType, cause: ReasonDetails, at: int
) -> WebhookEvent:
    """Return the event of a finding; one that comes back after an acknowledgement, by its row, is another event."""
    content = encode_canonical([experiment.name, key, acknowledged])
    id_ = hmac.digest(hmac.digest(experiment.key, b"webhooks", "sha256"), content, "sha256").hex()
    data = {"experiment": experiment.name, "name": name, "reason": cause.reason, "details": dict(cause.details)}
    stops = name in experiment.alerts
    return build_event(f"evt_{id_[:32]}", type_, at, f"{name}: {cause.message}", stops=stops, **data)
