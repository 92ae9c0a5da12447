"""The addresses of the page, for the application to mount."""

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stagewise.service.keys import Keys
from stagewise.service.web.page.answering import Page
from stagewise.service.web.page.assets import assets
from stagewise.service.web.page.changing import CHANGES
from stagewise.service.web.page.keys import ADDRESS as KEYS
from stagewise.service.web.page.keys import KeysPage
from stagewise.service.web.page.origin import Origin
from stagewise.service.web.page.responding import FOR_EVER, HEADERS
from stagewise.service.web.page.sessions import Sessions

EVERY = 2.0


def routes(desk: Any, keys: Keys, secret: bytes | None = None, every: float = EVERY, public: str = "") -> list[Route]:
    """Return the page of a desk.

    Args:
        desk: What is shown.
        keys: Who may come in.
        secret: What signs sessions; None: the store's.
        every: Seconds between two looks of an open page.
        public: The origin at which browsers see it; empty: that of each request.
    """
    known = desk.store.secret("page sessions", secrets.token_bytes(32)) if secret is None else secret
    page = Page(desk, Sessions(known, keys), every, Origin(public))
    ring = KeysPage(page, keys)
    get, post = ["GET"], ["POST"]
    made = [
        Route("/login", page.login, methods=get),
        Route("/login", page.log_in, methods=post),
        Route("/logout", page.guarded(page.log_out, change=True), methods=post),
        Route("/", page.guarded(page.experiments), methods=get),
        Route("/data.json", page.guarded(page.experiments_data), methods=get),
        Route("/e/{experiment:path}/data.json", page.guarded(page.experiment_data), methods=get),
        Route("/e/{experiment:path}/decisions/{decision:path}", page.guarded(page.explain), methods=get),
        Route(KEYS, page.guarded(ring.show), methods=get),
        Route(KEYS, page.guarded(ring.make, change=True), methods=post),
        Route(f"{KEYS}/revoke", page.guarded(ring.revoke, change=True), methods=post),
        Route("/static/{name}", static, methods=get),
    ]
    for what in CHANGES:
        made.append(Route(f"/e/{{experiment:path}}/{what}", page.guarded(page.change(what), change=True), methods=post))
    made.append(Route("/e/{experiment:path}", page.guarded(page.experiment), methods=get))  # names may have slashes
    for what in ("kill", "revive"):
        made.append(Route(f"/{what}", page.guarded(page.change(what), change=True), methods=post))
    return made


async def static(request: Request) -> Response:
    """Answer a file that never changes under its name."""
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    return Response(asset.content, 200, {**HEADERS, "cache-control": FOR_EVER, "content-type": asset.kind})
