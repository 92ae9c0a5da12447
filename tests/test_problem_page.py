"""The page on problems runs, and prints what it shows."""

import re
from pathlib import Path

import pytest

import stagewise as sw

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "declare-a-problem.md"


@pytest.mark.wording
def test_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) == 2
    names: dict[str, object] = {}
    for code, output in snippets:
        exec(compile(code, "problem.md", "exec"), names)
        assert capsys.readouterr().out == output


def test_the_file_on_the_page_is_a_problem(tmp_path: Path) -> None:
    (found,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "problem.toml").write_text(found, encoding="utf-8")
    assert sw.Problem.load(tmp_path / "problem.toml").safe_name == "today"


def test_the_tutorials_file_is_the_examples() -> None:
    tutorial = (PAGE.parent / "../tutorials/campaign.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```toml\n(.*?)```", tutorial, re.DOTALL)
    assert (PAGE.parents[2] / "examples" / "templates.toml").read_text(encoding="utf-8").endswith(found)


def test_every_setting_of_a_declaration_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (*sw.Problem.__annotations__, *sw.Limit.__annotations__) if name not in text] == []
