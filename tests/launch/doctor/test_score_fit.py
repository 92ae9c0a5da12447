"""A score fitted to part of a log: it orders users by risk, and only the other rows are learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from typer.testing import CliRunner

import stagewise as sw
from stagewise.cli.main import app
from stagewise.problem.errors import ErrorCode

SLOPES = np.array([0.9, -0.5])


def problem(**limit: Any) -> sw.Problem:
    return sw.Problem(
        actions=["nothing", "digest", "offer"], safe="nothing", context={"age": (20, 80), "opens": (-1, 1)},
        reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.1, safe_bound=0.0, **({"model": "rates"} | limit))},
    )  # fmt: skip


def log(rows: int = 6000, seed: int = 4) -> dict[str, Any]:
    """Return a log whose opt-outs have log-odds that are linear in the scaled numbers."""
    random = np.random.default_rng(seed)
    users, sent = random.uniform(-1.0, 1.0, (rows, 2)), random.integers(0, 3, rows)
    odds = np.array([-30.0, -3.0, -2.0])[sent] + users @ SLOPES
    return {
        "action": np.array(["nothing", "digest", "offer"])[sent], "age": 50.0 + 30.0 * users[:, 0],
        "opens": users[:, 1], "click": (random.random(rows) < 0.2).astype(float),
        "opt_out": (random.random(rows) < 1.0 / (1.0 + np.exp(-odds))).astype(float),
    }  # fmt: skip


def test_weights_are_those_of_the_log_odds_in_the_users_units() -> None:
    fitted = sw.fit_risk_score(log(30_000), problem(), "opt_out")
    weights = np.array([weight for _, weight in fitted.score.terms])
    np.testing.assert_allclose(weights * [30.0, 1.0], SLOPES, atol=0.15)
    assert len(fitted.score.bucket_names) == 10
    assert fitted.events > 500
    assert len(str(fitted.score.digest)) == 64


def test_rows_are_fitted_or_learned_never_both() -> None:
    rows = log()
    fitted = sw.fit_risk_score(rows, problem(), "opt_out", fraction=0.3)
    assert fitted.rows + fitted.holdout.rows == 6000
    assert 0.25 < fitted.rows / 6000 < 0.35
    later = sw.fit_risk_score({**rows, "at": np.arange(6000.0)}, problem(), "opt_out")
    assert later.holdout.columns["at"].min() == 3000.0


def test_a_problem_with_the_score_decides_by_it_and_is_what_its_file_says(tmp_path: Path) -> None:
    fitted = sw.fit_risk_score(log(), problem(), "opt_out", buckets=3)
    path = tmp_path / "problem.toml"
    path.write_text(fitted.to_toml(), encoding="utf-8")
    assert sw.Problem.load(path).to_dict() == fitted.problem.to_dict()
    agent = sw.Agent(fitted.problem, seed=1)
    agent.learn_log_frame({name: column[:400] for name, column in fitted.holdout.frame().items()})
    cells = {one.segment: one for one in agent.report().segments if one.action == "offer"}
    assert list(cells) == list(fitted.score.bucket_names)
    buckets = [
        fitted.problem.encode_context({"age": age, "opens": opens}).segments[0]
        for age, opens in ((22.0, 0.9), (50.0, 0.0), (78.0, -0.9))
    ]
    assert buckets == sorted(buckets)
    assert buckets[0] < buckets[2]
    agent.save(tmp_path / "agent.json")
    assert sw.Agent.load(tmp_path / "agent.json", fitted.problem).round == agent.round


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("opt_outs", {}), ErrorCode.UNKNOWN_NAME),
        (("opt_out", {"buckets": 1}), ErrorCode.OUT_OF_RANGE),
        (("opt_out", {"name": ""}), ErrorCode.INVALID_NAME),
    ],
)
def test_a_fit_that_cannot_be_is_refused(arguments: Any, code: ErrorCode) -> None:
    limit, settings = arguments
    with refused(sw.InvalidProblem, code):
        sw.fit_risk_score(log(300), problem(), limit, **settings)


def test_a_log_with_few_events_is_refused() -> None:
    with refused(sw.InvalidOutcome, ErrorCode.LOG_TOO_SHORT):
        sw.fit_risk_score(log(100), problem(), "opt_out")


def test_the_command_writes_the_problem_and_the_rows_to_learn(tmp_path: Path) -> None:
    rows = log(2000)
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "log.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "problem.toml").write_text(
        'actions = ["nothing", "digest", "offer"]\nsafe = "nothing"\n[context]\nage = [20, 80]\nopens = [-1, 1]\n'
        '[reward]\nname = "click"\n[limits.opt_out]\nat_most = 0.1\nsafe = 0.0\nmodel = "rates"\n',
        encoding="utf-8",
    )
    out, holdout = tmp_path / "new.toml", tmp_path / "rest.csv"
    called = ["doctor", str(tmp_path / "log.csv"), str(tmp_path / "problem.toml"), "--fit-risk-score", "opt_out"]
    result = CliRunner().invoke(app, [*called, "--out", str(out), "--holdout", str(holdout)])
    assert result.exit_code == 0, result.output
    made = sw.Problem.load(out)
    assert made.promises == sw.fit_risk_score(rows, problem(), "opt_out").problem.promises
    agent = sw.Agent(made, seed=1)
    kept = holdout.read_text(encoding="utf-8").splitlines()
    assert 800 < len(kept) < 1200
    assert agent.decide({"age": 30.0, "opens": 0.2}).action == "nothing"
    alone = CliRunner().invoke(app, [called[0], called[1], "--fit-risk-score", "opt_out"])
    assert alone.exit_code != 0
