"""What the page answers: to whoever came in, and at the door."""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from stagewise.problem.errors import StagewiseError
from stagewise.service.web.call import Refused
from stagewise.service.web.page.changing import changed
from stagewise.service.web.page.origin import Origin
from stagewise.service.web.page.rendering import UNSAID, experiment_address, explained, parts_of, presented, rendered
from stagewise.service.web.page.responding import data, elsewhere, form_of, html
from stagewise.service.web.page.sessions import HOURS, Session, Sessions, cookie_name, cookie_settings
from stagewise.service.web.page.verdict import verdict
from stagewise.service.web.refusing import refusal_of

Shown = Callable[[Request, Session], Awaitable[Response]]
WRONG_KEY = "Nobody holds this key, or it was revoked."
FOREIGN = (
    "The form was sent from another page than the desk's; nothing was changed. If this is its page: the desk has to be "
    "started with --public-url and the address that the browser shows."
)
DOWN = "The store cannot be reached, so nothing can be shown or changed. Decisions meanwhile are the safe action."


class Page:
    """What stands behind the addresses."""

    def __init__(self, desk: Any, sessions: Sessions, every: float, origin: Origin) -> None:
        self.desk, self.sessions, self.every, self.origin = desk, sessions, every, origin

    def guarded(self, shown: Shown, change: bool = False) -> Callable[[Request], Awaitable[Response]]:
        """Return a route for whoever came in; the others are sent to the door."""

        async def answer(request: Request) -> Response:
            only_secure = self.origin.of(request).startswith("https:")
            session = self.sessions.found(request.cookies, only_secure, time.time())
            if session is None:
                if request.url.path.endswith(".json"):
                    return data({"error": "this session is over; log in again"}, 401)
                here = quote(quote(request.scope["path"], safe="/"), safe="/")  # an address, and then a part of one
                return elsewhere("/login" if change else f"/login?next={here}")
            try:
                if change and self.origin.is_elsewhere(request):
                    raise Refused(403, FOREIGN)
                return await shown(request, session)
            except (Refused, StagewiseError) as error:
                refused = refusal_of(error)
                words = f"{DOWN} ({error})" if refused.status == 503 else sentence(refused)
                return self.trouble(request, session, refused.status, words)

        return answer

    def trouble(self, request: Request, session: Session | None, status: int, words: str) -> Response:
        """Answer what went wrong, in one sentence."""
        if request.url.path.endswith(".json"):
            return data({"error": words}, status)
        title = {404: "Not here", 503: "The store is away", 403: "Not allowed"}.get(status, "Nothing was changed")
        name = request.path_params.get("experiment")
        back = experiment_address(name) if name and status not in (404, 503) else "/"
        if request.url.path.startswith("/keys") and status not in (403, 503):
            back = "/keys"
        more = "The page of the desk tries again when you come back." if status == 503 else ""
        return html(
            rendered("trouble.html", title=title, sentence=words, more=more, back=back, session=session), status
        )

    async def login(self, request: Request) -> Response:
        """Show the door."""
        return html(
            rendered("login.html", wrong=None, next=inside(request.query_params.get("next", "/")), session=None)
        )

    async def log_in(self, request: Request) -> Response:
        """Let somebody in who has a key."""
        try:
            if self.origin.is_elsewhere(request):
                raise Refused(403, FOREIGN)
            form = await form_of(request)
        except Refused as error:
            return self.trouble(request, None, error.status, sentence(error))
        cookie = self.sessions.begun(form.get("key", "").strip(), time.time())
        target = inside(form.get("next", "/"))
        if cookie is None:
            return html(rendered("login.html", wrong=WRONG_KEY, next=target, session=None), 403)
        answer, secure = elsewhere(target), self.origin.is_secure(request)
        answer.set_cookie(cookie_name(secure), cookie, max_age=HOURS * 3600, **cookie_settings(secure))
        return answer

    async def log_out(self, request: Request, session: Session) -> Response:
        """Have the browser forget its cookie."""
        await self.checked_form(request, session)
        answer = elsewhere("/login")
        for secure in (True, False):
            if cookie_name(secure) in request.cookies:
                answer.delete_cookie(cookie_name(secure), **cookie_settings(secure))
        return answer

    async def checked_form(self, request: Request, session: Session) -> dict[str, str]:
        """Return a form that this session was given."""
        form = await form_of(request)
        if not self.sessions.form_is_ours(session, form.get("token", "")):
            raise Refused(403, "The form is not of this session: load the page again. Nothing was changed.")
        return form

    async def admins_form(self, request: Request, session: Session) -> dict[str, str]:
        """Return a form that this session was given, and that may change something."""
        form = await self.checked_form(request, session)
        check_admin(session)
        return form

    async def listed(self, session: Session) -> dict[str, Any]:
        """Return what the list of experiments shows."""
        rows = []
        for name in self.desk.experiments():
            figures = await run_in_threadpool(self.desk.figures, name)
            shown = {**UNSAID, **figures}
            rows.append(
                {"name": name, "address": experiment_address(name), "figures": shown, "verdict": verdict(shown)}
            )
        ready, why = await run_in_threadpool(self.desk.ready)
        told = {"experiments": rows, "ready": ready, "ready_why": why, "session": session, "wrong": None}
        return {**told, "admin": session.holder.may("admin")}

    async def experiments(self, request: Request, session: Session) -> Response:
        """Show all experiments."""
        return html(rendered("list.html", every=self.every, **await self.listed(session)))

    async def experiments_data(self, request: Request, session: Session) -> Response:
        """Answer the list again."""
        return data({"parts": {"list": rendered("parts/list.html", **await self.listed(session))}})

    async def told(self, request: Request, session: Session) -> dict[str, Any]:
        """Return what the page of an experiment shows."""
        figures = await run_in_threadpool(self.desk.figures, request.path_params["experiment"])
        return presented(figures, session, await run_in_threadpool(self.desk.ready), self.origin.of(request))

    async def experiment(self, request: Request, session: Session) -> Response:
        """Show an experiment."""
        return html(rendered("experiment.html", every=self.every, **await self.told(request, session)))

    async def experiment_data(self, request: Request, session: Session) -> Response:
        """Answer the figures, and the parts of the page that show them."""
        told = await self.told(request, session)
        return data({"figures": told["figures"], "colours": told["colours"], "parts": parts_of(told)})

    async def explain(self, request: Request, session: Session) -> Response:
        """Answer why a decision is as it is."""
        name, id_ = request.path_params["experiment"], request.path_params["decision"]
        explanation = await run_in_threadpool(self.desk.explain, name, id_)
        return html(explained(id_, explanation, self.desk.experiment(name).problem))

    def change(self, what: str) -> Shown:
        """Return the route of a change."""

        async def answer(request: Request, session: Session) -> Response:
            form = await self.admins_form(request, session)
            name = request.path_params.get("experiment")
            await changed(self.desk, what, name, form, session.holder.name)
            return elsewhere("/" if name is None else experiment_address(name))

        return answer


def check_admin(session: Session) -> None:
    """Refuse whoever may only look."""
    if not session.holder.may("admin"):
        raise Refused(403, f"This takes an admin's key; {session.holder.name} is a {session.holder.role}'s.")


def inside(address: str) -> str:
    """Return an address of this page, whatever was asked for."""
    return (
        address if address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable() else "/"
    )


def sentence(error: Exception) -> str:
    """Return an error as a sentence of the page."""
    words = str(error)
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")
