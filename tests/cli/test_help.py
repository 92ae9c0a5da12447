"""What a message says to read is there after `pip install`, and every command says how it is called."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.commands import called

from stagewise.cli import main as help_command
from stagewise.cli.main import app

ROOT = Path(__file__).parents[2]
TOPIC = re.compile(r"stagewise help ([a-z][a-z/-]*)")


def messages() -> set[str]:
    """Return the topics that messages name: texts that are no docstrings."""
    found: set[str] = set()
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction" / "src").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(TOPIC.findall(node.value))
    return found


def commands() -> dict[str, Any]:
    """Return every command by the words that call it."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found.update({f"{name} {word}": one for word, one in inner.items()} if inner else {name: command})
    return found


def test_every_topic_that_a_message_names_is_a_page() -> None:
    named = messages()
    assert {"cli", "declare-a-problem", "errata"} <= named
    known = {topic.partition("/")[2] for topic in help_command.list_pages()}
    for topic in named - set(help_command.list_pages()) - known:
        assert topic in commands(), topic


@pytest.mark.parametrize("topic", ["how-to/declare-a-problem", "theory/rays", "docs/reference/cli.md"])
def test_a_page_is_printed(topic: str) -> None:
    code, said = called("help", topic)
    assert code == 0
    name = topic.removeprefix("docs/").removesuffix(".md")
    assert said.strip() == (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").strip()


def test_the_pages_are_listed_and_a_near_miss_is_told() -> None:
    code, said = called("help")
    assert code == 0
    assert "how-to/declare-a-problem" in said
    assert called("help", "declare-a-problem") == called("help", "how-to/declare-a-problem")
    assert "did you mean 'declare-a-problem'?" in called("help", "declare-a-probelm")[1]
    assert called("help", "nonsense")[0] == 2
    assert "--out" in called("help", "simulate")[1]


def test_the_wheel_holds_every_page_that_help_prints(tmp_path: Path) -> None:
    for name in ("src", "docs", "README.md", "LICENSE", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            kept = shutil.ignore_patterns("__pycache__", "certificates", "pictures", "_build")
            shutil.copytree(source, tmp_path / name, ignore=kept)
        else:
            shutil.copy(source, tmp_path / name)
    line = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    made = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for topic in help_command.list_pages():
        assert f"stagewise/docs/{topic}.md" in names
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = (
        "from stagewise.cli.main import INSTALLED_DOCS, read_page; assert INSTALLED_DOCS.is_dir(); "
        "print(read_page('declare-a-problem'))"
    )
    env = {"PYTHONPATH": str(tmp_path / "installed"), "NUMBA_DISABLE_JIT": "1"}
    read = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    written = ROOT / "docs" / "how-to" / "declare-a-problem.md"
    assert read.stdout.strip() == written.read_text(encoding="utf-8").strip(), read.stderr


@pytest.mark.parametrize("words", commands())
def test_every_command_has_an_example(words: str) -> None:
    assert f"Example: stagewise {words}" in (commands()[words].help or "")
