"""Each alert rule fires on a fault that is planted in a real server, and none does on a healthy day.

What the server's /metrics says before and after becomes two hours of samples, and promtool evaluates the rules on them.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lacking import lacking
from tests.server.web.live import Live, live

from stagewise.server.client import Client

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text())
MINUTES = 120


def request(server: Live, path: str, body: Any = None, key: str = "") -> str:
    """Ask the server; an error's body is returned too."""
    headers = {"Authorization": f"Bearer {key or server.admin}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.address + path, data, headers)) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def scrape(server: Live) -> dict[str, float]:
    """Return the samples of the server by series."""
    lines = [line for line in request(server, "/metrics").splitlines() if not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def decide(server: Live, count: int) -> list[str]:
    """Decide for so many users; return the ids."""
    with Client(server.address, server.writer, "demo", safe="nothing", timeout=30.0) as client:
        return [one.decision_id or "" for one in client.decide_many([{"age": 20 + i % 60} for i in range(count)])]


def learn(server: Live, ids: list[str], **signals: float) -> None:
    """Report the same outcome of all decisions."""
    with Client(server.address, server.writer, "demo", safe="nothing", timeout=30.0) as client:
        client.learn_many({"decision_id": id_, **signals} for id_ in ids)


def live_well(server: Live) -> None:
    learn(server, decide(server, 400), click=0.0, opt_out=0.0)


def stop_experiment(server: Live) -> None:
    live_well(server)
    request(server, "/v1/demo/kill", {"reason": "a drill"})


def contradict_the_safe_cost(server: Live) -> None:
    learn(server, decide(server, 400), click=0.0, opt_out=1.0)
    for _ in range(600):  # until it is learned, and the server has stopped the experiment
        samples = scrape(server)
        if any(series.startswith("stagewise_alerts") for series in samples) and 1.0 in (
            value for series, value in samples.items() if series.startswith("stagewise_killed")
        ):
            return
        time.sleep(0.1)


def take_the_store_away(server: Live) -> None:
    live_well(server)
    server.desk.store.down = True
    decide(server, 20)


def report_nothing(server: Live) -> None:
    decide(server, 400)


def report_unknown_decisions(server: Live) -> None:
    live_well(server)
    learn(server, [f"unknown-{i}" for i in range(40)], click=1.0)


def send_wrong_contexts(server: Live) -> None:
    live_well(server)
    for _ in range(1500):
        request(server, "/v1/demo/decisions", {"context": {"age": 17}}, server.writer)


FAULTS: dict[Callable[[Live], None], set[str]] = {
    live_well: set(),
    stop_experiment: {"StagewiseExperimentStopped"},
    contradict_the_safe_cost: {"StagewiseAssumptionContradicted", "StagewiseExperimentStopped"},  # it stops itself
    take_the_store_away: {"StagewiseNotReady", "StagewiseDecisionsFail"},
    report_nothing: {"StagewiseNoOutcomes"},
    report_unknown_decisions: {"StagewiseOutcomesLost"},
    send_wrong_contexts: {"StagewiseRequestsRejected"},
}
# Faults of Prometheus' own series, of learning, and what never happens: as samples.
SAMPLES = {
    'up{job="stagewise"} 0': "StagewiseServerDown",
    'stagewise_learning_failed{experiment="demo"} 1': "StagewiseLearningFailed",
    'stagewise_snapshot_stale{experiment="demo"} 1': "StagewiseSnapshotStale",
    'stagewise_alerts{experiment="demo",check="mismatch",signal="opt_out",verdict="warning"} 1': "StagewiseWarning",
    'stagewise_limit_margin{experiment="demo",limit="opt_out"} -0.001': "StagewiseLimitExceeded",
    'stagewise_webhook_pending_events{webhook="chat"} 3': "StagewiseWebhookFailing",
    "stagewise_retention_failed 1": "StagewiseRetentionFailing",
}


def check_firing(folder: Path, before: dict[str, float], after: dict[str, float], expected: set[str]) -> None:
    """Evaluate the rules on samples that go from one scrape to the other."""
    series = []
    for name, value in after.items():
        is_counter = re.match(r"\w+_total\b", name) is not None
        first = before.get(name, 0.0) if is_counter else value
        series.append({"series": name, "values": f"{first}+{(value - first) / MINUTES}x{MINUTES}"})
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{MINUTES}m",
                "exp_samples": firing,
            }
        ],
    }
    path = folder / "test.yaml"  # JSON is YAML
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    run_promtool("test", "rules", str(path))


def run_promtool(*words: str) -> None:
    if (program := shutil.which("promtool")) is None:
        lacking("promtool is missing: install Debian's prometheus, or Prometheus' release", excused=True)
    ran = subprocess.run([program, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_rules_are_valid_and_silent_on_a_healthy_day() -> None:
    run_promtool("check", "rules", str(RULES))
    run_promtool("test", "rules", str(RULES.with_name("alerts_test.yaml")))


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_fault_of_a_server_fires_its_alert(tmp_path: Path, plant: Callable[[Live], None]) -> None:
    with live(tmp_path) as server:
        before = scrape(server)
        plant(server)
        after = scrape(server)
        server.desk.store.down = False
    check_firing(tmp_path, before, after, FAULTS[plant])


@pytest.mark.parametrize(("sample", "alert"), SAMPLES.items(), ids=SAMPLES.values())
def test_a_sample_fires_its_alert(tmp_path: Path, sample: str, alert: str) -> None:
    series, value = sample.rsplit(" ", 1)
    check_firing(tmp_path, {}, {series: float(value)}, {alert})


def test_every_alert_has_a_fault_and_a_section_of_the_runbook() -> None:
    assert sorted(set.union(*FAULTS.values(), set(SAMPLES.values()))) == sorted(ALERTS)
    runbook = (ROOT / "docs" / "how-to" / "runbook.md").read_text()
    assert re.findall(r"^## (Stagewise\w+)$", runbook, re.M) == ALERTS
    assert re.findall(r"runbook_url: docs/how-to/runbook.md#(\w+)", RULES.read_text()) == [a.lower() for a in ALERTS]


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    reference = set(re.findall(r"^\| `(stagewise_\w+)`", (ROOT / "docs/reference/metrics.md").read_text(), re.M))
    dashboard = (ROOT / "deploy/grafana/stagewise.json").read_text()
    used = set(re.findall(r"stagewise_[a-z_]+", RULES.read_text() + dashboard))
    assert used <= reference
    panels = json.loads(dashboard)["panels"]
    assert all(target["expr"] for panel in panels for target in panel["targets"])
