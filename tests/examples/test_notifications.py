"""The tutorial's example runs, keeps its cap, and gets better at it."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compiled

EXAMPLE = Path(__file__).parents[2] / "examples" / "notifications.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    room: dict[str, Any] = {"__name__": "notifications"}
    exec(compile(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE), "exec"), room)
    return room


def test_the_plan_shows_what_the_cap_is_worth(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["plan"](rounds=20_000, runs=2)
    guarded, unguarded = capsys.readouterr().out.splitlines()
    assert "; 0 rounds above 2 %" in guarded
    assert "; 0 rounds above 2 %" not in unguarded


def test_the_certificate_is_supported(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    example["prove"](tmp_path, rounds=500, runs=1_000)
    assert "OPB: supported" in capsys.readouterr().out
    assert (tmp_path / "certificate.html").exists()


def test_the_campaign_learns_over_nights_and_late_outcomes(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    example["serve"](days=12, users=3_000)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("day  1: nothing 98%")
    assert lines[4].startswith("day 12: ")
    assert "nothing" not in lines[4]
    assert all("opt-outs at most 0.0200" in line for line in lines[:5])
