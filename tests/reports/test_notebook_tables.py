"""What a notebook shows of decisions, reports, findings and certificates: tables, escaped, without assets."""

import re
from html import escape
from typing import Any

import numpy as np
import pytest

import stagewise as sw

NAMED = "<b>offer</b>"
PROBLEM = sw.Problem(
    action_names=["nothing", NAMED],
    safe_name="nothing",
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.05, safe_bound=0.02)},
)


def make_log() -> dict[str, Any]:
    random = np.random.default_rng(0)
    actions = random.choice(["nothing", NAMED], 400)
    return {"action": actions, "click": random.random(400) < 0.2, "opt_out": random.random(400) < 0.01}


def read_tables(shown: Any) -> list[list[str]]:
    """Return the rows of all tables that a notebook shows, after a test that nothing else is needed or unescaped."""
    page = shown._repr_html_()
    assert not re.search(r"<script|http|src=|url\(|<link|<style|<b>|#[0-9a-f]{3}", page)
    return [
        [re.sub(r"&lt;(/?)b&gt;", r"<\1b>", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", page)
    ]


@pytest.fixture(scope="module")
def agent() -> sw.Agent:
    agent = sw.Agent(PROBLEM, seed=1)
    agent.learn_log_frame(make_log())
    return agent


def test_a_decision_shows_its_explanation(agent: sw.Agent) -> None:
    decision = agent.decide(propose=NAMED)
    titles, *rows = read_tables(decision)
    table = decision.explain()._table
    assert titles[0] == ""
    assert {"reward estimate", "opt_out ≤ 0.05 estimate", "opt_out ≤ 0.05 pessimistic", "probability"} < set(titles)
    assert rows == [[f"{'* ' * row.played}{row.label}", *table.cells(row)] for row in table.rows]
    assert decision._repr_html_() == decision.explain()._repr_html_()
    page = decision._repr_html_()
    assert escape(decision.explain().splitlines()[-1], quote=True) in page  # what became of the proposal
    assert read_tables(sw.Decision.from_dict(decision.to_dict())) == []


def test_a_report_shows_its_actions_and_proposals(agent: sw.Agent) -> None:
    titles, offer, nothing, asked, proposed = read_tables(agent.report())
    assert [title.strip() for title in titles] == ["action", "share", "recent", "click", "certified"]
    assert (offer[0], nothing[0], nothing[-1]) == (NAMED, "nothing", "yes")
    assert asked[0] == "proposed"
    assert proposed[:2] == [NAMED, "100.0%"]
    assert all(cell.strip() in str(agent.report()) for cell in (*titles, *offer, *nothing, *asked, *proposed))
    limit = next(line for line in str(agent.report()).splitlines() if line.startswith("opt_out: estimate"))
    assert limit in agent.report()._repr_html_()
    assert read_tables(sw.Agent(PROBLEM).report()) == []


def test_health_shows_a_row_for_each_check(agent: sw.Agent) -> None:
    _, *rows = read_tables(agent.health())
    assert [row[:2] for row in rows] == [[one.name, one.verdict] for one in agent.health()]


def test_the_doctor_shows_a_row_for_each_check_and_the_conclusion() -> None:
    report = sw.check_log(make_log(), PROBLEM)
    _, *rows = read_tables(report)
    assert [row[:2] for row in rows] == [[one.verdict, one.check] for one in report.findings]
    assert str(report).splitlines()[-1] in report._repr_html_()


def test_a_certificate_shows_its_verdict_and_what_it_rests_on() -> None:
    found = {"occurrences": 3, "runs": 1000, "allowed": 0.05, "exact": [0.0006, 0.0088], "anytime": [0.0, 0.01]}
    content = {"verdict": "supported", "policy": {"kind": "CAPS <b>"}, "violations": found}
    assert read_tables(sw.SimulationCertificate(content)) == [
        ["certificate", "supported"],
        ["policy", "CAPS <b>"],
        ["runs", "1,000"],
        ["runs that broke a limit", "3"],
        ["their share is between", "0.0600% and 0.8800%"],
        ["allowed", "5.0000%"],
    ]
