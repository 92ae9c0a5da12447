"""A certificate's file at the door: other words, other numbers and anything besides are refused in a sentence."""

import hashlib
import json
import os
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.policies.saved_policies import find_kind
from stagewise.problem.errors import ErrorCode
from stagewise.reports.evidence import DIGEST_LABELS, compute_digest, get_column

CERTIFICATES = Path(__file__).parents[2] / "docs" / "certificates"

WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.5)
POLICY = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.5)
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def text() -> str:
    return json.dumps(sw.certify(POLICY, WORLD, rounds=5, runs=3, progress=False).content)


def reject(content: Any, folder: Path) -> sw.InvalidFile:
    """Return the error that a file is rejected with."""
    path = folder / "certificate.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(sw.InvalidFile) as refusal:
        sw.SimulationCertificate.load(path)
    message = str(refusal.value).replace(str(path), "")
    assert "\n" not in message
    assert len(message) < 400
    return refusal.value


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda c: c.update(verdict=SCRIPT), "verdict"),
        (lambda c: c.update(coverage_verdict="well known"), "coverage_verdict"),
        (lambda c: c["violations"].update(verdict="supported onclick=alert(1)"), "violations.verdict"),
        (lambda c: c["violations"].update(occurrences=True), "violations.occurrences"),
        (lambda c: c["violations"].update(occurrences=-1), "violations.occurrences"),
        (lambda c: c["violations"].update(anytime=[0.0, 2.0]), "violations.anytime"),
        (lambda c: c["thresholds"][0].update(side=SCRIPT), "side"),
        (lambda c: c["thresholds"][0].update(value="0.3"), "value"),
        (lambda c: c["plan"].update(seed=SCRIPT), "plan.seed"),
        (lambda c: c["plan"].update(seed=-1), "plan.seed"),
        (lambda c: c["plan"].update(runs=2.5), "plan.runs"),
        (lambda c: c["plan"].update(backend="magic"), "plan.backend"),
        (lambda c: c["plan"].update(stop_early=1), "plan.stop_early"),
        (lambda c: c["plan"].update(points=0), "plan.points"),
        (lambda c: c["plan"].update(seal=SCRIPT), "plan.seal"),
        (lambda c: c["plan"].pop("batch"), "plan.batch"),
        (lambda c: c["violations"].update(exact=[0.1]), "violations.exact"),
        (lambda c: c["violations"].update(runs_needed=0), "violations.runs_needed"),
        (lambda c: c["batches"][0].update(regret=1e200), "regret"),
        (lambda c: c["batches"][0].update(missing=[-1, 0]), "missing"),
        (lambda c: c["made"].update(seconds=-1.0), "made.seconds"),
        (lambda c: c["margins"]["cost"]["counts"].append(1), "counts"),
        (lambda c: c["world"].update(spread=2.0), "world.spread"),
        (lambda c: c["assumptions"][0].update(kept="yes"), "kept"),
        (lambda c: c["claim"].update(confidence=1.0), "claim.confidence"),
        (lambda c: c["claim"].update(rounds=0), "claim.rounds"),
        (lambda c: c["made"].update(seconds=SCRIPT), "made.seconds"),
        (lambda c: c["made"].update(day=SCRIPT), "made.day"),
        (lambda c: c["made"]["versions"].update(numpy=3), "made.versions"),
        (lambda c: c["policy"].update(seal=SCRIPT), "policy.seal"),
        (lambda c: c["policy"].update(kind=3), "policy.kind"),
        (lambda c: c["world"].update(family=None), "world.family"),
        (lambda c: c["batches"][0].update(digest="0"), "digest"),
        (lambda c: c["regret"]["rounds"].pop(), "regret"),
        (lambda c: c["regret"].update(bound=None), "regret"),
        (lambda c: c["regret"]["quantiles"].pop("0.5"), "regret.quantiles"),
        (lambda c: c["margins"]["cost"]["edges"].pop(), "edges"),
        (lambda c: c["margins"].clear(), "margins"),
        (lambda c: c["first_near_optimal_round"].update(never=10**30), "first_near_optimal_round.never"),
        (lambda c: c.update(batches=[]), "batches"),
        (lambda c: c.update(seal=SCRIPT), "seal"),
        (lambda c: c.pop("mixes"), "mixes"),
        (lambda c: c.update(version=2), "version"),
    ],
)
def test_what_no_certificate_can_hold_is_refused(change: Any, part: str, text: str, tmp_path: Path) -> None:
    content = json.loads(text)
    change(content)
    error = reject(content, tmp_path)
    if part != "version":
        assert error.code is ErrorCode.FILE_INVALID
        assert part in error.details["wrong"]
    else:
        assert error.code is ErrorCode.FILE_OF_OTHER_VERSION


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused_anywhere(number: str, text: str, tmp_path: Path) -> None:
    content = json.loads(text)
    content["policy"]["settings"]["noise"] = "HERE"
    assert reject(json.dumps(content).replace('"HERE"', number), tmp_path).code is ErrorCode.FILE_INVALID


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "{", "3", '{"format": "stagewise-certificate"}'])
def test_what_is_no_certificate_is_refused(content: str, tmp_path: Path) -> None:
    assert reject(content, tmp_path).code in (ErrorCode.FILE_INVALID, ErrorCode.FILE_OF_OTHER_VERSION)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_bytes(b"\xff\xfe\x00")
    with refused(sw.InvalidFile, ErrorCode.FILE_INVALID):
        sw.SimulationCertificate.load(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "certificate.json")
    with refused(sw.InvalidFile, ErrorCode.FILE_WRONG_KIND):
        sw.SimulationCertificate.load(tmp_path)


@pytest.mark.long
def test_what_was_saved_is_read_and_saved_again(text: str, tmp_path: Path) -> None:
    sw.SimulationCertificate(json.loads(text)).save(tmp_path / "one")
    sw.SimulationCertificate.load(tmp_path / "one").save(tmp_path / "two")
    for name in ("certificate.json", "certificate.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_digest_is_made_with_labels_that_never_change() -> None:
    """Certificates hold digests: a column that is renamed keeps its label, and the bytes stay the same."""
    assert list(DIGEST_LABELS.values()) == [
        b"runs", b"violations", b"first_violation", b"hopeless", b"settled", b"missed", b"regret", b"margin",
    ]  # fmt: skip
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
    result = sw.simulate(policy, world, rounds=20, runs=2, audit=True, progress=False, backend="python")
    digest = hashlib.sha256()
    for name, label in DIGEST_LABELS.items():
        column = get_column(result, name)
        digest.update(label + str(column.shape).encode())
        digest.update(column.astype("<f8" if column.dtype.kind == "f" else "<i8").tobytes())
    assert compute_digest(result) == digest.hexdigest()


@pytest.mark.parametrize("path", sorted(CERTIFICATES.glob("*/certificate.json")), ids=lambda path: path.parent.name)
def test_the_certificates_in_the_documents_are_read(path: Path) -> None:
    certificate = sw.SimulationCertificate.load(path)
    assert set(certificate.content["policy"]["settings"]) <= set(
        signature(find_kind(certificate.content["policy"]["kind"])).parameters
    )
