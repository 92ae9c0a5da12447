"""The example of a report runs: it counts, draws, and notices that opt-outs rise."""

from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "campaign_report.py"


@pytest.mark.compiled
def test_the_example_reports_and_notices_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room: dict[str, Any] = {"__name__": "campaign_report"}
    exec(compile(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE), "exec"), room)
    room["main"](rows=20_000, rounds=3_000)
    out = capsys.readouterr().out
    assert out.startswith("3,000 rounds decided")
    assert "'opt_out' averages at least" in out.splitlines()[-1]
