"""The routes of the page: experiments, decisions, changes and the login."""

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.access_keys import AccessKeys
from stagewise.server.web.page.render import (
    DEFAULT_FIGURES,
    build_page_context,
    get_asset_url,
    get_experiment_path,
    read_asset,
    render_explanation,
    render_parts,
    render_template,
)
from stagewise.server.web.page.sessions import SESSION_HOURS, Origin, Session, SessionManager, get_cookie_settings
from stagewise.server.web.page.verdict import build_verdict
from stagewise.server.web.requests import HTTPError, to_http_error

Form = Mapping[str, str]
View = Callable[[Request, Session, Form], Awaitable[Response]]

REFRESH_SECONDS = 2.0
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
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
MAX_FORM_BYTES, MAX_REASON_LENGTH = 16_384, 2000
CHANGES = ("kill", "resume", "mode", "acknowledge")
WRONG_KEY = "The key is unknown or revoked."
CROSS_ORIGIN = (
    "The form was sent from another site; nothing was changed. If this is the server's own page, start the server with "
    "--public-url and the address that the browser shows."
)
STORE_DOWN = "The store cannot be reached: nothing can be shown or changed, and the safe action is served."
TITLES = {404: "Not found", 503: "Store unavailable", 403: "Not allowed"}
ASSETS = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "uplot.css": "text/css; charset=utf-8",
    "uplot.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "uplot.LICENSE.txt": "text/plain; charset=utf-8",
}


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
    page = Page(server, SessionManager(secret, keys), every, Origin(public))
    get, post = ["GET"], ["POST"]
    rows: list[tuple[list[str], str, View, bool]] = [  # methods, path, view, whether it needs an admin
        (post, "/logout", page.log_out, False),
        (get, "/", page.show_experiments, False),
        (get, "/data.json", page.send_experiments, False),
        (get, "/e/{experiment:path}/data.json", page.send_experiment, False),
        (get, "/e/{experiment:path}/decisions/{decision:path}", page.explain, False),
        *((post, f"/e/{{experiment:path}}/{change}", page.change, True) for change in CHANGES),
        (get, "/e/{experiment:path}", page.show_experiment, False),  # after the others: names may have slashes
        *((post, f"/{change}", page.change, True) for change in CHANGES[:2]),
    ]
    return [
        Route("/login", page.show_login, methods=get),
        Route("/login", page.log_in, methods=post),
        Route("/static/{name}", get_static, methods=get),
        *(Route(path, page.require_session(view, admin), methods=methods) for methods, path, view, admin in rows),
    ]


