"""Sizes that nobody can play are refused in a sentence that says what they would need, before anything is made."""

from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, spec

WIDE = GOOD.replace("features = [[1.0, 0.0], [0.0, 1.0]]", "count = 2, dimension = {d}").replace(
    '"rays"', '"random-rays"'
)
WIDE = WIDE.replace("[0.6, 0.8]", "{row}").replace("[0.8, 0.6]", "{row}").replace("[0.0, 0.0]", "{zeros}")


def wide(d: int) -> str:
    row, zeros = str([0.001] * d), str([0.0] * d)
    return WIDE.replace("{d}", str(d)).replace("{row}", row).replace("{zeros}", zeros)


@pytest.mark.parametrize(
    ("command", "text", "parts"),
    [
        ("simulate", GOOD.replace("rounds = 20", "rounds = 1_000_000_000_000_000"), ["rounds is 1000000000", "2**32"]),
        ("simulate", GOOD.replace("runs = 2", "runs = 1_000_000_000"), ["1,000,000,000 runs", "GiB", "record fewer"]),
        (
            "simulate",
            GOOD.replace("rounds = 20", "rounds = 4_000_000_000\nrecord_points = 4_000_000_000\naudit = true"),
            ["4,000,000,000 recorded points", "GiB"],
        ),
        ("certify", GOOD, ["1,000,000,000 runs", "GiB"]),
    ],
)
def test_an_absurd_size_is_refused_with_what_it_would_need(
    command: str, text: str, parts: list[str], tmp_path: Path
) -> None:
    words = ("--runs", 1_000_000_000, "--exhaustive") if command == "certify" else ()
    code, said = called(command, spec(tmp_path, text), "--out", tmp_path / "out", "--quiet", *words)
    assert (code, said.count("\n")) == (2, 1), said
    for part in parts:
        assert part in said
    assert not (tmp_path / "out").exists()


def test_more_features_than_memory_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.policies.rounds.get_total_memory", lambda: 2.0**28)
    code, said = called("simulate", spec(tmp_path, wide(6000)), "--out", tmp_path / "out", "--quiet")
    assert (code, "d² numbers" in said, said.count("\n")) == (2, True, 1), said
    assert not (tmp_path / "out").exists()
