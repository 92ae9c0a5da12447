"""Limits that drift, over the server: times of decisions are in the log, so that bounds age and a replay is exact."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.server.server_helpers import NAME, learned, played, serve_problem

import stagewise as sw
from stagewise.cli.server_startup import build_offline_log
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY
from stagewise.server.access_keys import KeyHolder
from stagewise.server.audit.replay import Replay, explain_logged_decision
from stagewise.server.decide import decode_decision
from stagewise.server.messages import DecisionRequest, OutcomeUpdate
from stagewise.server.offline_log import check_rows
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.page.render import build_page_context, render_parts
from stagewise.server.web.page.sessions import Session

LIMIT = sw.Limit(0.2, safe_bound=0.0, drift="0.05/30d")
PROBLEM = sw.Problem(
    action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"), limits={"opt_out": LIMIT}
)


SCORED = sw.Limit(0.2, safe_bound=0.0, score=sw.RiskScore("risk", buckets=3), drift="0.05/30d")


NOISY = sw.Limit(0.2, low=-0.5, high=1.5, noise=0.1, safe_bound=0.0, drift="0.05/30d")


FORGETTING = sw.Reward("click", half_life="10d")


@pytest.mark.parametrize(
    ("limit", "reward", "context"),
    [(LIMIT, PROBLEM.reward, {}), (SCORED, FORGETTING, {"risk": 0.5}), (NOISY, PROBLEM.reward, {})],
    ids=["rates", "score and a reward that is forgotten", "a declared noise"],
)
@played
async def test_bounds_age_between_decisions_and_every_decision_is_replayed(
    tmp_path: Path, limit: sw.Limit, reward: sw.Reward, context: dict[str, float]
) -> None:
    async with serve_problem(tmp_path, replace(PROBLEM, reward=reward, limits={"opt_out": limit})) as server:
        shift = [0]
        clock = server.store.clock
        server.store.clock = lambda: clock() + shift[0]
        for i in range(120):
            shift[0] += int(DAY * 1e6) // 40
            answer = await server.decide(NAME, DecisionRequest(context, decision_id=f"d{i}", propose="offer"))
            assert await server.decide(NAME, DecisionRequest(context, decision_id=f"d{i}", propose="offer")) == answer
            await server.learn(NAME, OutcomeUpdate(f"d{i}", {"click": 1.0, "opt_out": 0.0}))
        await learned(server)
        shares = []
        for i, days in enumerate((0, 100)):
            shift[0] += int(days * DAY * 1e6)
            answer = await server.decide(NAME, DecisionRequest(context, decision_id=f"late{i}", propose="offer"))
            shares.append(answer.probabilities["offer"])
            assert answer.reward_guarantee == ("forgetting" if reward.half_life else msgspec.UNSET)
        early, late = (decode_decision(server.store.find(NAME, "decision", f"late{i}").body).time for i in range(2))
        assert late - early >= int(100 * DAY * 1e6)
        await server.set_mode(NAME, "shadow", None, "ada", "a test")
        await server.decide(NAME, DecisionRequest(context, decision_id="shadow", scores={"nothing": 0.0, "offer": 1.0}))
        await learned(server)
        result = Replay(server.store, NAME).run()
        assert result.first_difference is None
        assert (result.decisions, result.matching) == (123, 123)
        assert "Replay: identical." in explain_logged_decision(server.store, NAME, "late1")
    assert shares[0] > shares[1] > 0.0


@played
async def test_a_log_of_an_experiment_needs_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    log = {
        "action": ["offer"] * 3000,
        "click": (rng.random(3000) < 0.1).astype(float),
        "opt_out": (rng.random(3000) < 0.002).astype(float),
    }
    at = 1.7e9 + np.arange(3000) * DAY / 100
    with pytest.raises(sw.InvalidActions) as error:
        check_rows(PROBLEM, build_offline_log(PROBLEM, log, {}))
    assert error.value.code == ErrorCode.COLUMN_MISSING
    whole = build_offline_log(PROBLEM, {**log, "at": at}, {})
    check_rows(PROBLEM, whole)
    async with serve_problem(tmp_path, PROBLEM) as server:
        server.store.clock = lambda: int((1.7e9 + 31 * DAY) * 1e6)
        await server.learned(NAME, (await server.learn_log(NAME, whole, "ada", "last month")).row)
        answer = await server.decide(NAME, DecisionRequest(propose="offer"))
        agent = sw.Agent(PROBLEM)
        agent.learn_log_frame({**log, "at": at})
        expected = agent.decide(propose="offer", now=1.7e9 + 31 * DAY)
        assert answer.probabilities == expected.probabilities
        assert expected.probabilities["offer"] > 0.5


@pytest.mark.parametrize("limit", [LIMIT, NOISY, sw.Limit(0.2, safe_bound=0.0, drift="jumps")])
@played
async def test_an_action_is_relearned_by_a_row_of_the_log(tmp_path: Path, limit: sw.Limit) -> None:
    async with serve_problem(tmp_path, replace(PROBLEM, limits={"opt_out": limit})) as server:
        rows = 1200
        log = {"action": ["offer"] * rows, "click": [1.0] * rows, "opt_out": [0.0] * rows}
        at = server.store.now() / 1e6 - 20 * DAY + np.arange(rows) * 20 * DAY / rows
        whole = build_offline_log(server.experiment(NAME).problem, {**log, "at": at}, {})
        await server.learned(NAME, (await server.learn_log(NAME, whole, "ada", "last month")).row)
        before = await server.decide(NAME, DecisionRequest(propose="offer", decision_id="before"))
        for i in range(60):
            await server.decide(NAME, DecisionRequest(propose="offer", decision_id=f"pending{i}"))
        with pytest.raises(sw.InvalidProblem):
            await server.forget_costs(NAME, "ofer", None, "ada", "a new footer")
        await server.forget_costs(NAME, "offer", None, "ada", "a new footer")
        await server.learn(NAME, OutcomeUpdate("before", {"click": 1.0, "opt_out": 0.0}))
        for i in range(60):  # of the old footer
            await server.learn(NAME, OutcomeUpdate(f"pending{i}", {"click": 1.0, "opt_out": 0.0}))
        await learned(server, 60.0)
        after = await server.decide(NAME, DecisionRequest(propose="offer", decision_id="after"))
        assert before.probabilities["offer"] == 1.0
        assert after.probabilities["offer"] == pytest.approx(0.2 / limit.high)
        body = msgspec.json.decode(server.store.events_of_kind(NAME, "control")[-1].body)
        assert body == {"what": "forget_costs", "action": "offer", "actor": "ada", "reason": "a new footer"} | {
            "before": None
        }
        await learned(server)
        assert Replay(server.store, NAME).run().first_difference is None


@pytest.mark.parametrize("on_jump", [None, "stop"])
@played
async def test_a_jump_stops_one_action_unless_a_person_wants_all_to_stop(tmp_path: Path, on_jump: Any) -> None:
    limit = sw.Limit(0.2, safe_bound=0.0, drift="jumps", on_jump=on_jump)
    async with serve_problem(tmp_path, replace(PROBLEM, limits={"opt_out": limit})) as server:
        problem, rows, rng = server.experiment(NAME).problem, 1200, np.random.default_rng(2)
        log = {"action": ["offer"] * rows, "click": [1.0] * rows, "opt_out": [0.0] * rows}
        at = server.store.now() / 1e6 - 20 * DAY + np.arange(rows) * 20 * DAY / rows
        whole = build_offline_log(problem, {**log, "at": at}, {})
        await server.learned(NAME, (await server.learn_log(NAME, whole, "ada", "last month")).row)
        for i in range(300):
            answer = await server.decide(NAME, DecisionRequest(propose="offer", decision_id=f"d{i}"))
            opted = float(answer.action == "offer" and rng.random() < 0.5)
            await server.learn(NAME, OutcomeUpdate(f"d{i}", {"click": 1.0, "opt_out": opted}))
            if i % 50 == 49:
                await learned(server)
        experiment = server.experiment(NAME)
        assert (experiment.controls.killed is None) == (on_jump is None)
        if on_jump is None:
            assert "change of opt_out" in experiment.warnings
            assert not experiment.alerts
            answer = await server.decide(NAME, DecisionRequest(propose="offer", decision_id="after"))
            assert 0.0 < answer.probabilities["offer"] < 0.5


@played
async def test_figures_metrics_and_page_tell_bounds_their_age_and_who_recovers(tmp_path: Path) -> None:
    limit, rng = sw.Limit(0.2, safe_bound=0.0, drift="0.1/30d"), np.random.default_rng(0)
    actions = ["nothing", "digest", "offer"]
    drifting = sw.Problem(
        action_names=actions, safe_name="nothing", reward=sw.Reward("click"), limits={"opt_out": limit}
    )
    async with serve_problem(tmp_path, drifting) as server:
        clock, shift = server.store.clock, [0]
        server.store.clock = lambda: clock() + shift[0]
        for i in range(700):
            shift[0] += int(DAY * 1e6) // 40
            answer = await server.decide(NAME, DecisionRequest({}, decision_id=f"d{i}", propose=actions[1 + i % 2]))
            jumped = answer.action == "offer" and i > 500
            rate = 0.9 if jumped else 0.03 * (answer.action != "nothing")
            await server.learn(NAME, OutcomeUpdate(f"d{i}", {"click": 1.0, "opt_out": float(rng.random() < rate)}))
        await learned(server)
        bounds = {one["action"]: one for one in server.figures(NAME)["drifting"]}
        assert set(bounds) == {"digest", "offer"}
        assert (bounds["offer"]["recovering"], bounds["digest"]["recovering"]) == (True, False)
        assert bounds["offer"]["changed_at"] is not None
        assert 0.0 < bounds["digest"]["age_term"] < bounds["digest"]["bound"]
        shift[0] += int(10 * DAY * 1e6)
        older = {one["action"]: one for one in server.figures(NAME)["drifting"]}["digest"]
        assert older["bound"] - bounds["digest"]["bound"] == pytest.approx(0.1 / 3, rel=1e-3)  # ages by itself
        assert [round(point[1], 6) for point in older["history"]][-1] == round(older["bound"], 6)
        metrics = render_metrics(server)
        assert f'stagewise_drift_recovering{{experiment="{NAME}",limit="opt_out",action="offer"}} 1.0' in metrics
        context = build_page_context(server.figures(NAME), Session(KeyHolder("ada", "reader"), "", ""), (True, ""), "")
        page = render_parts(context)["limit-0"]
        assert all(text in page for text in ("offer", "of it age", "<polyline"))
