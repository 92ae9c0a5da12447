"""The how-to pages run from top to bottom, and print what they show."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.sizes import LONG

pytestmark = pytest.mark.wording

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
PAGES = [
    "bring-a-log",
    "check-a-log",
    "check-health",
    "choose-a-method-of-oplb",
    "decide-for-a-table",
    "decide-in-several-processes",
    "decide-on-a-cluster",
    "declare-the-safe-cost",
    "evaluate",
    "guard-your-model",
    "handle-missing-values",
    "how-many-groups",
    "late-outcomes",
    "limit-by-a-risk-score",
    "play-a-point-of-a-convex-set",
    "read-the-report",
    "safe-action-of-the-round",
    "use-categories",
    "use-your-models-scores",
    "when-a-stop-sees-events",
    "when-the-world-changes",
]
SIMULATED: dict[str, Any] = {"learn-rare-costs": LONG, "simulate": pytest.mark.compiled, "use-nonlinear-models": LONG}


@pytest.mark.parametrize("page", [*PAGES, *(pytest.param(page, marks=marks) for page, marks in SIMULATED.items())])
def test_a_page_prints_what_it_shows(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, re.DOTALL)
    assert snippets
    names: dict[str, object] = {"__name__": "page"}
    for code, output in snippets:
        exec(compile(code, f"{page}.md", "exec"), names)
        assert capsys.readouterr().out == output
