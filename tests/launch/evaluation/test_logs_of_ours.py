"""Logs that we write ourselves, end to end: a desk's export, `decision.plain()` by line, and the command line."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import called
from tests.launch.evaluation.worlds import CLICK, NAMES, OPT_OUT, drawn, problem
from tests.server.audited import lived
from tests.server.logs import problem as of_the_desk
from tests.server.server_helpers import NAME

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.server.audit.export import export_log
from stagewise.server.store.migrate import open_store

WEEK = 7 * 86400.0
TOML = """
action_names = ["nothing", "digest", "offer"]
safe_name = "nothing"
context = ["age"]
[reward]
name = "click"
[limits.opt_out]
at_most = 0.15
safe_bound = 0.02
model = "rates"
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived")
    store = open_store(str(lived(folder)), read_only=True)
    export_log(store, NAME, folder / "log.parquet")
    store.close()
    return folder / "log.parquet"


@pytest.mark.long
def test_the_export_of_a_desk(exported: Path) -> None:
    """Rows that were not shown are left out, windows count, and what the desk could not have done is said."""
    told = of_the_desk(action_names=["nothing", "offer", "sale"])
    log = Log.of(exported, told)
    shown = np.array([bool(value) for value in log.arrays["shown"].tolist()])
    found = sw.evaluate_on_log(exported, told, "nothing", as_of=time.time() + 2 * WEEK)
    assert found.rows == shown.sum() < log.rows
    assert found["opt_out"]["ips"].rows == found.rows
    clicks, done = log.values[shown, 0], log.actions[shown] == 0
    known = ~np.isnan(clicks)
    weights = np.where(done, 1.0 / log.propensities[shown], 0.0)
    assert found["click"]["ips"].value == pytest.approx((weights * clicks)[known].mean())
    offers = sw.evaluate_on_log(exported, told, "offer", as_of=time.time() + 2 * WEEK)
    assert offers.candidate.support.by_action["offer"] == pytest.approx((log.probabilities[shown, 1] == 0.0).mean())
    assert offers["click"]["ips"].value is None
    early = sw.evaluate_on_log(exported, told, "nothing")
    assert early["opt_out"]["ips"].rows == 0
    assert early.candidate.verdicts["opt_out"].verdict == "unknown"


def test_decisions_as_an_agent_logs_them(tmp_path: Path) -> None:
    """An agent that learns as it goes: its own log, by line, with what it drew from."""
    rng, agent, lines, clicks = np.random.default_rng(5), sw.Agent(problem(), seed=5), [], []
    for _ in range(150):
        context = {"age": float(rng.uniform(-1.0, 1.0))}
        decision = agent.decide(context)
        place = NAMES.index(decision.action)
        outcome = {"click": float(rng.random() < CLICK[place]), "opt_out": float(rng.random() < OPT_OUT[place])}
        agent.learn(decision, **outcome)
        lines.append(json.dumps({**decision.to_dict(), "context": context, "outcome": outcome}))
        chance = decision.probabilities["nothing"]
        clicks.append(outcome["click"] / chance if decision.action == "nothing" else 0.0)
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    found = sw.evaluate_on_log(tmp_path / "log.jsonl", problem(), "nothing")
    assert found["click"]["ips"].value == pytest.approx(np.mean(clicks))


def as_csv(frame: dict, path: Path) -> None:
    rows = zip(*(np.asarray(column).tolist() for column in frame.values()), strict=True)
    path.write_text("\n".join([",".join(frame), *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.mark.long
def test_on_the_command_line(tmp_path: Path) -> None:
    as_csv(drawn(np.random.default_rng(6), 3000), tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(TOML)
    told = ("evaluate", tmp_path / "log.csv", tmp_path / "problem.toml")
    code, words = called(
        *told, "--candidate", "digest", "--out", tmp_path / "out.json", "--picture", tmp_path / "out.svg"
    )
    assert code == 0, words
    assert "always digest" in words
    assert "at most 0.15: kept" in words
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["policies"][0]["limits"]["opt_out"]["verdict"] == "kept"
    assert "<svg" in (tmp_path / "out.svg").read_text()
    assert called(*told, "--picture", tmp_path / "out.gif")[0] == 2
    assert (
        called(*told, "--candidate", "offer=0.5,nothing=0.5", "--propensity", "nothing=0.5,digest=0.3,offer=0.2")[0]
        == 0
    )
    assert called(*told, "--weight-bound", "1.5", "--candidate", "offer")[0] == 1
    code, words = called(*told, "--candidate", "digest", "--propensity", "frequencies")
    assert code == 1, words
    assert "if the shares are correct" in words
    assert words.count("kept") == 1  # of what was really done
    for options in (
        ("--candidate", "ofer"),
        ("--candidate", "offer=half"),
        ("--candidate", "offer", "--propensity", "half"),
        ("--columns", "click"),
    ):
        assert called(*told, *options)[0] == 2


def test_windows_on_the_command_line(tmp_path: Path) -> None:
    """Half an hour after the last row half the windows of an hour are open; a day later none is."""
    frame = drawn(np.random.default_rng(7), 60) | {"at": 60.0 * np.arange(60)}
    as_csv(frame, tmp_path / "log.csv")
    (tmp_path / "problem.toml").write_text(TOML + 'window = "1h"\n')
    told = ("evaluate", tmp_path / "log.csv", tmp_path / "problem.toml")
    for now, left_out in (
        (f"{59 * 60 + 1800}", "30 rows are left out"),
        ("1970-01-01T01:29:00Z", "30 rows are left out"),
        ("1970-01-02T01:29:00+00:00", None),
    ):
        words = called(*told, "--as-of", now)[1]
        assert left_out in words if left_out else "left out" not in words
    for now in ("noon", "1970-01-02T01:29"):
        assert called(*told, "--as-of", now)[0] == 2
