"""Sessions of the page: a signed cookie, and a token on every form.

    cookie = name . until . random . HMAC(secret, "session" ‖ the rest),   token = HMAC(secret, "form" ‖ cookie)

The secret is the store's, so that every server of the store accepts every session; sessions are not stored. A session
ends when it expires, when its key is revoked, or at logout.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from stagewise.server.access_keys import AccessKeys, KeyHolder

SESSION_HOURS = 12
SECURE_COOKIE, PLAIN_COOKIE = "__Host-stagewise", "stagewise"


class Session(NamedTuple):
    """A session: the holder of the key, the cookie and the token."""

    holder: KeyHolder
    cookie: str
    token: str
    """Sent with every form of this session."""


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
        for name in (SECURE_COOKIE,) if only_secure else (SECURE_COOKIE, PLAIN_COOKIE):
            session = self.parse_cookie(cookies.get(name, ""), now)
            if session is not None:
                return session
        return None

    def is_valid_token(self, session: Session, token: str) -> bool:
        """Return whether a form belongs to this session."""
        return token.isascii() and hmac.compare_digest(token, session.token)


def cookie_name(secure: bool) -> str:
    """Return the name of the cookie; browsers accept the prefix __Host- only over TLS and from this host."""
    return SECURE_COOKIE if secure else PLAIN_COOKIE


def cookie_settings(secure: bool) -> dict[str, Any]:
    """Return the attributes of the cookie."""
    return {"httponly": True, "samesite": "strict", "secure": secure, "path": "/"}
