"""Who looks at the page: a cookie that the desk has signed, and a token on every form.

    cookie = name . until . random . HMAC(secret, "session" ‖ the rest),   token = HMAC(secret, "form" ‖ cookie)

The secret is the store's, so that every process of a desk knows every session; none is kept anywhere. A session ends
when it says so, when its key is revoked, or when the browser is told to forget it.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from stagewise.service.keys import Holder, Keys

HOURS = 12
SECURE, PLAIN = "__Host-stagewise", "stagewise"


class Session(NamedTuple):
    """Somebody who came in."""

    holder: Holder
    cookie: str
    token: str
    """What every form of this session carries."""


class Sessions:
    """Makes and reads the cookies of one desk."""

    def __init__(self, secret: bytes, keys: Keys) -> None:
        self._secret, self._keys = secret, keys

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self._secret, f"{what}\0{text}".encode(), "sha256").hexdigest()

    def begun(self, key: str, now: float) -> str | None:
        """Return the cookie of a new session; None: nobody holds this key."""
        holder = self._keys.holder(key)
        if holder is None:
            return None
        told = f"{holder.name}.{int(now) + HOURS * 3600}.{secrets.token_hex(16)}"
        return f"{told}.{self._signed('session', told)}"

    def session(self, cookie: str, now: float) -> Session | None:
        """Return whose cookie this is; None: it was not made here, is over, or its key is revoked."""
        told, _, signed = cookie.rpartition(".")
        if not cookie.isascii() or not hmac.compare_digest(signed, self._signed("session", told)):
            return None
        name, until, _ = told.rsplit(".", 2)
        holder = self._keys.named(name) if now < int(until) else None
        return None if holder is None else Session(holder, cookie, self._signed("form", cookie))

    def found(self, cookies: Mapping[str, str], only_secure: bool, now: float) -> Session | None:
        """Return whose cookies these are; where the page is known to be behind TLS, a plain one is nobody's."""
        for name in (SECURE,) if only_secure else (SECURE, PLAIN):
            session = self.session(cookies.get(name, ""), now)
            if session is not None:
                return session
        return None

    def form_is_ours(self, session: Session, token: str) -> bool:
        """Say whether a form was made for this session."""
        return token.isascii() and hmac.compare_digest(token, session.token)


def cookie_name(secure: bool) -> str:
    """Return what the cookie is called; browsers take the prefix over TLS alone, and from this very host."""
    return SECURE if secure else PLAIN


def cookie_settings(secure: bool) -> dict[str, Any]:
    """Return how the cookie is set and forgotten."""
    return {"httponly": True, "samesite": "strict", "secure": secure, "path": "/"}
