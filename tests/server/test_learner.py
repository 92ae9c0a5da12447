"""One learner for many experiments: one that fails is said, and the others go on."""

from pathlib import Path

import pytest
from tests.server.logs import problem
from tests.server.server_helpers import NAME, learned, played, serve_problem, soon, user

from stagewise.server import learner as learners
from stagewise.server.learner import Learner
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.state_fold import StateFold
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.page.verdict import build_verdict


@played
async def test_an_experiment_that_fails_is_said_and_the_others_stop_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learners, "RETRY_DELAY", 0.05)
    append, broken = Learner.append_ticks_and_stops, [NAME]

    def failing(self: Learner, name: str, fold: StateFold) -> None:
        if name in broken:
            raise ValueError("math domain error")
        append(self, name, fold)

    monkeypatch.setattr(Learner, "append_ticks_and_stops", failing)
    async with serve_problem(tmp_path) as server:
        await server.open("post", problem(), "ada", "a test", "live")  # it is learned after the one that fails
        await server.decide(NAME, user("a"))
        for i in range(60):
            await server.decide("post", user(f"b-{i}"))
            await server.learn("post", OutcomeUpdate(f"b-{i}", {"click": 0, "opt_out": 1, "complaint": 0}))
        await soon(lambda: server.experiment("post").killed)
        killed = server.experiment("post").killed
        assert (killed.reason, killed.details["trip"]) == ("tripped", "observed_cost_above_limit")
        assert server.ready() == (False, f"learning '{NAME}' failed: math domain error")
        assert 'stagewise_learning_failed{experiment="mail"} 1.0' in render_metrics(server)
        assert 'stagewise_learning_failed{experiment="post"} 0.0' in render_metrics(server)
        told = build_verdict(server.figures(NAME)).answers[1]
        assert (told.level, told.word, "math domain error" in told.message) == ("bad", "Not learning", True)
        assert server.figures("post")["failed"] is None
        broken.clear()
        await soon(lambda: server.ready()[0])
        await learned(server)


@played
async def test_a_learner_that_stops_within_a_log_shares_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower that decides by a part would forget the alerts of the rest."""
    monkeypatch.setattr(learners, "BATCH_SIZE", 4)
    async with serve_problem(tmp_path, learn=False) as server:
        for i in range(8):
            await server.decide(NAME, user(f"u-{i}"))
        version, store = server.experiment(NAME).current, server.store
        for whole in (False, True):
            learner = Learner(store, server._versions, server._publish, server.writer.append_now, alone=False)
            learner.is_leader = True
            while learner.learn(NAME, version) and whole:
                pass
            learner._stop.set()
            learner._run()  # it ends at once, and saves
            stored = store.get_latest_snapshot(NAME, version.number, with_learner_state=True)
            assert (stored.seq if stored else None) == (store.head(NAME).seq if whole else None)


@played
async def test_a_snapshot_kept_with_another_feedback_timeout_is_folded_again(tmp_path: Path) -> None:
    for seconds in (None, 600.0, 300.0):
        async with serve_problem(tmp_path, feedback_timeout=seconds) as server:
            await server.decide(NAME, user())
            await learned(server)
            state, again = server.learner.folds[NAME].encode(), StateFold(problem(), 1, feedback_timeout=seconds)
            again.take(server.store.events(NAME))
            assert again.encode() == state
            assert server.learner.failed is None
