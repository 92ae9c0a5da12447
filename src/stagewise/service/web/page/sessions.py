"""Who looks at the page: a cookie that the desk has signed, and a token on every form.

    cookie = name . until . random . HMAC(secret, "session" ‖ the rest),   token = HMAC(secret, "form" ‖ cookie)

The secret is the store's, so that every process of a desk knows every session; none is kept anywhere. A session ends
when it says so, when its key is revoked, or when the browser is told to forget it.
"""

import hmac
import secrets
from typing import Any, NamedTuple

from stagewise.service.keys import Holder, Keys

HOURS = 12
FOREIGN = ("cross-site", "same-site")


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

    def form_is_ours(self, session: Session, token: str) -> bool:
        """Say whether a form was made for this session."""
        return token.isascii() and hmac.compare_digest(token, session.token)


def cookie_name(scheme: str) -> str:
    """Return what the cookie is called; the prefix makes browsers refuse it over plain HTTP."""
    return "__Host-stagewise" if scheme == "https" else "stagewise"


def cookie_settings(scheme: str) -> dict[str, Any]:
    """Return how the cookie is set and forgotten."""
    return {"httponly": True, "samesite": "strict", "secure": scheme == "https", "path": "/"}


def from_elsewhere(headers: Any, scheme: str) -> bool:
    """Say whether a browser tells that a form was sent from another page than ours."""
    if headers.get("sec-fetch-site", "none") in FOREIGN:
        return True
    origin = headers.get("origin")
    return origin is not None and origin != f"{scheme}://{headers.get('host', '')}"
