"""docs/how-to/extend.md runs from top to bottom, and prints what it shows."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "extend.md"


def test_the_policy_on_the_page_is_the_one_that_mypy_reads() -> None:
    """`make lint` has mypy, strict, look at the example, where an Agent takes this policy of three verbs."""
    block = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    example = (ROOT / "examples" / "safe_greedy.py").read_text(encoding="utf-8")
    assert block in example
    assert "sw.Agent(policy" in example
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert mypy["strict"]
    assert "safe_greedy" in mypy["modules"]


@pytest.mark.wording
@pytest.mark.compiled
def test_the_page_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks, shown = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "text"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert capsys.readouterr().out == "".join(shown)
