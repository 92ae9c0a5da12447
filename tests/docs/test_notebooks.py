"""The notebooks run, at a small size and without Jupyter, and are kept without outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
SMALLER = {"ROUNDS = 30_000": "ROUNDS = 100", "ROWS, RUNS = 20_000, 40": "ROWS, RUNS = 1_000, 40"}
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_are_three() -> None:
    names = [path.stem for path in NOTEBOOKS]
    assert names == ["figure-of-the-paper", "from-a-log-to-a-launch", "quickstart"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(path))


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells(path):
        code = "".join(cell["source"])
        for large, small in SMALLER.items():
            code = code.replace(large, small)
        exec(compile(code, path.name, "exec"), names)
