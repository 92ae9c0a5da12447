"""Endpoints of webhooks, as a TOML file declares them, and signatures as Standard Webhooks 1.0 defines them.

signature = "v1," base64(HMAC-SHA-256(secret, id "." timestamp "." body)),    one for each secret, separated by spaces
"""

import binascii
import hmac
import ipaddress
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from stagewise.files.paths import parse_path, read_file, read_toml
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_path
from stagewise.server.webhooks.events import EventType

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
