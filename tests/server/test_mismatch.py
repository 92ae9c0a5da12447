"""A server finds that it matters who gets an action, says so, and goes on or stops."""

from pathlib import Path
from typing import Any

import numpy as np
from tests.problem.refusal import refused
from tests.server.page.known import PROBLEM, KnownDesk, Log, campaign
from tests.server.page.test_page import logged_in
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, serve_problem, user

import stagewise as sw
from stagewise.cli.server_startup import build_offline_log
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.server.audit.replay import Replay
from stagewise.server.state_fold import StateFold
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.page.verdict import build_verdict

ALERT = "mismatch of opt_out"
METRIC = f'stagewise_alerts{{experiment="{NAME}",check="mismatch",signal="opt_out",verdict='


def build_problem(on_mismatch: Any = None) -> sw.Problem:
    limit = sw.Limit(0.3, safe_bound=0.0, model="rates", on_mismatch=on_mismatch)
    context = {"age": (0, 100), "tenure": (-1, 1)}
    return sw.Problem(
        action_names=["nothing", "digest", "offer"], safe_name="nothing", context=context, reward=sw.Reward("click"),
        limits={"opt_out": limit},
    )  # fmt: skip


def draw_log(rows: int) -> dict[str, Any]:
    chance = np.random.default_rng(1)
    age = chance.uniform(0.0, 100.0, rows)
    log = {"action": chance.choice(["digest", "offer"], rows), "age": age, "tenure": chance.uniform(-1, 1, rows)}
    opt_out = chance.random(rows) < np.where(age > 50.0, 0.3, 0.05)
    return log | {"click": (chance.random(rows) < 0.2) * 1.0, "opt_out": opt_out * 1.0}


def ask(name: str, age: float = 30.0) -> Any:
    request = user(name)
    request.context = {"age": age, "tenure": 0.0}
    return request


@played
async def test_a_warning_is_in_figures_and_metrics_until_it_is_acknowledged(tmp_path: Path) -> None:
    problem = build_problem()
    async with serve_problem(tmp_path, problem) as server:
        log = build_offline_log(problem, draw_log(1_500), {})
        loaded = await server.learn_log(NAME, log, "ada", "last month")
        await server.learned(NAME, loaded.row)
        figures, experiment = server.figures(NAME), server.experiment(NAME)
        assert (figures["warnings"], figures["alerts"], experiment.alerts) == ([ALERT], [], {})
        finding = next(one for one in figures["health"] if one["name"] == ALERT)
        assert (finding["verdict"], finding["details"]["column"]) == ("warning", "age")
        assert f'{METRIC}"warning"}} 1.0' in render_metrics(server)
        assert (await server.decide(NAME, ask("u-1"))).reason != "assumption_contradicted"
        agent = sw.Agent(problem, seed=1)
        agent.learn_log_frame(draw_log(1_500))
        assert dict(agent.health()[ALERT].details) == finding["details"]  # found as an agent finds it
        await server.acknowledge(NAME, ALERT, "ada", "known")
        await learned(server)
        assert server.figures(NAME)["warnings"] == []
        assert METRIC not in render_metrics(server)
        with refused(InvalidOutcome, ErrorCode.NO_OPEN_ALERT):
            await server.acknowledge(NAME, ALERT, "ada", "again")
        halves = server.learner.folds[NAME].learned.mismatch
        assert halves is not None
    async with serve_problem(tmp_path, problem) as server:
        await learned(server)
        assert server.learner.folds[NAME].learned.mismatch.to_dict() == halves.to_dict()  # from a snapshot
        drop_snapshots(server.store)
    async with serve_problem(tmp_path, problem) as server:  # another process folds the log again
        await learned(server)
        again: StateFold = server.learner.folds[NAME]
        assert again.learned.mismatch is not None
        assert again.learned.mismatch.to_dict() == halves.to_dict()
        assert server.figures(NAME)["warnings"] == []
        assert Replay(server.store, NAME).run().first_difference is None


@played
async def test_a_stop_serves_the_safe_action_until_it_is_acknowledged(tmp_path: Path) -> None:
    problem = build_problem("stop")
    async with serve_problem(tmp_path, problem) as server:
        loaded = await server.learn_log(NAME, build_offline_log(problem, draw_log(2_500), {}), "ada", "last month")
        await server.learned(NAME, loaded.row)
        assert list(server.experiment(NAME).alerts) == [ALERT]
        assert f'{METRIC}"contradicted"}} 1.0' in render_metrics(server)
        made = await server.decide(NAME, ask("u-1"))
        assert (made.action, made.reason) == ("nothing", "assumption_contradicted")
        await server.acknowledge(NAME, ALERT, "ada", "known")
        await learned(server)
        assert (await server.decide(NAME, ask("u-2"))).reason != "assumption_contradicted"


@played
async def test_what_a_mismatch_does_may_change_with_a_version(tmp_path: Path) -> None:
    problem = build_problem()
    async with serve_problem(tmp_path, problem) as server:
        loaded = await server.learn_log(NAME, build_offline_log(problem, draw_log(2_500), {}), "ada", "last month")
        await server.learned(NAME, loaded.row)
        await server.new_version(NAME, build_problem("stop").to_dict(), "ada", "stricter")
        await learned(server)
        assert list(server.experiment(NAME).alerts) == [ALERT]


def test_the_page_shows_a_warning_beside_the_alerts() -> None:
    health = [{"name": ALERT, "check": "mismatch", "verdict": "warning", "message": "it matters who gets an action"}]
    desk = KnownDesk({"notes": Log(PROBLEM, 1.8e9)}, health=health, warnings=[ALERT])
    page = logged_in(desk).get("/e/notes").text
    assert "decisions go on" in page
    assert "the data contradict no declared value" not in page


def test_limits_with_a_warning_are_not_called_fine() -> None:
    figures = KnownDesk({"notes": campaign(200)}).figures("notes")
    levels = [build_verdict({**figures, "warnings": one}).answers[0].level for one in ([], [ALERT])]
    assert levels == ["fine", "wait"]
