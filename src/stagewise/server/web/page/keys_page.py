"""The page of the keys, for admins: list, create and revoke them."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import ROLES, AccessKeys
from stagewise.server.web.errors import HTTPError
from stagewise.server.web.page.page_responses import html_response, redirect
from stagewise.server.web.page.render import render_template
from stagewise.server.web.page.sessions import Session
from stagewise.server.web.page.views import PageViews, check_admin

KEYS_PATH = "/keys"
MAX_NOTE_LENGTH = 200
ROLE_DESCRIPTIONS = {
    "reader": "reads everything except the keys",
    "writer": "also requests decisions and reports outcomes",
    "admin": "also changes modes, kill switches, problems and keys",
}


class KeysPage:
    """Lists, creates and revokes keys."""

    def __init__(self, page: PageViews, keys: AccessKeys) -> None:
        self.page, self.keys = page, keys

    async def show(self, request: Request, session: Session) -> Response:
        """List the keys."""
        check_admin(session)
        return self.list_keys(session)

    async def create(self, request: Request, session: Session) -> Response:
        """Create a key; only this response contains it, and the same form sent again is an error."""
        form = await self.page.read_admin_form(request, session)
        name, note = form.get("name", "").strip(), " ".join(form.get("note", "").split())
        if len(note) > MAX_NOTE_LENGTH or not note.isprintable():
            message = "A note is one line of at most 200 characters. Nothing was changed."
            raise HTTPError(422, ErrorCode.INVALID_REQUEST, message)
        key = await run_in_threadpool(self.keys.add, name, form.get("role", ""), note)
        return self.list_keys(session, name, key)

    async def revoke(self, request: Request, session: Session) -> Response:
        """Revoke a key; its sessions end."""
        form = await self.page.read_admin_form(request, session)
        await run_in_threadpool(self.keys.revoke, form.get("name", ""))
        return redirect(KEYS_PATH)

    def list_keys(self, session: Session, name: str = "", key: str = "") -> Response:
        """Return the list, active keys first, and the key that was just created."""
        rows = sorted(self.keys.list_keys(), key=lambda row: (row.revoked is not None, row.name))
        variables = {
            "keys": rows,
            "roles": [(role, ROLE_DESCRIPTIONS[role]) for role in ROLES],
            "new_name": name,
            "new_key": key,
        }
        return html_response(render_template("keys.html", session=session, **variables), 201 if key else 200)
