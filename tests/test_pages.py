"""The pages on the doctor, frames, health, reports and evaluation run, and print what they show."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["check-a-log", "bring-a-log", "check-health", "read-the-report", "evaluate"])
def test_a_page_prints_what_it_shows(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert len(snippets) == 1
    for code, shown in snippets:
        exec(compile(code, f"{page}.md", "exec"), {})
        assert capsys.readouterr().out == shown
