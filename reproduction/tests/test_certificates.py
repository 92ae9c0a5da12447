"""All certificates: every policy is supported, every control refuted, and the index leads to each page."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sizes import sized

import stagewise as sw
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.simulation.oracle import PolicyWorlds
from stagewise.simulation.plan import describe_policy
from stagewise.simulation.verify import TOLERANCE, find_misstatements, rebuild_pair
from stagewise_reproduction.certificates import certify_all
from stagewise_reproduction.instances import make_slug
from stagewise_reproduction.showcase import BY_HAND, CASES, ROUNDS, Case


@sized((110, 20), (400, 200))
def test_every_policy_is_supported_and_every_control_refuted(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand for a few rounds only: `tests/statistics` plays more."""
    fewer = [replace(case, most=(4, 400)) if case.most == BY_HAND else case for case in CASES]
    monkeypatch.setattr("stagewise_reproduction.certificates.CASES", fewer)
    monkeypatch.setattr("stagewise.reports.style.to_data_uri", lambda figure: "data:image/png;base64,")
    runs, rounds = size
    outcomes = certify_all(tmp_path, runs=runs, rounds=rounds, confidence=0.9, progress=False)
    assert [one.name for one in outcomes if not one.as_expected] == []
    assert sum(case.expected == REFUTED for case in CASES) == 6
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    links = re.findall(r"href='([^']+)/certificate.html'", page)
    assert len(links) == len(CASES)
    for link in links:
        assert (tmp_path / link / "certificate.html").exists()
        assert (tmp_path / link / "certificate.json").exists()
    assert len(json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))) == len(CASES)


FOLDER = Path(__file__).parents[2] / "docs" / "certificates"
KEPT = sorted(path for path in FOLDER.glob("*/certificate.json") if not path.parent.name.startswith("gpu-"))


def test_the_certificates_in_the_documents_are_these() -> None:
    assert {path.parent.name for path in KEPT} == {make_slug(case.name) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: make_slug(case.name))
def test_the_certificates_in_the_documents_are_of_what_is_certified_today(case: Case) -> None:
    """With the settings of today, defaults too: where a default changes, its certificates are to be made again."""
    content = sw.SimulationCertificate.load(FOLDER / make_slug(case.name) / "certificate.json").content
    today = json.loads(json.dumps(describe_policy(case.policy)))
    assert {name: today["settings"][name] for name in content["policy"]["settings"]} == content["policy"]["settings"]
    assert content["policy"]["kind"] == today["kind"]
    assert content["plan"]["rounds"] == min(ROUNDS, case.most[0])


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_the_certificates_in_the_documents_stand(path: Path) -> None:
    assert sw.verify_certificate(path, seed=1).faults == ()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_the_certificates_in_the_documents_say_what_their_totals_say(path: Path) -> None:
    content = sw.SimulationCertificate.load(path).content
    assert find_misstatements(content, PolicyWorlds(*rebuild_pair(content, None, None)), near=TOLERANCE) == []


@pytest.mark.parametrize("name", ["gpu-lclucb", "gpu-roful"])
def test_the_certificates_made_on_a_gpu_say_what_their_runs_say(name: str) -> None:
    content = sw.SimulationCertificate.load(FOLDER / name).content
    assert content["plan"]["rounds"] * sum(batch["runs"] for batch in content["batches"]) == 10**10
    assert find_misstatements(content, PolicyWorlds(*rebuild_pair(content, None, None)), near=TOLERANCE) == []
    assert content["verdict"] == SUPPORTED
