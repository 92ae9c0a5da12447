"""The doctor knows categories, booleans and dates: levels that are not declared or rare, and what it proposes."""

from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.findings import FindingCode

ROWS = 6_000


def log(seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a log in which 'offer' is clicked by the plan 'pro', and opt-outs depend on nothing."""
    chance = np.random.default_rng(seed)
    plan = chance.choice(np.array(["free", "basic", "pro", "gold"], dtype=object), ROWS, p=[0.5, 0.3, 0.19, 0.01])
    action = chance.choice(np.array(["today", "offer"], dtype=object), ROWS)
    columns: dict[str, Any] = {
        "at": 1.7e9 + 60.0 * np.arange(ROWS),
        "action": action,
        "age": chance.uniform(18.0, 80.0, ROWS),
        "plan": plan,
        "is_new": chance.random(ROWS) < 0.3,
        "joined": np.datetime64("2024-01-01") + chance.integers(0, 700, ROWS).astype("m8[D]"),
        "click": (chance.random(ROWS) < 0.1 + 0.5 * ((action == "offer") & (plan == "pro"))).astype(float),
        "opt_out": (chance.random(ROWS) < 0.01).astype(float),
    }
    return columns | changes


def problem(plan: sw.Category, **context: Any) -> sw.Problem:
    columns = {"age": (0, 100), "plan": plan, "is_new": sw.Boolean(), "joined": sw.Date("2024-01-01", "2026-01-01")}
    return sw.Problem(
        action_names=["today", "offer"], safe_name="today", context={**columns, **context}, reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.02, model="rates")},
    )  # fmt: skip


OPEN = sw.Category(["free", "basic", "pro"], other=True, missing="other")


def test_a_log_that_agrees_is_not_contradicted() -> None:
    report = sw.check_log(log(), problem(OPEN))
    assert not report.contradicted
    assert report["ranges"].code is FindingCode.RANGES_KEPT


def test_levels_that_are_not_declared_contradict() -> None:
    found = sw.check_log(log(), problem(sw.Category(["free", "basic", "pro"])))["ranges"]
    assert found.code is FindingCode.LEVEL_UNKNOWN
    assert (found.details["level"], found.details["level_count"]) == ("gold", found.details["count"])


def test_levels_with_few_rows_and_clipped_numbers_are_noted() -> None:
    found = sw.check_log(log(), problem(sw.Category(["free", "basic", "pro", "gold"])))["ranges"]
    assert (found.code, found.details["level"]) == (FindingCode.LEVEL_RARE, "gold")
    found = sw.check_log(log(), problem(OPEN, age=sw.Number(30, 80, clip=True)))["ranges"]
    assert (found.code, found.details["name"]) == (FindingCode.NUMBER_CLIPPED, "age")
    assert found.details["count"] > 0.1 * ROWS


def test_a_linear_mean_with_a_category_is_linear() -> None:
    """Without the category it is not the form that is wrong, but the reward differs by it."""
    report = sw.check_log(log(), problem(OPEN))
    assert report["model_form"].verdict == "ok"
    assert report["norm_bound"].verdict == "ok"


def test_a_proposal_declares_categories(tmp_path: Path) -> None:
    rows = log()
    rows["plan"][::500] = None
    rows["user_group"] = np.array([f"group {i % 1000}" for i in range(ROWS)], dtype=object)
    report = sw.check_log(rows, limits={"opt_out": 0.05})
    assert report.problem is not None
    plan = report.problem.context["plan"]
    assert plan == sw.Category(["free", "basic", "pro"], other=True, missing="other")
    assert "user_group" not in report.problem.context_names
    (tmp_path / "problem.toml").write_text(report.to_toml(), encoding="utf-8")
    again = sw.Problem.load(tmp_path / "problem.toml")
    assert again.to_dict() == report.problem.to_dict()
    agent = sw.Agent(again, seed=1)
    assert agent.learn_log_frame(report.holdout.frame()) == {}
    user = {name: value for name, value in {"age": 30.0, "is_new": True}.items() if name in again.context}
    rewards = [agent.decide({**user, "plan": plan}).estimated_reward or 0.0 for plan in ("pro", "new")]
    assert rewards[0] > rewards[1]


def test_a_log_holds_what_an_agent_would_encode() -> None:
    rows = {name: column[:600] for name, column in log().items()}
    rows["plan"][:3], rows["joined"][3] = ["gold", None, "pro"], np.datetime64("NaT")
    asked = problem(OPEN, age=sw.Number(30, 50, clip=True))
    read = Log.of(rows, asked)
    assert read.segments["plan"][:3].tolist() == ["other", "other", "pro"]
    assert (read.numbers[:, 0].min(), read.numbers[:, 0].max()) == (30.0, 50.0)
    assert np.flatnonzero(~read.complete_contexts).tolist() == [3]
    kept = read.take(read.complete_contexts)
    one, other = sw.Agent(asked, seed=1), sw.Agent(asked, seed=1)
    one.learn_log_frame(kept.frame())
    assert list(other.learn_log_frame(rows)) == [3]
    assert np.array_equal(one.state.memory, other.state.memory)


def test_evaluation_and_forecast_take_categories() -> None:
    rows = log() | {"propensity": np.full(ROWS, 0.5)}
    asked = problem(OPEN)

    def offer_to_pro(user: dict[str, Any]) -> str:
        assert user["is_new"] in (0, 1)
        return "offer" if user["plan"] == "pro" else "today"

    found = sw.evaluate_on_log(rows, asked, offer_to_pro).policies["candidate"]
    assert found.estimates["click"]["dr"].value > 0.15
    agent = sw.Agent(asked, seed=1)
    agent.learn_log_frame({name: rows[name][:500] for name in ("action", *asked.context, "click", "opt_out")})
    assert sw.evaluate_on_log({name: column[:50] for name, column in rows.items()}, asked, agent).policies
    report = sw.forecast_from_log(
        {name: column[:600] for name, column in rows.items()}, asked, days=1, users_per_day=3, runs=38, progress=False
    )
    assert report.to_dict()
