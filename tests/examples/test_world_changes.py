"""The tutorial of a world that changes prints what it shows, and so does its example."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "when-the-world-changes.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "world_changes.py"
pytestmark = pytest.mark.compiled


def test_the_tutorial_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    snippets = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", PAGE, re.DOTALL)
    assert len(snippets) == 3
    for code, output in snippets:
        exec(code, names)
        assert capsys.readouterr().out == output


@pytest.mark.slow
def test_the_example_prints_the_table_and_draws_its_picture(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLE))
    example["main"]()
    assert capsys.readouterr().out in PAGE
