"""The guide on late outcomes and replicas prints what it shows."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "guide.md"


def test_the_guide_on_order_and_replicas_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    part = text[text.index("## When outcomes are late or missing") : text.index("## Starting from logs")]
    snippets = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", part, re.DOTALL)
    assert len(snippets) == part.count("```python") == 3
    known: dict[str, object] = {}
    for code, shown in snippets:
        exec(compile(code, "guide.md", "exec"), known)
        assert capsys.readouterr().out == shown
