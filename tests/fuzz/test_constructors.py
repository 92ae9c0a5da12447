"""Hostile values for every argument of every public class and function: a sentence, and never an interior error."""

from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.attack import Fault, faults, pairs, singles
from tests.fuzz.calls import CONSTRUCTORS, ERRORS, FILES, PROTOCOLS, QUESTIONS, RECORDS, SIMULATIONS, Call

import stagewise as sw

SOONER = {**CONSTRUCTORS, **QUESTIONS}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder where a hostile path may lead to a file."""
    (tmp_path / "file").write_text("a file", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_everything_public_is_attacked() -> None:
    attacked = {name.split()[0] for name in (*CONSTRUCTORS, *SIMULATIONS)}
    assert attacked | RECORDS | PROTOCOLS | ERRORS | FILES == set(sw.__all__)


@pytest.mark.long
@pytest.mark.parametrize("call", SOONER.values(), ids=SOONER)
def test_hostile_values_are_taken_or_refused_in_a_sentence(call: Call) -> None:
    assert faults(call, [*singles(call), *pairs(call, 20, 1)]) == []


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("call", SIMULATIONS.values(), ids=SIMULATIONS)
def test_hostile_simulations_are_played_or_refused_in_a_sentence(call: Call) -> None:
    assert faults(call, [*singles(call), *pairs(call, 20, 1)]) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("call", (SOONER | SIMULATIONS).values(), ids=SOONER | SIMULATIONS)
def test_two_hostile_values_at_once(call: Call, seed: int) -> None:
    assert faults(call, pairs(call, 2000, seed)) == []


@pytest.mark.wording
def test_a_fault_would_be_seen() -> None:
    def careless(value: Any) -> float:
        return 1.0 / float(value)

    def wordy(value: Any) -> None:
        raise sw.InvalidProblem(sw.ErrorCode.INVALID_NAME, "short")

    assert any("ZeroDivisionError" in fault for fault in faults(Call(careless, {"value": 1.0}), [{"value": "zero"}]))
    with pytest.raises(Fault, match="5 characters"):
        faults(Call(wordy, {"value": 1}), [])
