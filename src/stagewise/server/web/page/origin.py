"""The origin at which browsers see the page: `--public-url`, else that of the request.

A server behind a TLS proxy speaks HTTP and does not know its public address. Headers of proxies are not trusted,
because any client can send them. A page cannot change what a browser sends as the origin of a form.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr

SAME_ORIGIN_SITES = ("same-origin", "none")  # none: typed by the user, not sent by a page
DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidAddress(StagewiseError):
    """An invalid address of the page."""


class Origin(NamedTuple):
    """The scheme, host and port of the page."""

    public: str = ""
    """As a browser sends it, such as https://stagewise.example; empty: that of the request."""

    def of(self, request: Request) -> str:
        """Return the origin of the page."""
        return self.public or f"{request.url.scheme}://{request.headers.get('host', '')}"

    def is_cross_origin(self, request: Request) -> bool:
        """Return whether a form was sent from another origin.

        Without a public address, the browser's "same-origin" is sufficient: it compared the addresses that it sees.
        """
        site, sender = request.headers.get("sec-fetch-site", "none"), request.headers.get("origin")
        if site not in SAME_ORIGIN_SITES:
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
    if "@" in url or (host and (parts.path not in ("", "/") or parts.query or parts.fragment)):
        raise InvalidAddress(
            ErrorCode.INVALID_ADDRESS,
            "the page's address must have only a scheme, a host and a port, such as https://stagewise.example",
        )
    if not host or parts.scheme not in DEFAULT_PORTS or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidAddress(
            ErrorCode.INVALID_ADDRESS,
            "{url} is not a web address; write it as https://stagewise.example",
            url=safe_repr(url),
        )
    origin = f"{parts.scheme}://[{host}]" if ":" in host else f"{parts.scheme}://{host}"
    return origin if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{origin}:{port}"
