"""The checks of `make docs` find a broken site; links between pages and the index are complete."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.browser import need_a_browser

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = {DOCS / "reference" / "api.md"} | {  # by `make docs`
    DOCS / "gallery" / f"{name}{kind}"
    for name in ["cards", "picture", *runpy.run_path(str(DOCS / "making" / "gallery.py"))["TITLES"]]
    for kind in (".md", ".png")
}
PAGES = sorted(page for page in DOCS.rglob("*.md") if not {"_build", "api"} & set(page.parts) and page not in GENERATED)


@pytest.fixture(scope="module")
def check() -> Any:
    return SimpleNamespace(**runpy.run_path(str(DOCS / "making" / "check.py")))


def write_site(folder: Path, body: str, head: str = "") -> Path:
    """Write a page beside another that has one anchor."""
    page = f'<!doctype html><html lang="en"><head><title>a page</title>{head}</head><body>{body}</body></html>'
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "there.html").write_text('<!doctype html><a id="anchor"></a>', encoding="utf-8")
    (folder / "style.css").write_text("body { margin: 0 }", encoding="utf-8")
    return folder


VALID = '<a href="there.html#anchor">there</a><a href="https://example.org/">elsewhere</a><a href="#">up</a>'
STYLED = '<link rel="stylesheet" href="style.css"><link rel="icon" href="data:,">'


def test_a_valid_site_has_no_problems(check: Any, tmp_path: Path) -> None:
    assert check.check_files(write_site(tmp_path, VALID, STYLED)) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<script src="https://example.org/a.js"></script>', "from another machine"),
        ('<img src="//example.org/a.png">', "from another machine"),
        ('<link rel="stylesheet" href="http://example.org/a.css">', "from another machine"),
        ('<img src="gone.png">', "loads gone.png, which does not exist"),
        ('<span class="math notranslate nohighlight">x^2</span>', "leaves formulas to a script"),
        ('<a href="gone.html">gone</a>', "links to gone.html, which does not exist"),
        ('<a href="there.html#gone">gone</a>', "links to there.html#gone, which does not exist"),
    ],
)
def test_external_requests_and_broken_links_are_found(check: Any, tmp_path: Path, body: str, problem: str) -> None:
    (found,) = check.check_files(write_site(tmp_path, VALID + body, STYLED))
    assert problem in found


def test_a_style_sheet_with_external_requests_is_found(check: Any, tmp_path: Path) -> None:
    write_site(tmp_path, VALID)
    (tmp_path / "style.css").write_text('@import "https://example.org/a.css"; a { b: url(//example.org/c.woff) }')
    assert len(check.check_files(tmp_path)) == 2


@pytest.mark.long
def test_a_browser_finds_what_parsing_does_not(check: Any, tmp_path: Path) -> None:
    need_a_browser()
    assert check.check_in_browser(write_site(tmp_path, VALID, STYLED)) == []
    body = '<p style="width: 500px">wide</p><script>console.log("a word"); new Image().src = "gone.png"</script>'
    found = "\n".join(check.check_in_browser(write_site(tmp_path, body)))
    assert "logs a word" in found
    assert "could not load" in found
    assert " px wide in a window of 390 px" in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_between_pages_lead_to_files(page: Path) -> None:
    """Anchors exist after the build: `make docs` checks them."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    targets = [(page.parent / link).resolve() for link in named if link]
    assert [target for target in targets if not target.exists() and target not in GENERATED] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    entered = {DOCS / "index.md"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line.split("<")[-1].rstrip(">") for line in tree.splitlines() if line and line[0] != ":"]
            entered |= {file for entry in entries for file in page.parent.glob(f"{entry}.md")}
    assert set(PAGES) - entered == set()


def test_every_example_of_the_gallery_has_a_card_and_a_page_with_its_code() -> None:
    gallery = runpy.run_path(str(DOCS / "making" / "gallery.py"))
    listed = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8").splitlines()
    for name, title in gallery["TITLES"].items():
        assert name in listed
        assert f"**[{title}]({name}.md)**\n\n{gallery['read_summary'](name)}" in gallery["write_card"](name)
        assert f"../../examples/{name}.py" in gallery["write_page"](name, "")


def test_the_first_page_shows_code_that_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "index.md", "exec"), names)
    assert names["agent"].pending_count == 0
    assert names["decision"].limits["opt_out"].pessimistic_cost <= 0.02


def test_every_requirement_of_the_site_is_pinned() -> None:
    lines = (DOCS / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines if not line.startswith("#"))
    assert {"math-core", "ziamath"} <= {line.split("==")[0] for line in lines}


