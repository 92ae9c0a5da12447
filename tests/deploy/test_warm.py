"""The program that fills the image's cache of kernels, on a machine where compiling takes longer than a window."""

import itertools
import runpy
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_cache_is_filled_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = itertools.count(time.time(), 60.0)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    runpy.run_path(str(ROOT / "deploy" / "warm.py"))["main"](str(ROOT / "examples" / "notifications.toml"))
    assert "notifications.toml" in capsys.readouterr().out
