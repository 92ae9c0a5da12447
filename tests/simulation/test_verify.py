"""Certificates checked again: to the bit, within a tolerance, and against what was rewritten."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused
from tests.simulation.certified import FAMILIES, FIXED, POLICY, certified

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.verify import FaultCode


@pytest.fixture(scope="module")
def text() -> str:
    """Return a certificate of a hundred runs."""
    return json.dumps(certified(runs=100, rounds=5).content)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_a_certificate_can_be_played_again(name: str, tmp_path: Path) -> None:
    policy, world = FAMILIES[name]
    path, content = tmp_path / "certificate.json", certified(policy, world, runs=60, rounds=5).content
    path.write_text(json.dumps(content), encoding="utf-8")
    given = {"policy": policy, "world": world} if "function" in name else {}
    found = sw.verify_certificate(path, replay_fraction=0.2, **given)
    assert found.stands
    assert found.equal == found.batches > 1
    if given:
        with refused(sw.InvalidProblem, ErrorCode.MISSING_VALUE):
            sw.verify_certificate(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "code", "section"),
    [
        (lambda c: c["batches"][0].update(digest="0" * 64), FaultCode.RUNS_DIFFER, None),
        (lambda c: c["plan"].update(seed=1), FaultCode.RUNS_DIFFER, None),
        (lambda c: c["policy"]["settings"].update(noise=0.4), FaultCode.RUNS_DIFFER, None),
        (lambda c: c.update(verdict="refuted"), FaultCode.SECTION_DIFFERS, "verdict"),
        (lambda c: c["violations"].update(occurrences=99), FaultCode.SECTION_DIFFERS, "violations"),
        (lambda c: c["coverage"][0].update(occurrences=1000), FaultCode.SECTION_DIFFERS, "coverage"),
        (lambda c: c["batches"].pop(0), FaultCode.BATCHES_DIFFER, None),
        (lambda c: c["thresholds"][0].update(value=0.9), FaultCode.SECTION_DIFFERS, "thresholds"),
        (lambda c: c["claim"].update(rounds=10**9), FaultCode.SECTION_DIFFERS, "claim"),
        (lambda c: c["assumptions"][0].update(kept=False), FaultCode.SECTION_DIFFERS, "assumptions"),
        (lambda c: c["margins"]["cost"]["quantiles"].update({"0": 0.2}), FaultCode.SECTION_DIFFERS, "margins"),
        (lambda c: c["closeness"]["limits"][0].update(met=7), FaultCode.SECTION_DIFFERS, "closeness"),
    ],
)
def test_a_certificate_that_was_tampered_with_does_not_stand(
    change: Any, code: FaultCode, section: str | None, text: str, tmp_path: Path
) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    found = sw.verify_certificate(path, replay_fraction=1.0)
    assert not found.stands
    assert (code, section) in {(fault.code, fault.details.get("section")) for fault in found.faults}


def test_another_version_is_compared_within_a_tolerance(text: str, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    content["made"]["versions"]["numpy"] = "1.0"
    for batch in content["batches"]:
        batch["digest"] = "0" * 64
        batch["regret"] *= 1.0 + 1e-9
    path.write_text(json.dumps(content), encoding="utf-8")
    found = sw.verify_certificate(path, replay_fraction=1.0)
    assert found.stands
    assert found.equal == 0
    assert found.differences == {"numpy": ("1.0", np.__version__)}
    content["batches"][0]["regret"] *= 1.01
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not sw.verify_certificate(path, replay_fraction=1.0).stands


def test_a_certificate_of_an_earlier_release_is_compared_by_its_results(text: str, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    assert sw.verify_certificate(write(path, content), replay_fraction=1.0).differences == {}
    content["made"]["versions"]["stagewise"] = "0.0.9"
    content["made"]["machine"] = content["made"]["machine"].split(",")[0] + ", 999 cores"
    found = sw.verify_certificate(write(path, content), replay_fraction=1.0)
    assert found.stands
    assert found.equal == found.batches > 0  # equal to the bit all the same
    assert found.differences == {"stagewise": ("0.0.9", sw.__version__)}


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write a certificate."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(("algebra", "is_named"), [("another linear algebra", True), (None, False)])
def test_runs_that_another_linear_algebra_made_are_said_to_be_so(
    algebra: str | None, is_named: bool, tmp_path: Path
) -> None:
    policy, world = POLICY, FIXED
    content = sw.certify(policy, world, rounds=5, runs=4, progress=False, backend="python").content
    made = content["made"]
    made["machine"] = ", ".join([*made["machine"].split(", ")[:-1], algebra or made["machine"].split(", ")[-1]])
    content["batches"][0]["digest"] = "0" * 64
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert sw.verify_certificate(path, replay_fraction=1.0).stands == is_named  # digests are not compared then
    content["batches"][0]["regret"] += 0.1
    path.write_text(json.dumps(content), encoding="utf-8")
    codes = {fault.code for fault in sw.verify_certificate(path, replay_fraction=1.0).faults}
    assert FaultCode.RUNS_DIFFER in codes
    assert (FaultCode.ARITHMETIC_DIFFERS in codes) == is_named


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(made=3),
        lambda c: c["plan"].update(rounds=0),
        lambda c: c["plan"].update(seed=2**70),
        lambda c: c.update(batches=[]),
        lambda c: c["policy"].update(kind="Magic"),
        lambda c: c.pop("margins"),
    ],
)
def test_a_certificate_that_cannot_be_played_is_refused(change: Any, text: str, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(sw.StagewiseError):
        sw.verify_certificate(path)


def test_the_part_is_chosen_by_a_seed(text: str, tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.verify_certificate(tmp_path, seed=-1)


@pytest.mark.parametrize("fraction", [0.0, 1.5, float("nan")])
def test_a_part_must_be_a_share(fraction: float, text: str, tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    with refused_with(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE, ErrorCode.NOT_FINITE):
        sw.verify_certificate(tmp_path, replay_fraction=fraction)


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}", encoding="utf-8")
    with refused(sw.InvalidFile, ErrorCode.FILE_OF_OTHER_VERSION):
        sw.verify_certificate(tmp_path)
    with refused(sw.InvalidFile, ErrorCode.FILE_NOT_FOUND):
        sw.verify_certificate(tmp_path / "nowhere.json")
