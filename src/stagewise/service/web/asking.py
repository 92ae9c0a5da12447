"""A request before it is known to be welcome."""

from collections.abc import MutableMapping
from typing import Any

from stagewise.service.keys import Holder, Keys
from stagewise.service.web.call import Answer, Refused, answer, plain_refusal
from stagewise.service.web.log import fault_of
from stagewise.service.web.route import Route

NOBODY = Holder("", "")


class Asking:
    """Who asks for what, as far as is known by now."""

    __slots__ = ("fault", "headers", "holder", "method", "path", "query", "route")

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        self.method: str = scope["method"]
        self.path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope.get("query_string", b"")
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.route: Route | None = None
        self.holder, self.fault = NOBODY, ""

    @property
    def where(self) -> str:
        """The route's path with its {names}: what stands in metrics and logs, whatever was sent."""
        return "" if self.route is None else self.route.path

    def known_by(self, keys: Keys, besides: bytes = b"") -> Holder:
        """Return who holds the key that was sent."""
        scheme, _, key = self.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            key = self.headers.get(besides, b"") if besides else b""
        holder = keys.sent(key) if key else None
        if holder is None:
            said = "the key is not known, or was revoked" if key else "there is no key"
            raise Refused(401, f"{said}; send one as Authorization: Bearer sw_...", ((b"www-authenticate", b"Bearer"),))
        self.holder = holder
        return holder

    def nothing(self, allowed: list[str]) -> Refused:
        """Return the refusal of a path that is none, or takes other methods."""
        if not allowed:
            return Refused(404, "there is nothing at this path; /openapi.json lists what there is")
        listed = ", ".join(allowed)
        return Refused(
            405, f"{self.method[:20]} is not possible here; it takes {listed}", ((b"allow", listed.encode()),)
        )

    def refused(self, refused: Refused) -> Answer:
        """Return a refusal in the words of the route."""
        say = plain_refusal if self.route is None else self.route.refusal
        return answer(say(refused.status, str(refused)), refused.status)._replace(headers=refused.headers)

    def failed(self, error: Exception, known: str) -> Answer:
        """Return the answer to a mistake of ours; nothing of it goes outside."""
        self.note(error)
        return self.refused(Refused(500, f"the desk failed; its log has more under {known}"))

    def note(self, error: Exception) -> None:
        """Remember a mistake of ours, for the log."""
        self.fault = fault_of(error)
