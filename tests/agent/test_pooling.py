"""Means that fall with a score: the action's buckets are no longer pooled, and people are told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.server_helpers import NAME, learned, played, serve_problem

import stagewise as sw
from stagewise.agent.health_findings import Check, Verdict
from stagewise.cli.server_startup import build_offline_log
from stagewise.records.reason import Contradiction
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.page.verdict import build_verdict

ALERT, ACTIONS = "pooling of opt_out", ["nothing", "digest", "offer"]


def build_problem(**score: Any) -> sw.Problem:
    return sw.Problem(
        action_names=ACTIONS, safe_name="nothing", context=["x"], reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.0, score=sw.RiskScore("risk", **{"buckets": 4} | score))},
    )  # fmt: skip


def draw_log(rows: int, seed: int, falls: bool = True) -> dict[str, Any]:
    """Return a log in which the offer costs most where the risk is said to be lowest; the digest is as declared."""
    chance = np.random.default_rng(seed)
    risk, sent = chance.random(rows), chance.choice(ACTIONS[1:], rows)
    offer = 0.12 - 0.11 * risk if falls else 0.01 + 0.11 * risk
    opt_out = chance.random(rows) < np.where(sent == "offer", offer, 0.01 + 0.02 * risk)
    log = {"action": sent, "x": chance.uniform(-1.0, 1.0, rows), "risk": risk, "click": chance.random(rows) < 0.1}
    return log | {"opt_out": opt_out.astype(float)}


def get_bounds(agent: sw.Agent, action: str) -> list[float]:
    return [one.pessimistic_cost for one in agent.report().segments if one.action == action]


def test_a_fall_is_a_warning_and_ends_pooling_for_its_action_alone(tmp_path: Path) -> None:
    agent = sw.Agent(build_problem(), seed=1)
    assert agent.health()[ALERT].verdict is Verdict.UNKNOWN
    agent.learn_log_frame(draw_log(6_000, 1))
    finding = agent.health()[ALERT]
    assert (finding.check, finding.verdict, finding.details["found"]) == (
        Check.POOLING, Verdict.WARNING, Contradiction.POOLING,
    )  # fmt: skip
    details = finding.details
    assert (details["action"], details["score"], details["before"]) == ("'offer'", "risk", "0 to 0.25")
    assert details["low"] > details["high"]
    assert agent.health().ok
    assert agent.decide({"x": 0.0, "risk": 0.4}).reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED
    alone = sw.Agent(build_problem(monotone=False), seed=1)
    alone.learn_log_frame(draw_log(6_000, 1))
    assert all(
        0.0 < own - other < 0.01 for own, other in zip(*(get_bounds(a, "offer") for a in (agent, alone)), strict=True)
    )
    assert get_bounds(agent, "offer")[0] > get_bounds(agent, "offer")[3]
    assert get_bounds(agent, "digest") == sorted(get_bounds(agent, "digest"))
    agent.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json")
    assert again.health()[ALERT].details == details
    again.learn_log_frame(draw_log(5_000, 2, falls=False))  # what is known to fall is not pooled again
    assert again.health()[ALERT].verdict is Verdict.WARNING
    assert again.policy.fits(again._learned.state.memory)


@pytest.mark.parametrize("settings", [{}, {"monotone": False}])
def test_means_that_rise_or_are_not_pooled_give_no_warning(settings: dict[str, Any]) -> None:
    agent = sw.Agent(build_problem(**settings), seed=1)
    agent.learn_log_frame(draw_log(6_000, 1, falls=bool(settings)))
    verdicts = [one.verdict for one in agent.health() if one.name == ALERT]
    assert verdicts == ([] if settings else [Verdict.FINE])


def test_a_lower_limit_whose_means_rise_is_told_in_its_own_units() -> None:
    limit = sw.Limit(sw.AtLeast(0.2), safe_bound=0.9, score=sw.RiskScore("risk", buckets=2))
    problem = sw.Problem(
        action_names=["plain", "offer"],
        safe_name="plain",
        context=["x"],
        reward=sw.Reward("click"),
        limits={"opened": limit},
    )
    chance, rows = np.random.default_rng(1), 2_000
    risk = chance.random(rows)
    log = {"action": ["offer"] * rows, "x": np.zeros(rows), "risk": risk, "click": np.zeros(rows)}
    agent = sw.Agent(problem, seed=1)
    agent.learn_log_frame(log | {"opened": (chance.random(rows) < np.where(risk < 0.5, 0.3, 0.8)) * 1.0})
    details = agent.health()["pooling of opened"].details
    assert 0.3 < details["low"] < details["high"] < 0.8


@played
async def test_a_server_tells_it_in_figures_in_metrics_and_on_the_page(tmp_path: Path) -> None:
    problem = build_problem()
    async with serve_problem(tmp_path, problem) as server:
        loaded = await server.learn_log(NAME, build_offline_log(problem, draw_log(6_000, 1), {}), "ada", "last month")
        await server.learned(NAME, loaded.row)
        await learned(server)
        figures = server.figures(NAME)
        assert (figures["warnings"], figures["alerts"]) == ([ALERT], [])
        assert f'stagewise_alerts{{experiment="{NAME}",check="pooling",signal="opt_out",verdict="warning"}} 1.0' in (
            render_metrics(server)
        )
        figures = {**figures, "decisions": 1}
        safety = build_verdict(figures).answers[0]
        assert safety.level == "wait"
        assert build_verdict({**figures, "warnings": []}).answers[0].level == "fine"


@pytest.mark.parametrize("drift", ["0.005/30d", "jumps"])
def test_a_fall_of_means_that_drift_is_told_too(drift: str) -> None:
    limit = sw.Limit(0.05, safe_bound=0.0, score=sw.RiskScore("risk", buckets=4), drift=drift)
    problem = sw.Problem(
        action_names=ACTIONS, safe_name="nothing", context=["x"], reward=sw.Reward("click"), limits={"opt_out": limit}
    )
    verdicts = []
    for falls in (True, False):
        agent = sw.Agent(problem, seed=1)
        agent.learn_log_frame(draw_log(6_000, 1, falls) | {"at": 1.7e9 + 60.0 * np.arange(6_000)})
        verdicts.append(agent.health()[ALERT].verdict)
    assert verdicts == [Verdict.WARNING, Verdict.FINE]
