"""Certificates checked again: to the bit, within a tolerance, and against what was rewritten."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused
from tests.simulation.certified import FAMILIES, certified

import stagewise as sw
from stagewise.problem.errors import ErrorCode


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
    ("change", "fault"),
    [
        (lambda c: c["batches"][0].update(digest="0" * 64), "give other numbers"),
        (lambda c: c["plan"].update(seed=1), "give other numbers"),
        (lambda c: c["policy"]["settings"].update(noise=0.4), "give other numbers"),
        (lambda c: c.update(verdict="refuted"), "the verdict"),
        (lambda c: c["violations"].update(occurrences=99), "the violations"),
        (lambda c: c["coverage"][0].update(occurrences=1000), "intervals"),
        (lambda c: c["batches"].pop(0), "not those of the plan"),
        (lambda c: c["thresholds"][0].update(value=0.9), "the thresholds"),
        (lambda c: c["claim"].update(rounds=10**9), "another number of rounds"),
        (lambda c: c["assumptions"][0].update(kept=False), "the assumptions"),
        (lambda c: c["margins"]["cost"]["quantiles"].update({"0": 0.2}), "the margins"),
        (lambda c: c["closeness"]["limits"][0].update(met=7), "the rounds at the limits"),
    ],
)
def test_a_certificate_that_was_tampered_with_does_not_stand(
    change: Any, fault: str, text: str, tmp_path: Path
) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    found = sw.verify_certificate(path, replay_fraction=1.0)
    assert not found.stands
    assert any(fault in words for words in found.faults)


def test_another_version_is_compared_within_a_tolerance(text: str, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", json.loads(text)
    content["made"]["versions"]["numpy"] = "1.0"
    for batch in content["batches"]:
        batch["digest"] = "0" * 64
        batch["regret"] *= 1.0 + 1e-9
    path.write_text(json.dumps(content), encoding="utf-8")
    assert sw.verify_certificate(path, replay_fraction=1.0).stands
    content["batches"][0]["regret"] *= 1.01
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not sw.verify_certificate(path, replay_fraction=1.0).stands


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
