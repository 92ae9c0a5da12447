"""What `make docs` holds the site to is found where it is broken, and what the pages say of each other is true."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.browser import need_a_browser

import stagewise as sw

DOCS = Path(__file__).parents[2] / "docs"
MADE = {  # by `make docs`, from examples/
    DOCS / "gallery" / f"{name}{kind}"
    for name in ["cards", "picture", *runpy.run_path(str(DOCS / "making" / "gallery.py"))["TITLES"]]
    for kind in (".md", ".png")
}
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts and page not in MADE)


@pytest.fixture(scope="module")
def check() -> Any:
    return SimpleNamespace(**runpy.run_path(str(DOCS / "making" / "check.py")))


def built(folder: Path, body: str, head: str = "") -> Path:
    """Write a page with one neighbour that has one place."""
    page = f'<!doctype html><html lang="en"><head><title>a page</title>{head}</head><body>{body}</body></html>'
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "there.html").write_text('<!doctype html><a id="place"></a>', encoding="utf-8")
    (folder / "style.css").write_text("body { margin: 0 }", encoding="utf-8")
    return folder


WHOLE = '<a href="there.html#place">there</a><a href="https://example.org/">elsewhere</a><a href="#">up</a>'
STYLED = '<link rel="stylesheet" href="style.css"><link rel="icon" href="data:,">'


def test_a_whole_site_is_left_alone(check: Any, tmp_path: Path) -> None:
    assert check.read(built(tmp_path, WHOLE, STYLED)) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<script src="https://example.org/a.js"></script>', "from another machine"),
        ('<img src="//example.org/a.png">', "from another machine"),
        ('<link rel="stylesheet" href="http://example.org/a.css">', "from another machine"),
        ('<img src="gone.png">', "loads gone.png, which is not there"),
        ('<span class="math notranslate nohighlight">x^2</span>', "leaves its formulas to a script"),
        ('<a href="gone.html">gone</a>', "leads to gone.html, which is not there"),
        ('<a href="there.html#gone">gone</a>', "leads to there.html#gone, which is not there"),
    ],
)
def test_what_leads_out_or_nowhere_is_named(check: Any, tmp_path: Path, body: str, said: str) -> None:
    (found,) = check.read(built(tmp_path, WHOLE + body, STYLED))
    assert said in found


def test_a_style_sheet_that_asks_elsewhere_is_named(check: Any, tmp_path: Path) -> None:
    built(tmp_path, WHOLE)
    (tmp_path / "style.css").write_text('@import "https://example.org/a.css"; a { b: url(//example.org/c.woff) }')
    assert len(check.read(tmp_path)) == 2


@pytest.mark.long
def test_a_browser_sees_what_reading_does_not(check: Any, tmp_path: Path) -> None:
    need_a_browser()
    assert check.looked_at(built(tmp_path, WHOLE, STYLED)) == []
    body = '<p style="width: 500px">wide</p><script>console.log("a word"); new Image().src = "gone.png"</script>'
    found = "\n".join(check.looked_at(built(tmp_path, body)))
    assert "logs a word" in found
    assert "could not load" in found
    assert " px wide in a window of 390 px" in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_between_pages_lead_to_files(page: Path) -> None:
    """Places within pages are known when they are built: `make docs` follows them."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    targets = [(page.parent / link).resolve() for link in named if link]
    assert [target for target in targets if not target.exists() and target not in MADE] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    entered = {DOCS / "index.md"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            names = [line.split("<")[-1].rstrip(">") for line in tree.splitlines() if line and line[0] != ":"]
            entered |= {file for name in names for file in page.parent.glob(f"{name}.md")}
    assert set(PAGES) - entered == set()


def test_every_program_of_the_gallery_has_a_card_and_a_page_with_its_code() -> None:
    gallery = runpy.run_path(str(DOCS / "making" / "gallery.py"))
    listed = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8").splitlines()
    for name, title in gallery["TITLES"].items():
        assert name in listed
        assert f"**[{title}]({name}.md)**\n\n{gallery['sentence'](name)}" in gallery["card"](name)
        assert f"../../examples/{name}.py" in gallery["page"](name, "")


def test_the_first_page_shows_code_that_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    room: dict[str, Any] = {"sw": sw, "user": {"age": 0.3, "opens": -0.5}}
    exec(compile(code, "index.md", "exec"), room)
    assert room["agent"].waiting == 0
    assert room["decision"].limits["opt_out"].dearest <= 0.02


def test_nothing_that_makes_the_site_is_unpinned() -> None:
    lines = (DOCS / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines if not line.startswith("#"))
    assert {"math-core", "ziamath"} <= {line.split("==")[0] for line in lines}
