"""The routes of the page."""

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stagewise.server.access_keys import AccessKeys
from stagewise.server.web.page.assets import load_assets
from stagewise.server.web.page.form_actions import FORM_ACTIONS
from stagewise.server.web.page.keys_page import KEYS_PATH, KeysPage
from stagewise.server.web.page.origin import Origin
from stagewise.server.web.page.page_responses import CACHE_IMMUTABLE, HEADERS
from stagewise.server.web.page.sessions import SessionManager
from stagewise.server.web.page.views import PageViews

REFRESH_SECONDS = 2.0


def build_page_routes(
    server: Any, keys: AccessKeys, secret: bytes | None = None, every: float = REFRESH_SECONDS, public: str = ""
) -> list[Route]:
    """Return the routes of the page.

    Args:
        server: The decision server.
        keys: The keys to log in with.
        secret: Signs sessions; None: the store's.
        every: Seconds between two refreshes of an open page.
        public: The origin at which browsers see the page; empty: that of each request.
    """
    if secret is None:
        secret = server.store.secret("page sessions", secrets.token_bytes(32))
    page = PageViews(server, SessionManager(secret, keys), every, Origin(public))
    keys_page = KeysPage(page, keys)
    get, post = ["GET"], ["POST"]
    routes = [
        Route("/login", page.login, methods=get),
        Route("/login", page.log_in, methods=post),
        Route("/logout", page.require_session(page.log_out, change=True), methods=post),
        Route("/", page.require_session(page.experiments), methods=get),
        Route("/data.json", page.require_session(page.experiments_data), methods=get),
        Route("/e/{experiment:path}/data.json", page.require_session(page.experiment_data), methods=get),
        Route("/e/{experiment:path}/decisions/{decision:path}", page.require_session(page.explain), methods=get),
        Route(KEYS_PATH, page.require_session(keys_page.show), methods=get),
        Route(KEYS_PATH, page.require_session(keys_page.create, change=True), methods=post),
        Route(f"{KEYS_PATH}/revoke", page.require_session(keys_page.revoke, change=True), methods=post),
        Route("/static/{name}", get_static, methods=get),
    ]
    for action in FORM_ACTIONS:
        handler = page.require_session(page.change(action), change=True)
        routes.append(Route(f"/e/{{experiment:path}}/{action}", handler, methods=post))
    # after the others, because names may have slashes
    routes.append(Route("/e/{experiment:path}", page.require_session(page.experiment), methods=get))
    for action in ("kill", "resume"):
        routes.append(Route(f"/{action}", page.require_session(page.change(action), change=True), methods=post))
    return routes


async def get_static(request: Request) -> Response:
    """Return a static file."""
    asset = load_assets().get(request.path_params["name"])
    if asset is None:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    return Response(asset.content, 200, {**HEADERS, "cache-control": CACHE_IMMUTABLE, "content-type": asset.kind})
