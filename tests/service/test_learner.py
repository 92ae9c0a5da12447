"""One learner for many experiments: one that fails is said, and the others go on."""

from pathlib import Path

import pytest
from tests.service.desks import NAME, desk_on, learned, played, soon, user
from tests.service.logs import problem

from stagewise.service import learner as learners
from stagewise.service.fold import Fold
from stagewise.service.learner import Learner
from stagewise.service.messages import Outcome
from stagewise.service.web.metrics import page_of
from stagewise.service.web.page.verdict import verdict


@played
async def test_an_experiment_that_fails_is_said_and_the_others_stop_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learners, "AGAIN", 0.05)
    watch, broken = Learner.watch, [NAME]

    def failing(self: Learner, name: str, fold: Fold) -> None:
        if name in broken:
            raise ValueError("math domain error")
        watch(self, name, fold)

    monkeypatch.setattr(Learner, "watch", failing)
    async with desk_on(tmp_path) as desk:
        await desk.open("post", problem(), "ada", "a test", "live")  # it is learned after the one that fails
        await desk.decide(NAME, user("a"))
        for i in range(60):
            await desk.decide("post", user(f"b-{i}"))
            await desk.learn("post", Outcome(f"b-{i}", {"click": 0, "opt_out": 1, "complaint": 0}))
        await soon(lambda: desk.experiment("post").killed)
        killed = desk.experiment("post").killed
        assert (killed.reason, killed.details["trip"]) == ("tripped", "limit_exceeded")
        assert desk.ready() == (False, f"learning '{NAME}' failed: math domain error")
        assert 'stagewise_learning_failed{experiment="mail"} 1.0' in page_of(desk)
        assert 'stagewise_learning_failed{experiment="post"} 0.0' in page_of(desk)
        told = verdict(desk.figures(NAME)).answers[1]
        assert (told.level, told.word, "math domain error" in told.sentence) == ("bad", "Not learning", True)
        assert desk.figures("post")["failed"] is None
        broken.clear()
        await soon(lambda: desk.ready()[0])
        await learned(desk)


@played
async def test_a_snapshot_kept_with_another_dry_after_is_folded_again(tmp_path: Path) -> None:
    for seconds in (None, 600.0, 300.0):
        async with desk_on(tmp_path, dry_after=seconds) as desk:
            await desk.decide(NAME, user())
            await learned(desk)
            whole, again = desk.learner.folds[NAME].whole(), Fold(problem(), 1, dry_after=seconds)
            again.take(desk.store.events(NAME))
            assert again.whole() == whole
            assert desk.learner.failed is None
