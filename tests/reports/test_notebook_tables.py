"""What a notebook shows of a certificate and of a doctor's findings: small tables, escaped, with no assets."""

import re

import numpy as np

import stagewise as sw

NEEDS = re.compile(r"<script|http|src=|url\(|<link|<style")


def test_a_certificate_shows_its_verdict_and_what_that_rests_on() -> None:
    found = {"occurrences": 3, "runs": 1000, "allowed": 0.05, "exact": [0.0006, 0.0088], "anytime": [0.0, 0.01]}
    content = {
        "verdict": "supported",
        "coverage_verdict": "supported",
        "policy": {"kind": "CAPS <b>"},
        "violations": found,
    }
    page = sw.SimulationCertificate(content)._repr_html_()
    told = re.findall(r"<td[^>]*>(.*?)</td>", page)
    assert dict(zip(told[::2], told[1::2], strict=True)) == {
        "verdict": "supported",
        "policy": "CAPS &lt;b&gt;",
        "runs": "1,000",
        "runs that broke a limit": "3",
        "their share lies between": "0.0600% and 0.8800%",
        "allowed": "5.0000%",
    }
    assert not NEEDS.search(page)


def test_the_doctors_findings_are_a_table_with_the_conclusion_below() -> None:
    random = np.random.default_rng(0)
    sent = random.choice(["nothing", "<i>offer</i>"], 400)
    log = {
        "action": sent,
        "click": (random.random(400) < 0.2).astype(float),
        "opt_out": (random.random(400) < 0.01).astype(float),
    }
    problem = sw.Problem(
        actions=["nothing", "offer"],
        safe="nothing",
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.02)},
    )
    found = sw.doctor(log, problem)
    page = found._repr_html_()
    assert found.contradicted
    assert page.count("<tr>") == 1 + len(found.findings)
    assert "&lt;i&gt;offer" in page
    assert str(found).splitlines()[-1] in page
    assert not NEEDS.search(page)
