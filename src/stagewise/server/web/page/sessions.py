"""Sessions of the page: a signed cookie, a token on every form, and the origin from which forms may come.

    cookie = name . until . random . HMAC(secret, "session" ‖ the rest),   token = HMAC(secret, "form" ‖ cookie)

The secret is the store's, so that every server of the store accepts every session; sessions are not stored. A session
ends when it expires, when its key is revoked, or at logout.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.access_keys import AccessKeys, KeyHolder

SESSION_HOURS = 12
SECURE_COOKIE, PLAIN_COOKIE = (
    "__Host-stagewise",
    "stagewise",
)  # browsers accept __Host- only over TLS and from this host
DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidAddress(StagewiseError):
    """An invalid address of the page."""


class Session(NamedTuple):
    """A session: the holder of the key, the cookie, and the token that is sent with every form."""

    holder: KeyHolder
    cookie: str
    token: str


class SessionManager:
    """Creates and checks session cookies."""

    def __init__(self, secret: bytes, keys: AccessKeys) -> None:
        self._secret, self._keys = secret, keys

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}\0{text}".encode(), "sha256").hexdigest()

    def create_cookie(self, key: str, now: float) -> str | None:
        """Return the cookie of a new session, or None if the key is invalid."""
        holder = self._keys.holder(key)
        if holder is None:
            return None
        content = f"{holder.name}.{int(now) + SESSION_HOURS * 3600}.{secrets.token_hex(16)}"
        return f"{content}.{self._sign('session', content)}"

    def parse_cookie(self, cookie: str, now: float) -> Session | None:
        """Return the session of a cookie, or None if it is forged or expired, or its key is revoked."""
        content, _, signature = cookie.rpartition(".")
        if not cookie.isascii() or not hmac.compare_digest(signature, self._sign("session", content)):
            return None
        name, until, _ = content.rsplit(".", 2)
        holder = self._keys.get_holder(name) if now < int(until) else None
        return None if holder is None else Session(holder, cookie, self._sign("form", cookie))

    def find_session(self, cookies: Mapping[str, str], only_secure: bool, now: float) -> Session | None:
        """Return the session of a request's cookies; behind TLS only the secure cookie counts."""
        names = (SECURE_COOKIE,) if only_secure else (SECURE_COOKIE, PLAIN_COOKIE)
        found = (self.parse_cookie(cookies.get(name, ""), now) for name in names)
        return next((session for session in found if session is not None), None)


def get_cookie_settings(secure: bool) -> dict[str, Any]:
    """Return the name and the attributes of the cookie."""
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    return {"key": name, "httponly": True, "samesite": "strict", "secure": secure, "path": "/"}


class Origin(NamedTuple):
    """The scheme, host and port at which browsers see the page: `--public-url`, else that of the request.

    A server behind a TLS proxy speaks HTTP and does not know its public address. Headers of proxies are not trusted,
    because any client can send them. A page cannot change what a browser sends as the origin of a form.
    """

    public: str = ""
    """As a browser sends it, such as https://stagewise.example; empty: that of the request."""

    def of(self, request: Request) -> str:
        return self.public or f"{request.url.scheme}://{request.headers.get('host', '')}"

    def is_cross_origin(self, request: Request) -> bool:
        """Return whether a form was sent from another origin.

        Without a public address, the browser's "same-origin" is sufficient: it compared the addresses that it sees.
        """
        site, sender = request.headers.get("sec-fetch-site", "none"), request.headers.get("origin")
        if site not in ("same-origin", "none"):  # none: typed by the user, not sent by a page
            return True
        is_same = site == "same-origin" and not self.public
        return sender is not None and not is_same and sender != self.of(request)

    def is_secure(self, request: Request) -> bool:
        """Return whether the browser uses TLS, for a form of our own origin."""
        return self.of(request).startswith("https:") or request.headers.get("origin", "").startswith("https:")


def parse_origin(url: str) -> str:
    """Return the origin of a URL as a browser sends it.

    >>> parse_origin("https://Stagewise.example:443/")
    'https://stagewise.example'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    is_printable = url.isascii() and url.isprintable() and " " not in url
    has_more = "@" in url or (host and (parts.path not in ("", "/") or parts.query or parts.fragment))
    if has_more or not host or parts.scheme not in DEFAULT_PORTS or not is_printable:
        rule = "a web address with only a scheme, a host and a port, such as https://stagewise.example"
        shown = "one with more than that" if has_more else url  # it may contain a password
        raise InvalidAddress.must_be(ErrorCode.INVALID_ADDRESS, "the page's address", shown, rule)
    origin = f"{parts.scheme}://[{host}]" if ":" in host else f"{parts.scheme}://{host}"
    return origin if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{origin}:{port}"
