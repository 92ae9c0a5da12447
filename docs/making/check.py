"""Does the built site lead anywhere it should not? Every page is read, and then looked at in a browser.

python docs/making/check.py docs/_build/html

It fails where a page loads something from another machine, where a link leads nowhere, where a page is wider than a
telephone, and where anything is logged.
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
    """What a page loads, where it leads, and which places it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        text = path.read_text(encoding="utf-8")
        self.unwritten = 'class="math notranslate' in text  # as Sphinx leaves a formula to MathJax
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attributes}
        self.places.update(told[name] for name in ("id", "name") if name in told)
        if tag in LOADED and told.get(LOADED[tag]):
            self.loaded.append(told[LOADED[tag]])
        elif tag == "link" and SHEETS & set(told.get("rel", "").split()):
            self.loaded.append(told.get("href", ""))
        elif tag == "a" and told.get("href"):
            self.links.append(told["href"])


def outside(url: str) -> bool:
    """Return whether another machine is asked."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "blob")


def read(folder: Path) -> list[str]:
    """Return what is wrong with what pages and style sheets name, a sentence each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for url in page.loaded:
            if outside(url):
                found.append(f"{name} loads {url} from another machine")
            elif not url.startswith("data:") and not target(path, url).exists():
                found.append(f"{name} loads {url}, which is not there")
        if page.unwritten:
            found.append(f"{name} leaves its formulas to a script")
        for url in page.links:
            if not outside(url) and not arrives(path, url, pages):
                found.append(f"{name} leads to {url}, which is not there")
    for sheet in sorted(folder.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        named = re.findall(r"url\(\s*[\"']?([^\"')]+)", text) + re.findall(r"@import\s+[\"']([^\"']+)", text)
        found += [f"{sheet.name} loads {url} from another machine" for url in named if outside(url)]
    return found


def target(page: Path, url: str) -> Path:
    """Return the file that an address on a page stands for; a folder stands for its index."""
    path = unquote(urlsplit(url).path)
    file = (page.parent / path).resolve() if path else page
    return file / "index.html" if file.is_dir() else file


def arrives(page: Path, url: str, pages: dict[Path, Page]) -> bool:
    """Return whether a link leads to a file, and to a place in it that is there."""
    file, place = target(page, url), unquote(urlsplit(url).fragment)
    return file.exists() and (not place or file not in pages or place in pages[file].places)


def looked_at(folder: Path) -> list[str]:
    """Return what a browser logs, fails to load or asks of other machines, and pages that are wider than its window."""
    from playwright.sync_api import sync_playwright

    found: list[str] = []
    with sync_playwright() as playwright:
        at = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(executable_path=at, args=["--no-sandbox"])
        tab = browser.new_page()
        now: list[Any] = [None]  # the page that is shown
        tab.on("console", lambda message: found.append(f"{now[0]} logs {message.text}"))
        tab.on("pageerror", lambda error: found.append(f"{now[0]} fails: {error}"))
        tab.on("requestfailed", lambda asked: found.append(f"{now[0]} could not load {asked.url}"))
        tab.on("request", lambda asked: asked.url.startswith("http") and found.append(f"{now[0]} asks {asked.url}"))
        for path in sorted(folder.rglob("*.html")):
            now[0] = path.relative_to(folder)
            for width in WIDTHS:
                tab.set_viewport_size({"width": width, "height": 900})
                tab.goto(path.resolve().as_uri())
                if path.name == "search.html":  # a search of pages that were opened from a disk must find something
                    tab.goto(f"{path.resolve().as_uri()}?q=limit")
                    tab.wait_for_selector("#search-results li")
                if (wide := tab.evaluate("document.documentElement.scrollWidth")) > width:
                    found.append(f"{now[0]} is {wide} px wide in a window of {width} px")
        browser.close()
    return found


def main(folder: Path) -> int:
    """Print what is wrong, and return 1 if anything is."""
    found = read(folder)
    if any(map(shutil.which, BROWSERS)):
        found += looked_at(folder)
    else:
        print("no chromium here: pages were read, and not looked at")
    pages = len(list(folder.rglob("*.html")))
    print("\n".join(found) or f"{pages} pages: nothing from other machines, no link that leads nowhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
