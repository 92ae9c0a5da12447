"""The door of the desk: an ASGI application. Who comes in has a key that may, a body that fits, and a line in the log.

Our own routes go straight to ASGI, because two of them are all of the load (docs/decisions/0023). The page is
Starlette's.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.util import find_spec
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match

from stagewise.service.keys import Keys
from stagewise.service.web.asking import Asking
from stagewise.service.web.call import Answer, Call, Refused
from stagewise.service.web.lane import Lane
from stagewise.service.web.log import ASKED, Line, RequestLog
from stagewise.service.web.rates import Buckets, Rate
from stagewise.service.web.reading import Gone, Receive, body_of, check_kind
from stagewise.service.web.refusing import EXPECTED, refusal_of
from stagewise.service.web.route import Table, check_words
from stagewise.service.web.routes import ROUTES
from stagewise.service.web.safe_headers import NOTHING, SAFE, PageSend, Send

if TYPE_CHECKING:
    from stagewise.service.desk import Desk

Scope = MutableMapping[str, Any]
AZURE = b"ocp-apim-subscription-key"


class Settings(NamedTuple):
    """What can be set of the desk's HTTP side."""

    rate: Rate = Rate()
    """How much each key may ask."""
    personalizer: str = ""
    """The experiment that Personalizer's routes are for; empty: the only one there is."""
    log: bool = True
    """Whether every request is said in a line on stderr; those that fail inside the desk are in any case."""
    public: str = ""
    """The origin at which browsers see the page, such as https://desk.example; empty: that of each request."""


class App:
    """A desk as an ASGI application; its lifespan starts the desk, has it prepared, and stops it."""

    def __init__(
        self,
        desk: "Desk",
        keys: Keys,
        settings: Settings | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.desk, self.keys, self.settings, self._prepare = desk, keys, settings or Settings(), prepare
        self.table, self._page = Table(ROUTES), Starlette(routes=page_routes(desk, keys, self.settings.public))
        self.buckets, self._log = Buckets(self.settings.rate), RequestLog()
        self._begun, self._count = token_hex(4), count()
        self.lane = Lane(self)
        self.failed = ""
        """Why it could not start."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, known = time.perf_counter(), self.next_id()
        asking = Asking(scope)
        ASKED.set(known)
        try:
            said = await self._said(asking, scope, receive)
        except EXPECTED as error:
            said = asking.refused(refusal_of(error))
        except Gone:
            return
        except Exception as error:
            said = asking.failed(error, known)
        if said is None:
            status = await self._turned(asking, scope, receive, PageSend(send, known))
        else:
            await _send(send, said, known, whole=asking.method != "HEAD")
            status = said.status
        self.note(known, asking.where, status, began, asking.holder.name, asking.fault)

    def next_id(self) -> str:
        """Return what the next request is called."""
        return f"{self._begun}-{next(self._count):x}"

    def note(self, known: str, where: str, status: int, began: float, holder: str, fault: str = "") -> None:
        """Count a request, and say it in a line."""
        if status >= 400:
            self.desk.counts.refused[(where, status)] += 1
        if self.settings.log or fault:
            ms = round((time.perf_counter() - began) * 1e3, 3)
            line = Line(time.time(), known, where, status, ms, holder, fault)
            self._log.add(line, asyncio.get_running_loop().call_later)

    async def _said(self, asking: Asking, scope: Scope, receive: Receive) -> Answer | None:
        """Return the answer; None: it is the page's to give."""
        routes, words = self.table.find(asking.path)
        route = asking.route = routes.get("GET" if asking.method == "HEAD" else asking.method)
        if route is None:
            if not routes and any(one.matches(scope)[0] is not Match.NONE for one in self._page.routes):
                return None
            asking.known_by(self.keys, AZURE)
            raise asking.nothing(sorted(routes))
        if route.role is not None:
            holder = asking.known_by(self.keys, route.key_header)
            if not holder.may(route.role):
                raise Refused(403, f"the key {holder.name!r} is a {holder.role}'s; this takes {route.role}'s")
            self.buckets.take(holder.name, 1, time.monotonic())
        check_words(asking.path, words)
        body = b""
        if route.takes is not None:
            check_kind(asking.headers)
            body = await body_of(receive, asking.headers, route.largest)
        return await route.does(
            Call(
                self.desk,
                self.keys,
                self.buckets,
                asking.holder,
                words,
                asking.query,
                body,
                self.settings.personalizer,
            )
        )

    async def _turned(self, asking: Asking, scope: Scope, receive: Receive, page: PageSend) -> int:
        """Have the page answer, and return its status."""
        try:
            await self._page(scope, receive, page)
        except Exception as error:  # Starlette has answered 500
            asking.note(error)
        return page.status

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.desk.start()
            if self._prepare is not None:
                await self._prepare()
        except Exception as error:
            self.failed = f"the desk could not start: {error}"
            with contextlib.suppress(Exception):  # what it did start
                await self.desk.stop()
            await send({"type": "lifespan.startup.failed", "message": ""})  # whoever serves it says why, once
            return
        watching = asyncio.create_task(self.keys.watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        await self.desk.stop()
        self._log.flush()
        await send({"type": "lifespan.shutdown.complete"})


async def _send(send: Send, said: Answer, known: str, *, whole: bool) -> None:
    length = b"%d" % len(said.body)
    headers = [(b"content-type", said.kind), (b"content-length", length), (b"x-request-id", known.encode())]
    if said.status == 204:
        del headers[:2]
    headers += (NOTHING, *SAFE, *said.headers)
    await send({"type": "http.response.start", "status": said.status, "headers": headers})
    await send({"type": "http.response.body", "body": said.body if whole else b""})


def page_routes(desk: "Desk", keys: Keys, public: str) -> list[BaseRoute]:
    """Return the routes of the page, where it is installed."""
    if find_spec("stagewise.service.web.page") is None:
        return []
    from stagewise.service.web.page.mount import routes

    return list(routes(desk, keys, public=public))
