"""What every answer of the page has: headers that let nothing in from elsewhere; and forms, read within limits."""

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from stagewise.service.web.call import Refused

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FOR_EVER = "public, max-age=31536000, immutable"
LARGEST_FORM = 16_384


def html(text: str, status: int = 200) -> Response:
    """Return a page."""
    return HTMLResponse(text, status, HEADERS)


def data(value: Any, status: int = 200) -> Response:
    """Return JSON."""
    return JSONResponse(value, status, HEADERS)


def elsewhere(address: str) -> Response:
    """Send a browser to another page after a form."""
    return RedirectResponse(address, 303, HEADERS)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "A form is sent as application/x-www-form-urlencoded.")
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > LARGEST_FORM:
            raise Refused(413, f"The form has more than {LARGEST_FORM} bytes.")
    try:
        return dict(parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict"))
    except ValueError:
        raise Refused(400, "The form cannot be read.") from None
