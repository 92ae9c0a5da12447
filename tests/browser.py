"""Pages in a browser: what went wrong while they loaded, and what can be measured of them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lacking import lacking, may_lack, needed

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_BROWSER = Path(__file__).parents[1] / ".venv" / "no-browser"  # made by `make browser`
NONE_HERE = "no chromium on this machine: pages were not looked at"
LOOKS = pytest.mark.skipif(BROWSER is None and may_lack(NO_BROWSER.exists()), reason=NONE_HERE)  # before what it takes
Opened = tuple[Any, list[str]]  # a page, and everything logged, failed or fetched


def need_a_browser() -> None:
    """Skip this test where there is none, or fail it; make has said so where none can be installed."""
    if BROWSER is None:
        lacking(NONE_HERE, excused=NO_BROWSER.exists())


@contextmanager
def launched() -> Iterator[Any]:
    """Yield a browser."""
    need_a_browser()
    with needed("playwright.sync_api", "pages were not looked at").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def browsing() -> Iterator[Callable[..., Opened]]:
    """Yield what opens a page, in a window of a width, "light" or "dark"."""
    with launched() as browser:

        def opened(page: Path, width: int, scheme: str = "light") -> Opened:
            troubles: list[str] = []
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            tab.on("console", lambda message: troubles.append(message.text))
            tab.on("pageerror", lambda error: troubles.append(str(error)))
            tab.on("requestfailed", lambda asked: troubles.append(asked.url[:80]))
            tab.on("request", lambda asked: troubles.append(asked.url[:80]) if asked.url.startswith("http") else None)
            tab.goto(page.as_uri())
            return tab, troubles

        yield opened


@contextmanager
def shown(page: Path, width: int) -> Iterator[Opened]:
    """Yield one page in a window of this width."""
    with browsing() as opened:
        yield opened(page, width)


def sticks_out(tab: Any) -> list[str]:
    """Return what reaches beyond the window, or is wider than what holds it and so scrolls sideways."""
    found: list[str] = tab.evaluate(
        """() => [...document.querySelectorAll('body, body *')].filter(e => {
            const box = e.getBoundingClientRect(), seen = box.width > 0 && box.height > 0;
            const clipped = !['visible', 'clip'].includes(getComputedStyle(e).overflowX);
            const scrolls = clipped && e.scrollWidth > e.clientWidth + 1;
            return seen && (box.right > innerWidth + 1 || box.left < -1 || scrolls);
        }).map(e => e.tagName + ' ' + e.textContent.slice(0, 40))"""
    )
    return found


def top_of(tab: Any, selector: str) -> float:
    """Return how far down the first of these begins."""
    return float(tab.eval_on_selector(selector, "e => e.getBoundingClientRect().top + scrollY"))


def faint(tab: Any, least: float = 4.5) -> list[str]:
    """Return words that stand out from what is behind them by less than the contrast that WCAG 2 asks for (AA)."""
    words: list[str] = tab.evaluate(
        """least => {
            const parts = c => c.match(/[\\d.]+/g).map(Number);
            const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
            const light = c => { const [r, g, b] = parts(c).map(v => linear(v / 255));
                return .2126 * r + .7152 * g + .0722 * b; };
            const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
                if ((parts(c)[3] ?? 1) > .99) return c; } return 'rgb(255, 255, 255)'; };
            const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
            return [...document.querySelectorAll('body, body *')].filter(own).filter(e => {
                const [one, other] = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
                return (one + .05) / (other + .05) < least;
            }).map(e => e.tagName + ' ' + e.textContent.trim().slice(0, 40)); }""",
        least,
    )
    return words
