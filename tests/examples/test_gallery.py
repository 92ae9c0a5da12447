"""Every short program of the gallery runs, keeps its limits, and makes its picture."""

import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES: dict[str, dict[str, int]] = {  # as many rounds as plain Python plays in a moment
    "every_round": {"rounds": 2000},
    "dose": {"patients": 60},
    "price": {"visitors": 60},
    "pacing": {"hours": 80},
    "opt_outs": {"users": 80},
    "segments": {"users": 80},
    "each_user": {"users": 60, "rows": 900},
    "map": {"days": 20},
    "convex_set": {"weeks": 15},
    "shadow": {"users": 400},
    "warm_start": {"users": 60, "rows": 400},
    "guarded_boosting": {"days": 8, "daily": 40, "rows": 1_200},
    "own_policy": {"rounds": 80},
}
UNHELD = {"LinUCB", "pacing", "unguarded", "on average"}  # what the others are compared with
LATER = {"kids, one limit for all", "rates", "by", "score"}  # the same, where it takes more rounds


@pytest.mark.parametrize("name", SIZES)
def test_a_program_keeps_its_limits_and_makes_its_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    program: Any = import_module(name)
    monkeypatch.delitem(sys.modules, name)
    picture = tmp_path / "made" / f"{name}.png"
    program.main(str(picture), **SIZES[name])
    said = capsys.readouterr().out
    beyond = {who: int(count) for who, count in re.findall(r"^(?:(.+): )?(\d+) of \d+ ", said, re.MULTILINE)}
    assert {beyond[who] for who in beyond if who not in UNHELD | LATER} == {0}, said
    assert all(beyond[who] > 0 for who in beyond if who in UNHELD), said
    assert picture.stat().st_size > 10_000


def test_the_gallery_shows_each_of_them() -> None:
    shown = runpy.run_path(str(EXAMPLES.parent / "docs" / "making" / "gallery.py"))["TITLES"]
    assert list(shown) == list(SIZES)
