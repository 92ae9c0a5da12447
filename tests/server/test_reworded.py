"""Sentences are for people: worded otherwise, the same is decided, logged, stopped, folded and replayed, to the bit."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.rewording import draw_word, reword
from tests.server.reworded import campaign
from tests.server.server_helpers import NAME, check_fold, learned, played, serve_problem, soon, user

from stagewise.server.audit.replay import Replay
from stagewise.server.log_statistics import LogStatistics
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.state_fold import StateFold
from stagewise.server.store.migrate import open_store


@pytest.mark.parametrize("seed", [1, 2])
def test_worded_otherwise_a_log_and_what_it_comes_to_are_the_same_to_the_bit(seed: int) -> None:
    plain = campaign()
    assert plain.reasons >= {
        None,
        "shadow",
        "outside_canary",
        "experiment_off",
        "killed",
        "tripped",
        "assumption_contradicted",
    }
    assert {body["trip"] for body in plain.bodies("control") if "trip" in body} >= {
        "observed_cost_above_limit",
        "feedback_stopped",
    }
    with pytest.MonkeyPatch.context() as patched:
        reword(patched, word := draw_word(seed))
        other = campaign()
        assert [event.body for event in other.rows] == [event.body for event in plain.rows]
        assert other.fold.encode() == plain.fold.encode()
        again = StateFold(plain.fold.problem, 1, feedback_timeout=50.0)  # the old log, read by another release
        again.restore(plain.fold.encode())
        assert again.encode() == plain.fold.encode()
        again = StateFold(plain.fold.problem, 1, feedback_timeout=50.0)
        again.take(plain.rows)
        assert again.encode() == plain.fold.encode()
        told = [body["reason"] for body in counted(plain).values()]
        assert any(word in str(one["message"]) for one in counted(plain).values())  # a person reads the new words
    assert [body["reason"] for body in counted(plain).values()] == told
    assert not any(word.encode() in event.body for event in other.rows)


def counted(made: Any) -> dict[str, Any]:
    """Return the last decisions as the page shows them, by id."""
    tally = LogStatistics(NAME)
    for event in made.rows:
        tally.take(event)
    return {one["decision_id"]: one for one in tally.last}


@pytest.mark.parametrize("before", [False, True], ids=["written, then reworded", "reworded, then written"])
@played
async def test_a_log_is_replayed_to_the_bit_whatever_its_desk_called_things(tmp_path: Path, before: bool) -> None:
    with pytest.MonkeyPatch.context() as patched:
        if before:
            reword(patched, draw_word(3))
        async with serve_problem(tmp_path) as desk:
            for i in range(60):
                await desk.decide(NAME, user(f"u-{i}"))
                await desk.learn(NAME, OutcomeUpdate(f"u-{i}", {"click": 0, "opt_out": 1, "complaint": 0}))
            await soon(lambda: desk.experiment(NAME).killed is not None)
            assert (await desk.decide(NAME, user("stopped"))).reason == "tripped"
            await learned(desk)
            await desk.resume(NAME, "ada", "a feed was wrong")
            assert (await desk.decide(NAME, user("again"))).reason == "assumption_contradicted"
            await learned(desk)
            trips = desk.learner.folds[NAME].circuit_breaker.to_dict()
    with pytest.MonkeyPatch.context() as patched, closing(open_store(str(tmp_path / "server.db"))) as store:
        if not before:
            reword(patched, draw_word(4))
        replayed = Replay(store, NAME).run()
        assert (replayed.first_difference, replayed.matching) == (None, replayed.decisions)
        check_fold(store)
        fold = StateFold(Replay(store, NAME).versions[1].problem, 1)
        fold.take(store.events(NAME, limit=10**6))
        assert fold.circuit_breaker.to_dict() == trips
