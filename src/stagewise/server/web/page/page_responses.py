"""Responses of the page with their security headers, and reading of forms."""

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.errors import HTTPError

CONTENT_SECURITY_POLICY = "; ".join(
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
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
CACHE_IMMUTABLE = "public, max-age=31536000, immutable"
MAX_FORM_BYTES = 16_384


def html_response(text: str, status: int = 200) -> Response:
    """Return an HTML response."""
    return HTMLResponse(text, status, HEADERS)


def data_response(value: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return JSONResponse(value, status, HEADERS)


def redirect(address: str) -> Response:
    """Redirect to another page after a form."""
    return RedirectResponse(address, 303, HEADERS)


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPError(415, ErrorCode.INVALID_REQUEST, "A form must be sent as application/x-www-form-urlencoded.")
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MAX_FORM_BYTES:
            raise HTTPError(413, ErrorCode.BODY_TOO_LARGE, f"The form has more than {MAX_FORM_BYTES} bytes.")
    try:
        return dict(parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict"))
    except ValueError:
        raise HTTPError(400, ErrorCode.INVALID_REQUEST, "The form cannot be parsed.") from None
