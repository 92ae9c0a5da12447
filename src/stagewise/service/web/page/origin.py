"""Where a browser sees the page: as the desk was told (`--public-url`), else as the browser says.

A desk behind TLS speaks plain HTTP and cannot see the address that its page has. No header of a proxy is believed for
it, because whoever reaches the desk could send one. What a browser says of where a form comes from no page can change.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import shown

OURS = ("same-origin", "none")  # none: the person asked, and no page did
PORTS = {"http": 80, "https": 443}


class InvalidAddress(StagewiseError):
    """The page cannot have this address."""


class Origin(NamedTuple):
    """The scheme, host and port of the page."""

    public: str = ""
    """As a browser writes it, https://desk.example; empty: that of the request."""

    def of(self, request: Request) -> str:
        """Return where the page is."""
        return self.public or f"{request.url.scheme}://{request.headers.get('host', '')}"

    def is_elsewhere(self, request: Request) -> bool:
        """Say whether a browser tells that a form was sent from another page than ours.

        Where no address was told, "same-origin" settles it: the browser compared the addresses that it sees.
        """
        site, sender = request.headers.get("sec-fetch-site", "none"), request.headers.get("origin")
        if site not in OURS:
            return True
        settled = site == "same-origin" and not self.public
        return sender is not None and not settled and sender != self.of(request)

    def is_secure(self, request: Request) -> bool:
        """Say whether the browser of a form that is ours came by TLS."""
        return self.of(request).startswith("https:") or request.headers.get("origin", "").startswith("https:")


def origin_of(url: str) -> str:
    """Return the origin of an address as a browser sends it.

    >>> origin_of("https://Desk.example:443/")
    'https://desk.example'
    """
    try:
        told = urlsplit(url)
        host, port = told.hostname or "", told.port
    except ValueError:
        host, port = "", None
    if "@" in url or (host and (told.path not in ("", "/") or told.query or told.fragment)):
        raise InvalidAddress("the page's address has scheme, host and port alone; write it as https://desk.example")
    if not host or told.scheme not in PORTS or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidAddress(f"{shown(url)} is no address that a browser shows; write it as https://desk.example")
    named = f"[{host}]" if ":" in host else host
    return f"{told.scheme}://{named}" if port in (None, PORTS[told.scheme]) else f"{told.scheme}://{named}:{port}"
