"""The README's example runs, and prints what the README shows."""

import re
import textwrap
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.wording
@pytest.mark.compiled
def test_the_first_example_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    code, output = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 900


@pytest.mark.wording
@pytest.mark.compiled
def test_the_production_page_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (README.parent / "docs" / "how-to" / "run-in-production.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^ *```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, re.DOTALL | re.MULTILINE)
    assert len(snippets) == 6
    names: dict[str, object] = {}
    for code, output in snippets:
        exec(compile(textwrap.dedent(code), "production.md", "exec"), names)
        assert capsys.readouterr().out == output


def test_every_reason_for_the_safe_action_stands_on_its_page() -> None:
    from stagewise.policies.settings import CAUSES

    page = (README.parent / "docs" / "how-to" / "why-the-safe-action.md").read_text(encoding="utf-8")
    rows = [f"| `{cause.reason.name}` |" for cause in CAUSES.values()]
    assert [row for row in rows if row not in page] == []


def test_the_example_on_the_command_line_page_is_the_file() -> None:
    page = (README.parent / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert (README.parent / "examples" / "campaign.toml").read_text(encoding="utf-8") in page


def test_every_file_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
