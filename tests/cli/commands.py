"""The commands as a shell calls them, and a file that they take."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stagewise.cli.main import app
from stagewise.problem import errors
from stagewise.problem.errors import ErrorCode, StagewiseError

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


def rejected(code: ErrorCode, *words: object) -> str:
    """Assert that a command exits with 2, one line and an error with this code; return the line."""
    codes: list[ErrorCode] = []
    construct = StagewiseError.__init__

    def record(error: StagewiseError, code: ErrorCode, /, *args: object, **details: object) -> None:
        codes.append(code)
        construct(error, code, *args, **details)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors.StagewiseError, "__init__", record)
        status, output = called(*words)
    assert status == 2, output
    assert output.startswith("stagewise: ")
    assert output.count("\n") == 1
    assert code in codes, (codes, output)
    return output


def spec(folder: Path, text: str) -> Path:
    """Return a file with this text."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path
