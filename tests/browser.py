"""A page in a browser, and what went wrong while it loaded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def shown(page: Path, width: int) -> Iterator[tuple[Any, list[str]]]:
    """Yield the page in a window of this width, and everything logged, failed or fetched; skip where none can be."""
    if BROWSER is None:
        pytest.skip("no chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api")
    troubles: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("requestfailed", lambda asked: troubles.append(asked.url[:80]))
        tab.on("request", lambda asked: troubles.append(asked.url[:80]) if asked.url.startswith("http") else None)
        tab.goto(page.as_uri())
        yield tab, troubles
        browser.close()
