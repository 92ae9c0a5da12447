"""Views of the page: experiments, login and changes."""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.web.errors import HTTPError, to_http_error
from stagewise.server.web.page.form_actions import apply_form
from stagewise.server.web.page.origin import Origin
from stagewise.server.web.page.page_responses import data_response, html_response, read_form, redirect
from stagewise.server.web.page.render import (
    DEFAULT_FIGURES,
    build_page_context,
    get_experiment_path,
    render_explanation,
    render_parts,
    render_template,
)
from stagewise.server.web.page.sessions import SESSION_HOURS, Session, SessionManager, cookie_name, cookie_settings
from stagewise.server.web.page.verdict import build_verdict

View = Callable[[Request, Session], Awaitable[Response]]
WRONG_KEY = "The key is unknown or revoked."
CROSS_ORIGIN = (
    "The form was sent from another site; nothing was changed. If this is the server's own page, start the server with "
    "--public-url and the address that the browser shows."
)
STORE_DOWN = "The store cannot be reached: nothing can be shown or changed, and the safe action is served."
TITLES = {404: "Not found", 503: "Store unavailable", 403: "Not allowed"}


class PageViews:
    """The handlers of the page's routes."""

    def __init__(self, server: Any, sessions: SessionManager, every: float, origin: Origin) -> None:
        self.server, self.sessions, self.every, self.origin = server, sessions, every, origin

    def require_session(self, view: View, change: bool = False) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that calls a view with the session, or redirects to the login."""

        async def handle(request: Request) -> Response:
            only_secure = self.origin.of(request).startswith("https:")
            session = self.sessions.find_session(request.cookies, only_secure, time.time())
            if session is None:
                if request.url.path.endswith(".json"):
                    return error_data_response(401, ErrorCode.UNAUTHORIZED, "the session has ended; log in again")
                path = quote(quote(request.scope["path"], safe="/"), safe="/")  # as a path, then as a query parameter
                return redirect("/login" if change else f"/login?next={path}")
            try:
                if change and self.origin.is_cross_origin(request):
                    raise HTTPError(403, ErrorCode.FORBIDDEN, CROSS_ORIGIN)
                return await view(request, session)
            except (HTTPError, StagewiseError) as error:
                found = to_http_error(error)
                message = f"{STORE_DOWN} ({error})" if found.status == 503 else to_sentence(found)
                return self.show_error(request, session, found, message)

        return handle

    def show_error(self, request: Request, session: Session | None, error: HTTPError, message: str) -> Response:
        """Return the response of an error."""
        status = error.status
        if request.url.path.endswith(".json"):
            return error_data_response(status, error.code, message)
        name = request.path_params.get("experiment")
        back = get_experiment_path(name) if name and status not in (404, 503) else "/"
        if request.url.path.startswith("/keys") and status not in (403, 503):
            back = "/keys"
        title = TITLES.get(status, "Nothing was changed")
        return html_response(
            render_template("error.html", title=title, message=message, back=back, session=session), status
        )

    async def login(self, request: Request) -> Response:
        """Show the login form."""
        path = to_local_path(request.query_params.get("next", "/"))
        return html_response(render_template("login.html", error=None, next=path, session=None))

    async def log_in(self, request: Request) -> Response:
        """Log in with a key."""
        try:
            if self.origin.is_cross_origin(request):
                raise HTTPError(403, ErrorCode.FORBIDDEN, CROSS_ORIGIN)
            form = await read_form(request)
        except HTTPError as error:
            return self.show_error(request, None, error, to_sentence(error))
        cookie = self.sessions.create_cookie(form.get("key", "").strip(), time.time())
        target = to_local_path(form.get("next", "/"))
        if cookie is None:
            return html_response(render_template("login.html", error=WRONG_KEY, next=target, session=None), 403)
        response, secure = redirect(target), self.origin.is_secure(request)
        response.set_cookie(cookie_name(secure), cookie, max_age=SESSION_HOURS * 3600, **cookie_settings(secure))
        return response

    async def log_out(self, request: Request, session: Session) -> Response:
        """Log out: delete the cookie."""
        await self.read_checked_form(request, session)
        response = redirect("/login")
        for secure in (True, False):
            if cookie_name(secure) in request.cookies:
                response.delete_cookie(cookie_name(secure), **cookie_settings(secure))
        return response

    async def read_checked_form(self, request: Request, session: Session) -> dict[str, str]:
        """Return the fields of a form that belongs to this session."""
        form = await read_form(request)
        if not self.sessions.is_valid_token(session, form.get("token", "")):
            message = "The form belongs to another session: load the page again. Nothing was changed."
            raise HTTPError(403, ErrorCode.FORBIDDEN, message)
        return form

    async def read_admin_form(self, request: Request, session: Session) -> dict[str, str]:
        """Return the fields of a form of this session, which must be an admin's."""
        form = await self.read_checked_form(request, session)
        check_admin(session)
        return form

    async def build_list_context(self, session: Session) -> dict[str, Any]:
        """Return the variables of the list of experiments."""
        rows = []
        for name in self.server.experiments():
            figures = {**DEFAULT_FIGURES, **await run_in_threadpool(self.server.figures, name)}
            row = {"name": name, "path": get_experiment_path(name), "figures": figures}
            rows.append({**row, "verdict": build_verdict(figures)})
        ready, why = await run_in_threadpool(self.server.ready)
        is_admin = session.holder.has_role("admin")
        return {"experiments": rows, "ready": ready, "ready_why": why, "session": session, "admin": is_admin}

    async def experiments(self, request: Request, session: Session) -> Response:
        """Show all experiments."""
        return html_response(render_template("list.html", every=self.every, **await self.build_list_context(session)))

    async def experiments_data(self, request: Request, session: Session) -> Response:
        """Return the rendered list of experiments."""
        context = await self.build_list_context(session)
        return data_response({"parts": {"list": render_template("parts/list.html", **context)}})

    async def build_context(self, request: Request, session: Session) -> dict[str, Any]:
        """Return the variables of an experiment's page."""
        figures = await run_in_threadpool(self.server.figures, request.path_params["experiment"])
        return build_page_context(figures, session, await run_in_threadpool(self.server.ready), self.origin.of(request))

    async def experiment(self, request: Request, session: Session) -> Response:
        """Show an experiment."""
        context = await self.build_context(request, session)
        return html_response(render_template("experiment.html", every=self.every, **context))

    async def experiment_data(self, request: Request, session: Session) -> Response:
        """Return the figures and the rendered parts of an experiment's page."""
        context = await self.build_context(request, session)
        parts = render_parts(context)
        return data_response({"figures": context["figures"], "colours": context["colours"], "parts": parts})

    async def explain(self, request: Request, session: Session) -> Response:
        """Return the rendered explanation of a decision."""
        name, id_ = request.path_params["experiment"], request.path_params["decision"]
        explanation = await run_in_threadpool(self.server.explain, name, id_)
        return html_response(render_explanation(id_, explanation, self.server.experiment(name).problem))

    def change(self, action: str) -> View:
        """Return the view of a change."""

        async def handle(request: Request, session: Session) -> Response:
            form = await self.read_admin_form(request, session)
            name = request.path_params.get("experiment")
            await apply_form(self.server, action, name, form, session.holder.name)
            return redirect("/" if name is None else get_experiment_path(name))

        return handle


def check_admin(session: Session) -> None:
    """Require the role admin."""
    if not session.holder.has_role("admin"):
        message = f"This needs a key with the role admin; {session.holder.name} has the role {session.holder.role}."
        raise HTTPError(403, ErrorCode.FORBIDDEN, message)


def to_local_path(path: str) -> str:
    """Return a path on this server, or / for any other address."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_local else "/"


def to_sentence(error: Exception) -> str:
    """Return the message of an error as a sentence."""
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def error_data_response(status: int, code: ErrorCode, message: str) -> Response:
    """Return the JSON response of an error."""
    return data_response({"code": code, "message": message}, status)
