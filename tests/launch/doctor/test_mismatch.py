"""The doctor finds that it matters who gets an action: by a number, a level, a score; as a note or a contradiction."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.launch.doctor import rate_checks as mismatch_check


def build_log(rows: int, rate: Any, **more: Any) -> dict[str, Any]:
    """Return a log of two offers; `rate` is of ages and plans."""
    chance = np.random.default_rng(1)
    age, plan = chance.uniform(20.0, 60.0, rows), chance.choice(["free", "pro", "team"], rows)
    opt_out = (chance.random(rows) < rate(age, plan)) * 1.0
    click = (chance.random(rows) < 0.1 + 0.005 * (age - 20.0)) * 1.0
    actions = chance.choice(["offer", "digest"], rows)
    return {"action": actions, "age": age, "plan": plan, "click": click, "opt_out": opt_out, **more}


def build_problem(**limit: Any) -> sw.Problem:
    """Return two offers beside nothing, for users of an age and a plan."""
    return sw.Problem(
        action_names=["nothing", "offer", "digest"], safe_name="nothing", reward=sw.Reward("click"),
        context={"age": (20, 60), "plan": sw.Category(["free", "pro", "team"])},
        limits={"opt_out": sw.Limit(0.3, **{"safe_bound": 0.0, "model": "rates", **limit})},
    )  # fmt: skip


def examine(log: dict[str, Any], **limit: Any) -> Any:
    """Return the doctor's finding."""
    return sw.check_log(log, build_problem(**limit))["mismatch"]


def by_age(age: Any, _: Any) -> Any:
    return np.where(age > 40.0, 0.25, 0.05)


def by_line(age: Any, _: Any) -> Any:
    return 0.05 + 0.004 * (age - 20.0)


def by_corner(age: Any, plan: Any) -> Any:
    return np.where((age > 40.0) == (plan == "pro"), 0.6, 0.03)


def by_plan(_: Any, plan: Any) -> Any:
    return np.where(plan == "pro", 0.3, 0.05)


@pytest.mark.parametrize(("on_mismatch", "verdict"), [(None, "note"), ("warn", "note"), ("stop", "contradicts")])
def test_a_number_that_matters_is_named_with_its_cut(on_mismatch: Any, verdict: str) -> None:
    finding = examine(build_log(3_000, by_age), on_mismatch=on_mismatch)
    assert (finding.code, finding.verdict, finding.details["column"]) == ("halves_differ", verdict, "age")
    assert finding.details["cut"] == pytest.approx(40.0, abs=2.0)
    assert finding.details["low_mean"] < 0.08 < 0.2 < finding.details["high_mean"]
    assert finding.message
    assert finding.remedy


def test_a_level_of_a_category_that_matters_is_named() -> None:
    finding = examine(build_log(4_000, by_plan))
    assert (finding.details["kind"], finding.details["column"]) == ("level", "plan=pro")
    assert finding.message
    assert finding.remedy


@pytest.mark.parametrize(("rate", "code"), [(by_plan, "halves_alike"), (by_age, "halves_differ")])
def test_groups_by_which_a_limit_is_kept_explain_what_differs_between_them(rate: Any, code: str) -> None:
    assert examine(build_log(4_000, rate), model=None, by="plan").code == code


@pytest.mark.parametrize("model", ["linear", pytest.param("logistic", marks=pytest.mark.compiled)])
def test_bounds_of_every_user_that_some_exceed_are_found(model: str) -> None:
    finding = examine(build_log(3_000, by_corner), model=model, on_mismatch="stop")
    assert (finding.code, finding.verdict) == ("bounds_exceeded", "contradicts")
    assert {finding.details["column"], finding.details["second_column"]} & {"age", "plan=pro"}
    assert finding.details["mean"] > finding.details["end"]
    assert model in finding.message
    assert finding.remedy


def test_only_every_other_end_of_a_long_logistic_log_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, problem = np.random.default_rng(1), build_problem(model="logistic")
    policy = problem.policy()
    rows = np.column_stack([np.ones(301), np.ones(301), chance.uniform(-1, 1, (301, policy.context))])
    values = np.column_stack([np.full(301, np.nan), (chance.random(301) < 0.2) * 1.0])
    whole = mismatch_check.compute_ends(policy, "logistic", rows, values)
    monkeypatch.setattr(mismatch_check, "MOST_ENDS", 151)
    some = mismatch_check.compute_ends(policy, "logistic", rows, values)
    assert (whole[100:, 1] < 1.0).all()
    assert some[::2].tolist() == whole[::2].tolist()
    assert (some[1::2] == 1.0).all()


def test_limits_for_every_user_and_logs_of_users_alike_show_nothing() -> None:
    assert examine(build_log(3_000, by_line), model="linear").code == "halves_alike"
    assert examine(build_log(3_000, lambda age, plan: np.full(age.size, 0.1))).code == "halves_alike"


def test_rows_count_in_the_order_of_their_times() -> None:
    log = build_log(3_000, by_age, at=np.arange(3_000) * 60.0 + 1.7e9)
    order = np.random.default_rng(2).permutation(3_000)
    found, again = examine(log), examine({name: column[order] for name, column in log.items()})
    counts = ("low_count", "high_count", "low_mean", "high_mean")
    assert [found.details[name] for name in counts] == pytest.approx([again.details[name] for name in counts])


@pytest.mark.parametrize("falls", [True, False])
def test_means_that_fall_with_a_score_are_a_note(falls: bool) -> None:
    chance, rows = np.random.default_rng(3), 4_000
    risk = chance.random(rows)
    rate = 0.3 - 0.25 * risk if falls else 0.05 + 0.25 * risk
    problem = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", context=["x"], reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.3, safe_bound=0.0, score=sw.RiskScore("risk", buckets=4))},
    )  # fmt: skip
    log = {"action": ["offer"] * rows, "x": chance.uniform(-1.0, 1.0, rows), "risk": risk, "click": np.zeros(rows)}
    log["opt_out"] = (chance.random(rows) < rate) * 1.0
    report = sw.check_log(log, problem)
    codes = [str(one.code) for one in report.findings]
    assert ("means_fall" in codes) == falls
    if falls:
        details = next(one for one in report.findings if one.code == "means_fall").details
        agent = sw.Agent(problem, seed=1)
        agent.learn_log_frame(log)
        found = agent.health()["pooling of opt_out"].details
        assert {name: details[name] for name in ("action", "before", "after")} == {
            name: found[name] for name in ("action", "before", "after")
        }
