"""Check the built site: parse every page, then open it in a browser.

python docs/making/check.py docs/_build/html

It fails if a page loads something from another machine, if a link is broken, if a page is wider than a phone's screen,
and if the browser logs anything.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LOADED = {"object": "data"} | dict.fromkeys(("embed", "iframe", "img", "script", "source", "video"), "src")
SHEETS = {"stylesheet", "icon", "shortcut", "preload", "manifest", "modulepreload"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (390, 1280)


class Page(HTMLParser):
    """What a page loads, its links, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        text = path.read_text(encoding="utf-8")
        self.has_raw_math = 'class="math notranslate' in text  # a formula that Sphinx left to MathJax
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag in LOADED and values.get(LOADED[tag]):
            self.loaded.append(values[LOADED[tag]])
        elif tag == "link" and SHEETS & set(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))
        elif tag == "a" and values.get("href"):
            self.links.append(values["href"])


def is_external(url: str) -> bool:
    """Say whether a request would go to another machine."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "blob")


def check_files(folder: Path) -> list[str]:
    """Return the problems of pages and style sheets, one sentence each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for url in page.loaded:
            if is_external(url):
                found.append(f"{name} loads {url} from another machine")
            elif not url.startswith("data:") and not resolve_link(path, url).exists():
                found.append(f"{name} loads {url}, which does not exist")
        if page.has_raw_math:
            found.append(f"{name} leaves formulas to a script")
        for url in page.links:
            if not is_external(url) and not is_valid_link(path, url, pages):
                found.append(f"{name} links to {url}, which does not exist")
    for sheet in sorted(folder.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        named = re.findall(r"url\(\s*[\"']?([^\"')]+)", text) + re.findall(r"@import\s+[\"']([^\"']+)", text)
        found += [f"{sheet.name} loads {url} from another machine" for url in named if is_external(url)]
    return found


def resolve_link(page: Path, url: str) -> Path:
    """Return the file of a link on a page; for a folder its index."""
    path = unquote(urlsplit(url).path)
    file = (page.parent / path).resolve() if path else page
    return file / "index.html" if file.is_dir() else file


def is_valid_link(page: Path, url: str, pages: dict[Path, Page]) -> bool:
    """Say whether the file of a link exists, and the anchor in it."""
    file, anchor = resolve_link(page, url), unquote(urlsplit(url).fragment)
    return file.exists() and (not anchor or file not in pages or anchor in pages[file].anchors)


def find_browser() -> str | None:
    """Return the path of an installed browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def check_in_browser(folder: Path) -> list[str]:
    """Return what a browser logs, fails to load or requests elsewhere, and pages that are wider than its window."""
    from playwright.sync_api import sync_playwright

    found: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        tab = browser.new_page()
        now: list[Any] = [None]  # the open page
        tab.on("console", lambda message: found.append(f"{now[0]} logs {message.text}"))
        tab.on("pageerror", lambda error: found.append(f"{now[0]} fails: {error}"))
        tab.on("requestfailed", lambda request: found.append(f"{now[0]} could not load {request.url}"))
        tab.on(
            "request",
            lambda request: request.url.startswith("http") and found.append(f"{now[0]} requests {request.url}"),
        )
        for path in sorted(folder.rglob("*.html")):
            now[0] = path.relative_to(folder)
            for width in WIDTHS:
                tab.set_viewport_size({"width": width, "height": 900})
                tab.goto(path.resolve().as_uri())
                if path.name == "search.html":  # search must work for pages opened from a disk
                    tab.goto(f"{path.resolve().as_uri()}?q=limit")
                    tab.wait_for_selector("#search-results li")
                if (wide := tab.evaluate("document.documentElement.scrollWidth")) > width:
                    found.append(f"{now[0]} is {wide} px wide in a window of {width} px")
        browser.close()
    return found


def main(folder: Path) -> int:
    """Print the problems, and return 1 if there are any."""
    found = check_files(folder)
    if find_browser():
        found += check_in_browser(folder)
    else:
        print("no chromium: pages were parsed, and not opened in a browser")
    pages = len(list(folder.rglob("*.html")))
    print("\n".join(found) or f"{pages} pages: no external requests, no broken links")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