class Page:
    """The handlers of the page's routes."""

    def __init__(self, server: Any, sessions: SessionManager, every: float, origin: Origin) -> None:
        self.server, self.sessions, self.every, self.origin = server, sessions, every, origin

    def require_session(self, view: View, admin: bool) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that calls a view with the session and its checked form, or redirects to the login."""

        async def handle(request: Request) -> Response:
            is_change, is_data = request.method == "POST", request.url.path.endswith(".json")
            only_secure = self.origin.of(request).startswith("https:")
            session = self.sessions.find_session(request.cookies, only_secure, time.time())
            if session is None:
                if is_data:
                    return send_error(HTTPError(401, ErrorCode.UNAUTHORIZED, "the session has ended; log in again"))
                path = quote(quote(request.scope["path"], safe="/"), safe="/")  # as a path, then as a query parameter
                return redirect("/login" if is_change else f"/login?next={path}")
            try:
                form: Form = {}
                if is_change:
                    form = await self.read_form(request)
                    token = form.get("token", "")
                    if not token.isascii() or not hmac.compare_digest(token, session.token):
                        message = "The form belongs to another session: load the page again. Nothing was changed."
                        raise HTTPError(403, ErrorCode.FORBIDDEN, message)
                if admin and not session.holder.has_role("admin"):
                    name, role = session.holder
                    message = "This needs a key with the role admin; {name} has the role {role}."
                    raise HTTPError(403, ErrorCode.FORBIDDEN, message, name=name, role=role)
                return await view(request, session, form)
            except (HTTPError, StagewiseError) as error:
                found = to_http_error(error)
                if found.status == 503:
                    found = HTTPError(503, found.code, "{store_down} ({error})", store_down=STORE_DOWN, error=error)
                return send_error(found) if is_data else show_error(request, session, found)

        return handle

    async def read_form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form of our own origin."""
        if self.origin.is_cross_origin(request):
            raise HTTPError(403, ErrorCode.FORBIDDEN, CROSS_ORIGIN)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            message = "A form must be sent as application/x-www-form-urlencoded."
            raise HTTPError(415, ErrorCode.INVALID_REQUEST, message)
        content = b""
        async for piece in request.stream():
            content += piece
            if len(content) > MAX_FORM_BYTES:
                template = "The form has more than {max_form_bytes} bytes."
                raise HTTPError(413, ErrorCode.BODY_TOO_LARGE, template, max_form_bytes=MAX_FORM_BYTES)
        try:
            return dict(parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict"))
        except ValueError:
            raise HTTPError(400, ErrorCode.INVALID_REQUEST, "The form cannot be parsed.") from None

    async def show_login(self, request: Request) -> Response:
        path = to_local_path(request.query_params.get("next", "/"))
        return html_response(render_template("login.html", error=None, next=path, session=None))

    async def log_in(self, request: Request) -> Response:
        try:
            form = await self.read_form(request)
        except HTTPError as error:
            return show_error(request, None, error)
        cookie = self.sessions.create_cookie(form.get("key", "").strip(), time.time())
        target = to_local_path(form.get("next", "/"))
        if cookie is None:
            return html_response(render_template("login.html", error=WRONG_KEY, next=target, session=None), 403)
        response, settings = redirect(target), get_cookie_settings(self.origin.is_secure(request))
        response.set_cookie(value=cookie, max_age=SESSION_HOURS * 3600, **settings)
        return response

    async def log_out(self, request: Request, session: Session, form: Form) -> Response:
        response = redirect("/login")
        for settings in map(get_cookie_settings, (True, False)):
            if settings["key"] in request.cookies:
                response.delete_cookie(**settings)
        return response

    async def build_list_context(self, session: Session) -> dict[str, Any]:
        """Return the variables of the list of experiments."""
        rows = []
        for name in self.server.experiments():
            figures = {**DEFAULT_FIGURES, **await run_in_threadpool(self.server.figures, name)}
            verdict = build_verdict(figures)
            rows.append({"name": name, "path": get_experiment_path(name), "figures": figures, "verdict": verdict})
        ready, why = await run_in_threadpool(self.server.ready)
        is_admin = session.holder.has_role("admin")
        return {"experiments": rows, "ready": ready, "ready_why": why, "session": session, "admin": is_admin}

    async def show_experiments(self, request: Request, session: Session, form: Form) -> Response:
        return html_response(render_template("list.html", every=self.every, **await self.build_list_context(session)))

    async def send_experiments(self, request: Request, session: Session, form: Form) -> Response:
        context = await self.build_list_context(session)
        return data_response({"parts": {"list": render_template("parts/list.html", **context)}})

    async def build_context(self, request: Request, session: Session) -> dict[str, Any]:
        """Return the variables of an experiment's page."""
        figures = await run_in_threadpool(self.server.figures, request.path_params["experiment"])
        return build_page_context(figures, session, await run_in_threadpool(self.server.ready), self.origin.of(request))

    async def show_experiment(self, request: Request, session: Session, form: Form) -> Response:
        context = await self.build_context(request, session)
        return html_response(render_template("experiment.html", every=self.every, **context))

    async def send_experiment(self, request: Request, session: Session, form: Form) -> Response:
        """Send the figures and the rendered parts of an experiment's page."""
        context = await self.build_context(request, session)
        parts = render_parts(context)
        return data_response({"figures": context["figures"], "colours": context["colours"], "parts": parts})

    async def explain(self, request: Request, session: Session, form: Form) -> Response:
        """Send the rendered explanation of a decision."""
        name, id_ = request.path_params["experiment"], request.path_params["decision"]
        explanation = await run_in_threadpool(self.server.explain, name, id_)
        return html_response(render_explanation(id_, explanation, self.server.experiment(name).problem))

    async def change(self, request: Request, session: Session, form: Form) -> Response:
        """Change an experiment, or all of them; every change needs a reason."""
        name, what = request.path_params.get("experiment"), request.url.path.rpartition("/")[2]
        reason, actor = " ".join(form.get("reason", "").split()), session.holder.name
        if not 0 < len(reason) <= MAX_REASON_LENGTH:
            message = "Give a reason of at most 2,000 characters for the log. Nothing was changed."
            raise HTTPError(422, ErrorCode.INVALID_REQUEST, message)
        if what == "kill":
            await self.server.kill(name, actor, reason)
        elif what == "resume":
            await self.server.resume(name, actor, reason)
        elif what == "mode":
            mode = form.get("mode", "")
            share = parse_share(form.get("share", "")) if mode == "canary" else None
            await self.server.set_mode(name, mode, share, actor, reason)
        else:
            await self.server.acknowledge(name, form.get("name", ""), actor, reason)
        return redirect("/" if name is None else get_experiment_path(name))


def html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, HEADERS)


def data_response(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, HEADERS)


def redirect(address: str) -> Response:
    """Redirect to another page after a form."""
    return RedirectResponse(address, 303, HEADERS)


def send_error(error: HTTPError) -> Response:
    message = str(error) if error.status == 401 else to_sentence(error)
    return data_response({"code": error.code, "message": message}, error.status)


def show_error(request: Request, session: Session | None, error: HTTPError) -> Response:
    status, name = error.status, request.path_params.get("experiment")
    back = get_experiment_path(name) if name and status not in (404, 503) else "/"
    title, message = TITLES.get(status, "Nothing was changed"), to_sentence(error)
    return html_response(
        render_template("error.html", title=title, message=message, back=back, session=session), status
    )


def to_sentence(error: HTTPError) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") or error.status == 503 else ".")


def to_local_path(path: str) -> str:
    """Return a path on this server, or / for any other address."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_local else "/"


def parse_share(text: str) -> float:
    """Return a share that is given in percent."""
    try:
        share = float(text) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        message = "The share of a canary is a percentage between 0 and 100. Nothing was changed."
        raise HTTPError(422, ErrorCode.OUT_OF_RANGE, message)
    return share


async def get_static(request: Request) -> Response:
    name = request.path_params["name"]
    asset = next((one for one in ASSETS if get_asset_url(one) == f"/static/{name}"), None)
    if asset is None:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    headers = {**HEADERS, "cache-control": CACHE_IMMUTABLE, "content-type": ASSETS[asset]}
    return Response(read_asset(asset), 200, headers)
