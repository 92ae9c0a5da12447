"""Events of webhooks, and endpoints as a TOML file declares them, signed by Standard Webhooks 1.0.

signature = "v1," base64(HMAC-SHA-256(secret, id "." timestamp "." body)),    one for each secret, separated by spaces
"""

import binascii
import hmac
import ipaddress
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from stagewise.agent.changes import identify_change
from stagewise.files.paths import parse_path, read_file, read_toml
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_path
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


PREFIX = "whsec_"
SECRET_BYTES = range(24, 65)
SETTINGS = ("name", "url", "secrets", "events", "experiments", "allow_http")
URL_RULE = "https://host/path, or http:// to this machine, without a user, a password or a fragment"


class Endpoint(NamedTuple):
    """Where events are sent."""

    name: str
    url: SplitResult
    secret_file: Path
    """One secret a line; each signs, so that the receiver can change from one to the other."""
    events: frozenset[str] = frozenset(EventType)
    experiments: frozenset[str] = frozenset()
    """Empty: all."""
    allow_http: bool = False
    """Whether unencrypted requests may leave this machine."""

    @property
    def is_loopback_only(self) -> bool:
        """Whether the connection must end on this machine."""
        return self.url.scheme == "http" and not self.allow_http

    def wants(self, type_: str, experiment: str) -> bool:
        """Return whether an event is sent; what concerns all experiments concerns each."""
        return type_ in self.events and (not self.experiments or not experiment or experiment in self.experiments)


def load_endpoints(path: Path) -> list[Endpoint]:
    """Read the [[webhook]] tables of a file; their secrets must exist."""
    file = parse_path(path)
    tables = read_toml(file).get("webhook")
    try:
        if not isinstance(tables, list) or not tables:
            raise InvalidProblem(ErrorCode.MISSING_VALUE, "no [[webhook]] is declared; declare one for each receiver")
        endpoints = [parse_endpoint(table, file.parent) for table in tables]
        names = [one.name for one in endpoints]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidProblem(
                ErrorCode.DUPLICATE_NAME, "two webhooks have the name {name!r}; every webhook needs its own", name=twice
            )
        for endpoint in endpoints:
            read_secrets(endpoint.secret_file)
    except StagewiseError as error:
        raise InvalidFile(ErrorCode.FILE_INVALID, "{file}: {error}", file=format_path(file), error=error) from None
    return endpoints


def parse_endpoint(table: Any, folder: Path) -> Endpoint:
    """Return the endpoint of a table; the path of its secrets is relative to the file."""
    table = table if isinstance(table, dict) else {}
    unknown = next((name for name in table if name not in SETTINGS), None)
    if unknown is not None:
        raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SETTING, "a setting of a webhook", unknown, SETTINGS)
    missing = next((name for name in SETTINGS[:3] if name not in table), None)
    if missing is not None:
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "a webhook has no {name}; give it", name=missing)
    name, allow_http = check_name(table["name"], "the name of a webhook"), table.get("allow_http", False)
    if not isinstance(allow_http, bool):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"allow_http of {name!r}", allow_http, "true or false")
    events = parse_names(name, "events", table.get("events", list(EventType)))
    unknown_event = next((event for event in events if event not in list(EventType)), None)
    if unknown_event is not None:
        subject = f"an event of {name!r}"
        raise InvalidProblem.must_be_one_of(ErrorCode.INVALID_CHOICE, subject, unknown_event, list(EventType))
    experiments = parse_names(name, "experiments", table.get("experiments", []))
    url, secrets = parse_url(table["url"], allow_http=allow_http), folder / parse_path(table["secrets"], "secrets")
    return Endpoint(name, url, secrets, events, experiments, allow_http)


def parse_names(webhook: str, what: str, names: Any) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"{what} of {webhook!r}", names, "a list of names")
    return frozenset(names)


def parse_url(value: Any, *, allow_http: bool) -> SplitResult:
    """Return the parts of a URL; http is for this machine, unless it is allowed.

    >>> parse_url("http://127.0.0.1:9000/hook", allow_http=False).port
    9000
    """
    text = value if isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value else ""
    try:
        url = urlsplit(text)
        valid = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
    except ValueError:  # the port is no number, or an address in brackets is none
        valid = False
    if not valid or "@" in url.netloc or url.fragment:
        raise InvalidProblem.must_be(ErrorCode.INVALID_ADDRESS, "the url of a webhook", value, URL_RULE)
    if url.scheme == "http" and not allow_http and not is_loopback(url.hostname or ""):
        rule = "https, or allow_http = true, since its host is not this machine"
        raise InvalidProblem.must_be(ErrorCode.INVALID_ADDRESS, "the url of a webhook", value, rule)
    return url


def is_loopback(host: str) -> bool:
    """Return whether an address, or the name localhost, is this machine.

    >>> is_loopback("127.8.0.1"), is_loopback("::1"), is_loopback("localhost.example.com")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_secrets(path: Path) -> list[bytes]:
    """Return the secrets of a file: a line "whsec_" and base64 of 24 to 64 bytes for each."""
    lines = read_file(path).decode(errors="replace").split()
    try:
        secrets = [b64decode(line.removeprefix(PREFIX), validate=True) for line in lines]
    except binascii.Error:
        secrets = []
    if not secrets or any(len(secret) not in SECRET_BYTES for secret in secrets):  # the message shows no secret
        template = '{path} is no list of secrets; each line must be "whsec_" and base64 of 24 to 64 random bytes'
        raise InvalidFile(ErrorCode.FILE_INVALID, template, path=format_path(path))
    return secrets


def sign(secrets: Sequence[bytes], id_: str, timestamp: int, body: bytes) -> str:
    """Return the header webhook-signature.

    >>> secret = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    >>> sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    content = f"{id_}.{timestamp}.".encode() + body
    return " ".join(f"v1,{b64encode(hmac.digest(secret, content, 'sha256')).decode()}" for secret in secrets)
