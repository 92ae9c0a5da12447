"""The report of limits that drift: the age in each bound, the last change, and when an action is back."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.agent.changes import DriftingBound
from stagewise.agent.report import Report
from stagewise.problem.timing import DAY

START, DAYS, ROWS = 1.763e9, 30, 5_400
ACTIONS = ["nothing", "digest", "offer"]


def report_of(drift: Any, rates: tuple[float, float, float], by: str | None = None) -> Report:
    """Return the report after a log of a month; the opt-outs of "offer" have three rates in turn."""
    rng, at = np.random.default_rng(0), START + np.arange(ROWS) * DAYS * DAY / ROWS
    limits = {"opt_out": sw.Limit(0.1, safe_bound=0.0, drift=drift, by=by)}
    problem = sw.Problem(action_names=ACTIONS, safe_name="nothing", reward=sw.Reward("click"), limits=limits)
    sent, part = rng.integers(0, 3, ROWS), np.searchsorted([0.6, 0.8], np.arange(ROWS) / ROWS)
    rate = np.where(sent == 2, np.array(rates)[part], np.array([0.0, 0.03, 0.0])[sent])
    log: dict[str, Any] = {"at": at, "action": np.array(ACTIONS, dtype=object)[sent], "click": rng.random(ROWS) < 0.1}
    log |= {"opt_out": rng.random(ROWS) < rate, "country": np.array(["NZ", "AU"], dtype=object)[np.arange(ROWS) % 2]}
    agent = sw.Agent(problem, seed=1)
    agent.learn_log_frame({name: values for name, values in log.items() if by or name != "country"})
    return agent.report()


def of_action(report: Report) -> dict[str, DriftingBound]:
    return {one.action: one for one in report.drifting}


def test_an_action_that_jumped_recovers_and_the_others_do_not() -> None:
    report = report_of("jumps", (0.03, 0.3, 0.05))
    digest, offer = of_action(report)["digest"], of_action(report)["offer"]
    assert (digest.changed_at, digest.recovering, digest.back_at) == (None, False, None)
    assert offer.changed_at is not None
    assert START + 0.5 * DAYS * DAY <= offer.changed_at <= START + 0.9 * DAYS * DAY
    assert (offer.recovering, offer.bound > 0.1, offer.age_term) == (True, True, 0.0)
    assert offer.back_at is not None or offer.note
    assert set(of_action(report)) == {"digest", "offer"}  # the safe action's cost is declared
    assert report.to_dict()["drifting"][1]["recovering"] is True
    assert "recovering" in str(report)


def test_an_action_that_is_over_its_limit_is_never_said_to_be_back() -> None:
    offer = of_action(report_of("jumps", (0.03, 0.3, 0.3)))["offer"]
    assert (offer.recovering, offer.back_at) == (True, None)
    assert offer.note


@pytest.mark.parametrize("by", [None, "country"])
def test_the_age_of_outcomes_is_a_part_of_the_bound(by: str | None) -> None:
    slope = of_action(report_of("0.02/30d", (0.03, 0.03, 0.03), by))["digest"]
    budget = of_action(report_of(("0.02", "60d"), (0.03, 0.03, 0.03), by))["digest"]
    assert 0.0 < slope.age_term <= 0.011  # of all outcomes, which are 15 days old on average, or of the youngest
    assert budget.age_term == pytest.approx(0.02)
    for one in (slope, budget):
        assert one.estimate is not None
        assert one.bound > one.estimate + one.age_term
        assert (one.segment is None) == (by is None)


def test_where_nothing_drifts_there_is_nothing_to_tell() -> None:
    problem = sw.Problem(
        action_names=ACTIONS, safe_name="nothing", reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.1)}
    )
    assert sw.Agent(problem, seed=1).report().drifting == ()


@pytest.mark.parametrize("drift", ["0.02/30d", "jumps"])
def test_buckets_of_a_score_have_the_bound_that_decisions_use(drift: Any) -> None:
    """The worst of them is told, pooled over its neighbours, by its name."""
    rng, score = np.random.default_rng(0), sw.RiskScore("risk", buckets=3)
    limits = {"opt_out": sw.Limit(0.3, safe_bound=0.0, score=score, drift=drift)}
    problem = sw.Problem(action_names=ACTIONS, safe_name="nothing", reward=sw.Reward("click"), limits=limits)
    risk, agent = rng.random(ROWS), sw.Agent(problem, seed=1)
    log = {"at": START + np.arange(ROWS) * DAYS * DAY / ROWS, "action": ["digest"] * ROWS, "risk": risk}
    agent.learn_log_frame({**log, "click": rng.random(ROWS) < 0.1, "opt_out": rng.random(ROWS) < 0.1 * risk})
    digest = of_action(agent.report())["digest"]
    users = {"user_id": [0, 1, 2], "risk": [0.1, 0.5, 0.9], "one": [1.0] * 3}
    table = sw.decide_frame(
        agent.replica_snapshot(), users, run="x", now=float(log["at"][-1]), propose={"digest": "one"}
    )
    bounds = table["limit.opt_out.pessimistic_cost"]
    names = score.bucket_names
    assert digest.segment == names[int(np.argmax(bounds))]
    assert digest.bound == pytest.approx(max(bounds), abs=1e-12)
    assert digest.estimate is not None
    assert digest.estimate < digest.bound


def test_bounds_and_what_is_declared_are_in_the_units_of_the_user() -> None:
    limit = sw.Limit(45.0, low=0.0, high=120.0, noise=6.0, safe_bound=20.0, drift="5/30d")
    problem = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"), limits={"minutes": limit}
    )
    agent, at = sw.Agent(problem, seed=1), START + np.arange(600) * 0.05 * DAY
    minutes = 30.0 + np.random.default_rng(1).uniform(-6.0, 6.0, 600)
    agent.learn_log_frame({"action": ["offer"] * 600, "click": np.ones(600), "minutes": minutes, "at": at})
    offer = of_action(agent.report())["offer"]
    assert offer.drift == "the mean moves by at most 5 per 30 days"
    assert 30.0 < offer.bound < 40.0
    assert 0.1 < offer.age_term < 5.0
