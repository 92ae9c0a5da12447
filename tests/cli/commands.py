"""The commands as a shell calls them, and a file that they take."""

from pathlib import Path

from typer.testing import CliRunner

from stagewise.cli.main import app

GOOD = """
[simulation]
rounds = 20
runs = 2
[world]
kind = "linear"
reward = [0.6, 0.8]
cost = [0.8, 0.6]
noise = 0.1
actions = { kind = "rays", features = [[1.0, 0.0], [0.0, 1.0]] }
[policy]
kind = "LCLUCB"
threshold = 0.3
noise = 0.1
safe_action = { features = [0.0, 0.0] }
"""


def called(*words: object) -> tuple[int, str]:
    """Return a command's exit code and what it said."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def spec(folder: Path, text: str) -> Path:
    """Return a file with this text."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path
