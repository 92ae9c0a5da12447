"""The keys on the page: who may ask the desk, a new key, which is shown this once, and the end of one. An admin's."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from stagewise.service.keys import ROLES, Keys
from stagewise.service.web.call import Refused
from stagewise.service.web.page.answering import Page, check_admin
from stagewise.service.web.page.rendering import rendered
from stagewise.service.web.page.responding import elsewhere, html
from stagewise.service.web.page.sessions import Session

ADDRESS = "/keys"
LONGEST_NOTE = 200
MAY = {
    "reader": "looks",
    "writer": "also asks for decisions and tells outcomes",
    "admin": "also changes things: modes, the kill switch, problems, keys",
}


class KeysPage:
    """Lists, makes and revokes keys."""

    def __init__(self, page: Page, keys: Keys) -> None:
        self.page, self.keys = page, keys

    async def show(self, request: Request, session: Session) -> Response:
        """List the keys."""
        check_admin(session)
        return self.listed(session)

    async def make(self, request: Request, session: Session) -> Response:
        """Make a key. It stands in this answer and nowhere else; the same form sent again is refused."""
        form = await self.page.admins_form(request, session)
        name, note = form.get("name", "").strip(), " ".join(form.get("note", "").split())
        if len(note) > LONGEST_NOTE or not note.isprintable():
            raise Refused(422, "A note is one line of at most 200 characters. Nothing was changed.")
        key = await run_in_threadpool(self.keys.add, name, form.get("role", ""), note)
        return self.listed(session, name, key)

    async def revoke(self, request: Request, session: Session) -> Response:
        """Revoke a key; whose session lives by it has to come in again."""
        form = await self.page.admins_form(request, session)
        await run_in_threadpool(self.keys.revoke, form.get("name", ""))
        return elsewhere(ADDRESS)

    def listed(self, session: Session, name: str = "", key: str = "") -> Response:
        """Return the list, those that hold first, with a key that was just made."""
        rows = sorted(self.keys.listed(), key=lambda row: (row.revoked is not None, row.name))
        told = {"keys": rows, "roles": [(role, MAY[role]) for role in ROLES], "made_name": name, "made_key": key}
        return html(rendered("keys.html", session=session, **told), 201 if key else 200)
