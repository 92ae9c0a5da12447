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
        action_names=["nothing", "digest", "offer"], safe_name="nothing", context={"age": (20, 80), "opens": (-1, 1)},
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


def build_mixed_problem(score: Any = None) -> sw.Problem:
    """Return a problem with a column of every kind, and rules for missing values and undeclared levels."""
    context = {
        "age": sw.Number(20, 80, clip=True, missing=50), "is_new": sw.Boolean(missing=False),
        "joined": sw.Date("2024-01-01", "2026-01-01"), "plan": sw.Category(["free", "pro"], other=True, missing="free"),
    }  # fmt: skip
    return sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", context=context, reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.1, safe_bound=0.0, score=score, model="rates" if score is None else None)},
    )  # fmt: skip


def draw_mixed_log(rows: int, seed: int) -> dict[str, Any]:
    """Return a log in which new users and undeclared plans leave most, and "pro" least."""
    random = np.random.default_rng(seed)
    age, is_new = random.uniform(10.0, 90.0, rows), random.random(rows) < 0.4
    plan = random.choice(np.array(["free", "pro", "gold"]), rows)
    joined = np.datetime64("2024-01-02") + random.integers(0, 700, rows)
    odds = -3.5 + 1.0 * is_new + 0.02 * (np.clip(age, 20.0, 80.0) - 50.0)
    odds += np.select([plan == "pro", plan == "gold"], [-0.8, 0.8]) + 0.5 * (joined > np.datetime64("2025-01-01"))
    return {
        "action": np.full(rows, "offer"), "age": np.where(random.random(rows) < 0.02, np.nan, age),
        "is_new": np.array([None if random.random() < 0.02 else one for one in is_new.tolist()], dtype=object),
        "joined": joined.astype(str), "click": np.zeros(rows),
        "plan": np.array([None if random.random() < 0.02 else one for one in plan.tolist()], dtype=object),
        "opt_out": (random.random(rows) < 1.0 / (1.0 + np.exp(-odds))).astype(float),
    }  # fmt: skip


def test_categories_booleans_dates_and_missing_values_count_in_the_score(tmp_path: Path) -> None:
    log = draw_mixed_log(40_000, 3)
    fitted = sw.fit_risk_score(log, build_mixed_problem(), "opt_out", buckets=5)
    assert fitted.rows + fitted.holdout.rows == 40_000
    weights = dict(fitted.score.terms)
    assert weights["is_new"] == pytest.approx(1.0, abs=0.15)
    assert weights["age"] == pytest.approx(0.02, abs=0.004)
    assert (weights["plan=pro"], weights["plan=other"]) == pytest.approx((-0.8, 0.8), abs=0.2)
    assert weights["joined"] * 365 * 86_400 == pytest.approx(0.4, abs=0.2)  # a step in the middle of two years
    path = tmp_path / "problem.toml"
    path.write_text(fitted.to_toml(), encoding="utf-8")
    problem = sw.Problem.load(path)
    users = {name: log[name][:300] for name in problem.context_names}
    many, rows = problem.encode_columns(users, 300).segments[:, 0], zip(*users.values(), strict=True)
    alone = [problem.encode_context(dict(zip(users, row, strict=True))).segments[0] for row in rows]
    assert many.tolist() == alone
    assert len(set(alone)) == 5
    agent = sw.Agent(problem, seed=1)
    agent.learn_log_frame({name: column[:2_000] for name, column in fitted.holdout.frame().items()})
    means = [one.means[0] if hasattr(one, "means") else one for one in agent.report().segments if one.action == "offer"]
    assert len(means) == 5


def test_a_file_whose_coefficients_are_not_those_of_the_fit_is_refused(tmp_path: Path) -> None:
    fitted = sw.fit_risk_score(log(), problem(), "opt_out", buckets=3)
    text, path = fitted.to_toml(), tmp_path / "problem.toml"
    changes = [("age = ", "age = 1"), ("cuts = [", "cuts = [-9.5, "), ('rows_digest = "', 'rows_digest = "0')]
    for before, after in changes:
        assert text.count(before) >= 1
        head, tail = text.rsplit(before, 1)
        path.write_text(head + after + tail, encoding="utf-8")
        with refused(sw.InvalidProblem, ErrorCode.DIGEST_MISMATCH):
            sw.Problem.load(path)


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
        'action_names = ["nothing", "digest", "offer"]\nsafe_name = "nothing"\n'
        "[context]\nage = [20, 80]\nopens = [-1, 1]\n"
        '[reward]\nname = "click"\n[limits.opt_out]\nat_most = 0.1\nsafe_bound = 0.0\nmodel = "rates"\n',
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
