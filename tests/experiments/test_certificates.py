"""All certificates: every policy is supported, every control refuted, and the index leads to each page."""

import json
import re
from pathlib import Path

import pytest

import stagewise as sw
from stagewise.experiments.certificates import CASES, certify_all
from stagewise.reports.evidence import REFUTED


def test_every_policy_is_supported_and_every_control_refuted(tmp_path: Path) -> None:
    outcomes = certify_all(tmp_path, runs=400, rounds=300, confidence=0.9, progress=False)
    assert [one.name for one in outcomes if not one.as_expected] == []
    assert sum(case.expected == REFUTED for case in CASES) == 5
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    links = re.findall(r"href='([^']+)/certificate.html'", page)
    assert len(links) == len(CASES)
    for link in links:
        assert (tmp_path / link / "certificate.html").exists()
        assert (tmp_path / link / "certificate.json").exists()
    assert len(json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))) == len(CASES)


KEPT = sorted((Path(__file__).parents[2] / "docs" / "certificates").glob("*/certificate.json"))


def test_the_certificates_in_the_documents_are_these() -> None:
    assert len(KEPT) == len(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_the_certificates_in_the_documents_stand(path: Path) -> None:
    assert sw.verify(path, seed=1).faults == ()