# Ten questions that new users could not answer: the words of the index, the page that answers, and words of the answer.
QUESTIONS = {
    "How do I decide for a table of users?": (
        "how-to/decide-for-a-table.md",
        ["agent.decide_frame(", "stagewise decide users.parquet"],
    ),
    "How do I start a server from a log?": ("how-to/serve-from-a-log.md", ["stagewise serve messages.toml --log"]),
    "Can the context have categories?": ("how-to/use-categories.md", ['by="country"', "sw.Category("]),
    "Can I use the scores of my own model?": ("how-to/use-your-models-scores.md", ["score_digest", "context="]),
    "How many groups can a limit have?": ("how-to/how-many-groups.md", ["no fixed number"]),
    "What is `safe_bound=` if the safe action's cost depends on the user?": (
        "how-to/declare-the-safe-cost.md",
        ["**for every user**", "`safe_bound=`"],
    ),
    "When does the automatic stop see an event?": ("how-to/when-a-stop-sees-events.md", ["as soon as it is reported"]),
    "What if rates drift, or one action changes?": ("how-to/when-the-world-changes.md", ["one action drifts"]),
    "How do I back up a server, or erase a user?": ("how-to/back-up-and-erase.md", ["## Back up", "## Erase"]),
    "How do I upgrade two running servers?": ("how-to/upgrade-servers.md", ["**one at a time**", "another version"]),
}
# Other questions of the index.
MORE_QUESTIONS = {
    "What if a value is missing, too large, or a date?": (
        "how-to/handle-missing-values.md",
        ["missing_context_field", "clip=True", "sw.Date("],
    ),
    "Can my own model decide, under limits?": ("how-to/guard-your-model.md", ["propose=", "scores="]),
    "How do I start from a log?": ("how-to/bring-a-log.md", ["learn_log_frame"]),
    "What if outcomes come late, or never?": ("how-to/late-outcomes.md", ["OutcomeWindow"]),
    "Who is the limit promised to?": ("explanation/who-is-the-limit-promised-to.md", ["average"]),
    "Can a limit hold for users of every risk?": ("how-to/limit-by-a-risk-score.md", ["sw.RiskScore", "cuts"]),
    "How do I erase a user from a server's log?": (
        "how-to/erase-a-user.md",
        ["stagewise store erase", "user_keys"],
    ),
    "How do I remove old rows of a server?": (
        "how-to/remove-old-rows.md",
        ["stagewise store retain", "What can be verified"],
    ),
    "Why this action?": ("how-to/why-this-action.md", ["explain"]),
    "Why is only the safe action played?": ("how-to/why-the-safe-action.md", ["sw.FallbackReason"]),
}


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def count_clicks() -> dict[Path, int]:
    """Return how many links lead from the index to each page; the menu beside the pages does not count."""
    clicks, pending = {DOCS / "index.md": 0}, [DOCS / "index.md"]
    for page in pending:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s#]+\.(?:md|ipynb))", text):
            target = (page.parent / link).resolve()
            if target not in clicks and target.exists():
                clicks[target] = clicks[page] + 1
                pending.append(target)
    return clicks


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", [*QUESTIONS, *MORE_QUESTIONS])
def test_a_question_is_answered_within_two_clicks(question: str) -> None:
    name, answer = {**QUESTIONS, **MORE_QUESTIONS}[question]
    (row,) = [line for line in read(DOCS / "index.md").splitlines() if line.startswith(f"| {question} |")]
    assert f"]({name})" in row
    assert count_clicks()[DOCS / name] <= 2
    assert [words for words in answer if words not in read(DOCS / name)] == []


def test_the_index_has_no_other_questions() -> None:
    table = read(DOCS / "index.md").split("## Questions")[1].split("\n## ")[0]
    asked = re.findall(r"^\| ([^|]+\?) \|", table, re.MULTILINE)
    assert sorted(asked) == sorted([*QUESTIONS, *MORE_QUESTIONS])


def test_every_page_is_within_two_clicks() -> None:
    """A list on the page of decisions leads to each of them."""
    clicks = count_clicks()
    pages = [page for page in PAGES if page.parent.name != "decisions"]
    assert len(pages) > 80
    assert [str(page.relative_to(DOCS)) for page in pages if clicks.get(page, 9) > 2] == []


ROOT = DOCS.parent
FOLDERS = [ROOT / folder for folder in ("", "src", "src/stagewise", "reproduction/src/stagewise_reproduction", "tests")]


def test_every_file_that_a_page_names_exists() -> None:
    """`policies/caps.py` is below src/stagewise, `NAME` stands for a name."""
    named = [
        (page.name, path)
        for page in [*PAGES, *ROOT.glob("*.md")]
        for path in re.findall(r"(?<![\w/.:-])((?:[\w.-]+/)+[\w-]+\.py)\b", page.read_text(encoding="utf-8"))
        if "NAME" not in path
    ]
    assert len(named) > 300
    missing = [row for row in named if not any((folder / row[1]).exists() for folder in FOLDERS)]
    assert sorted(set(missing)) == []
