"""A page on the loopback, and a tab that looks at it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette

from stagewise.server.web.page.routes import build_page_routes


@contextmanager
def served(app: Any, lifespan: Literal["on", "off"] = "off") -> Iterator[str]:
    """Serve an application in a thread, and yield its address."""
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan=lifespan, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10.0)
        door.close()


@contextmanager
def page_of(desk: Any, keys: Any) -> Iterator[str]:
    """Serve the page of a desk alone."""
    with served(Starlette(routes=build_page_routes(desk, keys, bytes(32), every=0.2))) as address:
        yield address


@contextmanager
def tab_of(
    browser: Any, address: str, width: int = 1280, scheme: str = "light", key: str | None = "sw_ada_secret"
) -> Iterator[Any]:
    """Yield a tab that is logged in, with `troubles`: everything logged, failed or fetched from elsewhere."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    troubles: list[str] = []
    tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    tab.on("request", lambda asked: None if asked.url.startswith(address) else troubles.append(f"outside: {asked.url}"))
    tab.troubles = troubles
    tab.set_default_timeout(15_000)
    try:
        if key is not None:
            tab.goto(f"{address}/login")
            tab.fill("#key", key)
            tab.click("text=Log in")
            tab.wait_for_url(f"{address}/")
        yield tab
    finally:
        context.close()
