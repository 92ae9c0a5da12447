"""What a request meets: decisions, outcomes and controls, each in the log before it is answered."""

import asyncio
import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service.desks import NAME, desk_on, drop_snapshots, learned, played, soon, user
from tests.service.logs import problem

import stagewise as sw
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.service.audit.replaying import Replay
from stagewise.service.deciding import decided, decided_all, encoded
from stagewise.service.desk import Desk
from stagewise.service.errors import Conflict, UnknownDecision, UnknownExperiment
from stagewise.service.fold import Fold
from stagewise.service.messages import Asked, Outcome, Refusal
from stagewise.service.records import EVERYWHERE, Ask, canonical
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import StoreDown
from stagewise.service.web.metrics import page_of


async def begun(desk: Desk) -> None:
    """Let the desk learn what the safe action earns: before that, nothing promises more."""
    for i in range(30):
        await desk.decide(NAME, user(f"first-{i}"))
        await desk.learn(NAME, Outcome(f"first-{i}", {"click": 0, "opt_out": 0, "complaint": 0}))
    await learned(desk)


@played
async def test_a_decision_is_in_the_log_before_it_is_answered(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        made = await desk.decide(NAME, user("u-1"))
        row = desk.store.find(NAME, "decision", "u-1")
        assert row is not None
        body = msgspec.json.decode(row.body)
        assert (body["action"], body["probabilities"]) == (made.action, made.probabilities)
        assert all(kept.dearest <= kept.threshold for kept in made.limits.values())


@played
async def test_a_retry_is_answered_the_same_and_another_question_with_its_id_is_refused(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        first = await desk.decide(NAME, user("u-1"))
        for _ in range(3):
            assert await desk.decide(NAME, user("u-1")) == first
        with pytest.raises(Conflict, match="other content"):
            await desk.decide(NAME, user("u-1", age=41.0))
        assert desk.store.head(NAME).places == 1


@played
async def test_a_retry_after_more_was_learned_does_not_draw_again(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        first = await desk.decide(NAME, user("u-1"))
        for i in range(30):
            await desk.decide(NAME, user(f"v-{i}"))
            await desk.learn(NAME, Outcome(f"v-{i}", {"click": True, "opt_out": False, "complaint": False}))
        await learned(desk)
        assert desk.experiment(NAME).state > first.state
        assert await desk.decide(NAME, user("u-1")) == first


@played
async def test_a_retry_is_answered_the_same_when_its_action_was_retired_since(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        first = await desk.decide(NAME, user("u-1", only=["digest"]))
        await desk.new_version(NAME, problem(actions=["nothing", "offer"]).plain(), "ada", "less")
        assert await desk.decide(NAME, user("u-1", only=["digest"])) == first
        before = desk.store.head(NAME)
        for asked in (user("u-2", only=["digest"]), user("u-1", only=["digest", "offer"]), user(only=["digest"])):
            with pytest.raises(InvalidActions, match="retired"):
                await desk.decide(NAME, asked)
        assert desk.store.head(NAME) == before


@played
async def test_of_two_who_open_an_experiment_at_once_the_second_makes_a_version(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        desk.learner.stop()
        desk._experiments.clear()  # as if the first had been another process, a moment ago
        await desk.open(NAME, problem(actions=["nothing", "offer"]), "eve", "another file")
        assert (desk.experiment(NAME).version, desk.experiment(NAME).current.retired) == (2, {"digest"})


@played
async def test_draws_follow_from_the_id_and_differ_between_ids(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await begun(desk)
        dry = [(await desk.decide(NAME, user(f"u-{i}", dry_run=True))) for i in range(40)]
        again = [(await desk.decide(NAME, user(f"u-{i}", dry_run=True))) for i in range(40)]
        assert dry == again
        assert len({canonical(one.probabilities) for one in dry}) > 1
        assert desk.store.head(NAME).places == 30
        assert not any(one.logged for one in dry)


@played
async def test_a_dry_run_does_not_tell_what_an_id_will_draw(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await begun(desk)
        seen = [(await desk.decide(NAME, user(f"u-{i}", dry_run=True))).action for i in range(1200)]
        chosen = [f"u-{i}" for i, action in enumerate(seen) if action != "nothing"]
        assert len(chosen) > 3
        drawn = [(await desk.decide(NAME, user(id_))).action for id_ in chosen]
        assert "nothing" in drawn


@played
async def test_an_answer_has_the_estimates_of_what_was_drawn_from(tmp_path: Path) -> None:
    """The same to the bit in the row, in a retry, in a dry run, and whichever way it was decided."""
    async with desk_on(tmp_path) as desk:
        await begun(desk)
        made = await desk.decide(NAME, user("u-1"))
        body, dry = row_of(desk, "u-1"), await desk.decide(NAME, user("u-1", dry_run=True))
        assert made.estimated_reward == body["estimated_reward"] is not None
        for name, kept in made.limits.items():
            assert kept.estimate == body["limits"][name]["estimate"]
            assert kept.estimate is not None
            assert 0.0 <= kept.estimate <= kept.dearest <= kept.threshold
            assert dry.limits[name].estimate is not None
        assert dry.estimated_reward is not None
        assert await desk.decide(NAME, user("u-1")) == made
        ours = desk.experiment(NAME)
        told = decided_all(*desk.basis(ours), ours.key, [("u-1", user("u-1"))])
        assert told[0] is not None
        assert encoded(told[0]) == canonical(decided(*desk.basis(ours), ours.key, "u-1", user("u-1")))
        assert told[0].estimated_reward == made.estimated_reward
        desk_words = desk.explain(NAME, "u-1")["words"]
        assert f"click: estimated at {made.estimated_reward:.6g}." in desk_words


@played
async def test_the_safe_action_served_unasked_has_no_estimate(tmp_path: Path) -> None:
    async with desk_on(tmp_path, mode="shadow") as desk:
        await begun(desk)
        made, body = await desk.decide(NAME, user("u-2")), row_of(desk, "u-2")
        assert (made.estimated_reward, [kept.estimate for kept in made.limits.values()]) == (None, [None, None])
        assert body["choice"]["estimated_reward"] is not None
        assert body["choice"]["limits"]["opt_out"]["estimate"] is not None


def row_of(desk: Any, id_: str) -> Any:
    """Return what the log has of a decision."""
    return msgspec.json.decode(desk.store.find(NAME, "decision", id_).body)


@played
async def test_outcomes_come_in_parts_and_each_counts_once(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.decide(NAME, user("u-1"))
        told = await desk.learn(NAME, Outcome("u-1", {"click": True}))
        assert (told.taken, told.known) == (["click"], [])
        told = await desk.learn(NAME, Outcome("u-1", {"click": True, "opt_out": 0}))
        assert (told.taken, told.known) == (["opt_out"], ["click"])
        with pytest.raises(Conflict, match="what was told once stays"):
            await desk.learn(NAME, Outcome("u-1", {"opt_out": 1, "complaint": 0}))
        assert desk.store.answers(NAME, 0) == {"click": 1.0, "opt_out": 0.0}
        with pytest.raises(UnknownDecision):
            await desk.learn(NAME, Outcome("u-2", {"click": True}))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"clik": 1}, "did you mean 'click'"),
        ({"opt_out": 2}, "percentage"),
        ({"opt_out": "yes"}, "opt_out"),
        ({"shown": 1}, "true or false"),
        ({}, "no outcome"),
        ({"click": float("nan")}, "click"),
    ],
)
def test_an_outcome_that_makes_no_sense_changes_nothing(tmp_path: Path, values: dict[str, object], words: str) -> None:
    async def run() -> None:
        async with desk_on(tmp_path) as desk:
            await desk.decide(NAME, user("u-1"))
            before = desk.store.head(NAME)
            with pytest.raises(InvalidOutcome, match=words):
                await desk.learn(NAME, Outcome("u-1", values))  # type: ignore[arg-type]
            assert desk.store.head(NAME) == before

    asyncio.run(run())


@played
async def test_an_outcome_with_an_id_of_its_own_is_answered_the_same_and_another_with_it_is_refused(
    tmp_path: Path,
) -> None:
    async with desk_on(tmp_path) as desk:
        for id_ in ("u-1", "u-2"):
            await desk.decide(NAME, user(id_))
        first = await desk.learn(NAME, Outcome("u-1", {"click": True}, outcome_id="o"))
        again = await desk.learn(NAME, Outcome("u-1", {"click": True}, outcome_id="o"))
        assert (first.decision_id, again.decision_id) == ("u-1", "u-1")
        rows = desk.store.head(NAME).seq
        for other in (
            Outcome("u-2", {"click": True}, outcome_id="o"),
            Outcome("u-1", {"click": False}, outcome_id="o"),
        ):
            with pytest.raises(Conflict):
                await desk.learn(NAME, other)
        assert desk.store.head(NAME).seq == rows


@played
async def test_what_is_asked_in_vain_changes_nothing(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        before = desk.store.head(NAME)
        for asked in (user(age=400.0), user(only=["sale"]), user(height=1.8), user(age="old"), user(age=None)):
            with pytest.raises(InvalidActions):
                await desk.decide(NAME, asked)
        with pytest.raises(UnknownExperiment, match="did you mean 'mail'"):
            await desk.decide("male", user())
        assert desk.store.head(NAME) == before


@played
async def test_a_batch_answers_each_by_itself(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        made = await desk.decide_all(NAME, [user("a"), user("b", age=400.0), user("a"), user("c")])
        assert isinstance(made[1], Refusal)
        assert made[0] == made[2]
        assert desk.store.head(NAME).places == 2
        told = await desk.learn_all(NAME, [Outcome("a", {"click": 1}), Outcome("x", {"click": 1})])
        assert told[1] == Refusal("no decision 'x' is in the log of 'mail'", "x")


@played
async def test_shadow_serves_the_safe_action_and_logs_the_choice(tmp_path: Path) -> None:
    async with desk_on(tmp_path, mode="shadow") as desk:
        await begun(desk)
        chosen = set()
        for i in range(60):
            made = await desk.decide(NAME, user(f"u-{i}"))
            assert (made.action, made.probabilities["nothing"], made.mode) == ("nothing", 1.0, "shadow")
            row = desk.store.find(NAME, "decision", f"u-{i}")
            assert row is not None
            chosen.add(canonical(msgspec.json.decode(row.body)["choice"]["probabilities"]))
        assert len(chosen) > 1


@played
async def test_a_canary_serves_the_policy_to_its_share_alone(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.set_mode(NAME, "canary", 0.25, "ada", "carefully")
        made = [await desk.decide(NAME, user(f"u-{i}")) for i in range(200)]
        held_back = [one for one in made if one.reason == "canary"]
        assert 120 < len(held_back) < 180
        assert {one.action for one in held_back} == {"nothing"}


@played
async def test_the_kill_switch_of_one_process_holds_in_another_at_its_next_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewise.service.reading.REFRESH", 3600.0)  # it does not even look
    async with desk_on(tmp_path) as desk:
        assert (await desk.decide(NAME, user())).mode == "live"
        row = desk.store.append([control(NAME, "kill")])[0]  # as another process would
        assert row.verdict == "new"
        made = await desk.decide(NAME, user())
        assert (made.action, made.mode, made.reason, made.fallback) == (
            "nothing",
            "killed",
            "killed",
            "killed by bob: so",
        )
        desk.store.append([control(NAME, "revive")])
        assert (await desk.decide(NAME, user())).mode == "live"
        desk.store.append([control(EVERYWHERE, "kill")])
        assert (await desk.decide(NAME, user())).mode == "killed"


def control(name: str, what: str) -> Ask:
    return Ask(name, "control", "", canonical({"what": what, "actor": "bob", "reason": "so"}))


@played
async def test_a_store_that_cannot_be_written_gives_the_safe_action_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_on(tmp_path) as desk:

        def down(asks: object) -> object:
            raise StoreDown("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(desk.store, "append", down)
            made = await desk.decide(NAME, user("u-1"))
            assert (made.action, made.logged) == ("nothing", False)
            assert "the disk is full" in str(made.fallback)
            with pytest.raises(StoreDown):
                await desk.learn(NAME, Outcome("u-1", {"click": 1}))
        assert (await desk.decide(NAME, user("u-1"))).logged


@played
async def test_deciding_that_fails_gives_the_safe_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk_on(tmp_path) as desk:
        monkeypatch.setattr("stagewise.service.deciding.by_policy", lambda *_: 1 / 0)
        made = await desk.decide(NAME, user("u-1"))
        assert (made.action, made.logged) == ("nothing", True)
        assert made.reason == "failed"


@played
async def test_another_version_is_learned_from_the_same_log(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        for i in range(40):
            await desk.decide(NAME, user(f"u-{i}"))
            await desk.learn(NAME, Outcome(f"u-{i}", {"click": 1, "opt_out": 0, "complaint": 0}))
        await learned(desk)
        more = problem(actions=["nothing", "offer", "sale"])
        assert await desk.new_version(NAME, more.plain(), "ada", "a sale") == 2
        made = await desk.decide(NAME, user("after"))
        assert (made.version, set(made.probabilities)) == (2, {"nothing", "digest", "offer", "sale"})
        await learned(desk)
        fold = desk.learner.folds[NAME]
        assert fold.learned >= 120
        later = [await desk.decide(NAME, user(f"w-{i}")) for i in range(60)]
        assert all(one.probabilities["digest"] == 0.0 for one in later)
        with pytest.raises(InvalidActions, match="digest"):
            await desk.decide(NAME, user(only=["digest"]))
        with pytest.raises(InvalidProblem, match="voids the guarantee"):
            await desk.new_version(NAME, problem(delta=0.2).plain(), "ada", "more")


@played
async def test_a_desk_that_starts_again_knows_what_it_knew(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        for i in range(50):
            await desk.decide(NAME, user(f"u-{i}"))
            await desk.learn(NAME, Outcome(f"u-{i}", {"click": i % 2, "opt_out": 0}))
        await learned(desk)
        fold = desk.learner.folds[NAME]
        whole, first = fold.whole(), await desk.decide(NAME, user("dry", dry_run=True))
    for snapshots in (True, False):
        if not snapshots:
            with closing(open_store(str(tmp_path / "desk.db"))) as store:
                drop_snapshots(store)
        async with desk_on(tmp_path) as desk:
            await learned(desk)
            assert desk.learner.folds[NAME].whole() == whole
            assert await desk.decide(NAME, user("dry", dry_run=True)) == first
            scratch = Fold(desk.experiment(NAME).problem, 1)
            scratch.take(desk.store.events(NAME))
            assert scratch.whole() == whole


@played
async def test_a_contradiction_stops_exploration_until_a_person_acknowledges_it(tmp_path: Path) -> None:
    async with desk_on(tmp_path, problem(limits={"opt_out": sw.Limit(0.05, safe=0.001)})) as desk:

        def asked(i: object) -> Asked:
            return msgspec.structs.replace(user(f"u-{i}"), context={"age": 40.0, "tenure": 0.25})

        for i in range(600):
            made = await desk.decide(NAME, asked(i))
            await desk.learn(NAME, Outcome(f"u-{i}", {"click": 0, "opt_out": int(i % 20 == 0)}))
        await learned(desk)
        made = await desk.decide(NAME, asked("x"))
        assert made.action == "nothing"
        assert made.reason == "contradiction"
        with pytest.raises(InvalidOutcome, match="is not in doubt"):
            await desk.acknowledge(NAME, "the weather", "ada", "no")
        await desk.acknowledge(NAME, "safe cost of opt_out", "ada", "we know")
        await learned(desk)
        made = await desk.decide(NAME, asked("y"))
        assert made.reason != "contradiction"


@played
async def test_costs_above_their_limit_trip_the_desk_by_itself(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        for i in range(80):
            made = await desk.decide(NAME, user(f"u-{i}"))
            if made.mode == "killed":
                break
            await desk.learn(NAME, Outcome(f"u-{i}", {"click": 0, "opt_out": 1, "complaint": 0}))
        await learned(desk)
        await asyncio.sleep(0.2)
        made = await desk.decide(NAME, user("after"))
        assert made.mode == "killed"
        assert made.reason == "tripped"
        await desk.revive(NAME, "ada", "the feed was wrong")
        await asyncio.sleep(0.2)
        assert (await desk.decide(NAME, user("later"))).mode == "live"


@played
async def test_events_that_are_told_stop_a_desk_and_are_seen_before_their_windows_close(tmp_path: Path) -> None:
    """Nothing but opt-outs is told, of one decision in four, and learning waits for seven days."""
    limits = {"opt_out": sw.Limit(0.05, safe=0.01, window="7d", by="country")}
    told = problem(limits=limits, reward=sw.Reward("click", window="1h"))
    async with desk_on(tmp_path, told) as desk:
        for i in range(200):
            await desk.decide(NAME, user(f"u-{i}"))
            if i % 4 == 1:
                await desk.learn(NAME, Outcome(f"u-{i}", {"opt_out": True}))
        await soon(lambda: desk.experiment(NAME).killed is not None)
        await learned(desk)
        assert desk.learner.folds[NAME].learned == 0
        figures = desk.figures(NAME)
        assert "'opt_out' averages at least" in figures["killed"]
        limit = figures["limits"]["opt_out"]
        assert (limit["seen"], limit["count"], limit["open"]) == (0.25, 200, 200)
        assert limit["threshold"] < limit["low"]
        finding = next(one for one in figures["health"] if one["name"] == "safe cost of opt_out")
        assert finding["verdict"] == "contradicted"
        assert 'stagewise_limit_seen{experiment="mail",limit="opt_out"} 0.25' in page_of(desk)
        assert 'stagewise_killed{experiment="mail"} 1.0' in page_of(desk)
        whole, doubts = desk.learner.folds[NAME].trips.plain(), dict(desk.experiment(NAME).doubts)
    async with desk_on(tmp_path, told) as desk:  # another process takes over
        await learned(desk)
        assert desk.learner.folds[NAME].trips.plain() == whole
        assert (desk.experiment(NAME).doubts, desk.experiment(NAME).killed is None) == (doubts, False)
        assert Replay(desk.store, NAME).run().first is None


@played
async def test_feedback_that_dries_up_trips_the_desk(tmp_path: Path) -> None:
    async with desk_on(tmp_path, dry_after=0.2) as desk:
        await desk.decide(NAME, user("u-0"))
        await desk.learn(NAME, Outcome("u-0", {"click": 0}))
        for _ in range(120):
            await desk.decide(NAME, user())
        await soon(lambda: desk.experiment(NAME).killed)  # nobody asks for anything meanwhile
        made = await desk.decide(NAME, user())
        assert made.reason == "tripped"


@played
async def test_a_decision_explains_itself(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        made = await desk.decide(NAME, user("u-1"))
        await desk.learn(NAME, Outcome("u-1", {"click": 1}))
        told = desk.explain(NAME, "u-1")
        assert told["outcome"] == {"click": 1.0}
        assert f"'{made.action}' was served" in told["words"][0]
        assert any("it must be at most 0.05" in line for line in told["words"])
        with pytest.raises(UnknownDecision):
            desk.explain(NAME, "u-2")
        limits = {name: dataclasses.replace(one, value=0.02) for name, one in problem().limits.items()}
        await desk.new_version(NAME, problem(limits=limits).plain(), "ada", "less")
        assert desk.explain(NAME, "u-1")["words"] == told["words"]  # nobody had promised 2 % of it


@played
async def test_the_figures_of_an_experiment_are_those_of_its_log(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await begun(desk)
        told = desk.figures(NAME)
        assert (told["decisions"], told["mode"], told["killed"], told["version"]) == (30, "live", None, 1)
        assert told["limits"]["opt_out"]["seen"] == 0.0
        assert told["limits"]["opt_out"]["threshold"] == 0.05
        assert {one["verdict"] for one in told["health"]} <= {"fine", "unknown"}
        assert "outcomes" not in {one["name"] for one in told["health"]}
        assert msgspec.json.encode(told)


@played
async def test_what_was_not_shown_has_no_outcome_and_what_has_one_was_shown(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        for id_, first, second in (("a", {"shown": False}, {"click": 1}), ("b", {"click": 1}, {"shown": False})):
            await desk.decide(NAME, user(id_))
            await desk.learn(NAME, Outcome(id_, first))
            with pytest.raises(Conflict, match="cannot have an outcome and not have been shown"):
                await desk.learn(NAME, Outcome(id_, second))
        await desk.decide(NAME, user("c"))
        with pytest.raises(Conflict):
            await desk.learn(NAME, Outcome("c", {"shown": False, "click": 1}))
        await desk.learn(NAME, Outcome("c", {"shown": True, "click": 1}))


@played
async def test_an_id_may_be_as_long_as_the_reference_says(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        id_ = "\U0001f98a" * 256
        assert (await desk.decide(NAME, user(id_))).logged
        assert (await desk.learn(NAME, Outcome(id_, {"click": 1}, id_))).taken == ["click"]


@played
async def test_an_explanation_says_on_which_side_of_a_limit_the_bound_is(tmp_path: Path) -> None:
    limits = {"opt_out": sw.Limit(0.05, safe=0.001), "stays": sw.Limit(sw.AtLeast(0.5), safe=0.9)}
    async with desk_on(tmp_path, problem(limits=limits)) as desk:
        asked = msgspec.structs.replace(user("a"), context={"age": 40.0, "tenure": 0.25})
        await desk.decide(NAME, asked)
        words = " ".join(desk.explain(NAME, "a")["words"])
        assert "opt_out: estimated at 0.001, at most 0.001 by what was known; it must be at most 0.05." in words
        assert ", at least 0.9 by what was known; it must be at least 0.5." in words
        assert "click: estimated at 0.5." in words


@played
async def test_what_is_known_of_a_silent_log_does_not_grow_old(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.decide(NAME, user("a"))
        await learned(desk)
        desk.learner.stop()
        desk.experiment(NAME).snapshot_at -= 100.0
        assert 'stagewise_snapshot_age_seconds{experiment="mail"} 0.0' in page_of(desk)
        await desk.decide(NAME, user("b"))
        later = desk.store.now() + 50_000_000
        desk.store.clock = lambda: later  # type: ignore[attr-defined]
        assert 'stagewise_snapshot_age_seconds{experiment="mail"} 5' in page_of(desk), "since the row that it lacks"


@played
async def test_a_version_that_is_said_in_another_order_is_written_in_the_first_ones(tmp_path: Path) -> None:
    """Limits of earlier rows are found by their place."""
    async with desk_on(tmp_path) as desk:
        plain = problem().plain()
        turned = {
            **plain,
            "limits": dict(reversed(plain["limits"].items())),
            "context": {"tenure": [-1, 1], "age": [0, 100]},
        }
        turned["limits"]["complaint"]["at_most"] = 0.03
        assert await desk.new_version(NAME, turned, "ada", "less") == 2
        row = msgspec.json.decode(desk.store.of_kind(NAME, "problem")[-1].body)["problem"]
        assert list(row["limits"]) == list(plain["limits"])
        assert list(row["context"]) == list(plain["context"])
        await learned(desk)
        fold = desk.learner.folds[NAME]
        assert [limits for _, limits in fold.trips.moved] == [[0.05, 0.04], [0.05, 0.03]]


def capped(value: float) -> sw.Problem:
    return problem(limits={**problem().limits, "opt_out": sw.Limit(value, safe=0.001, window="7d")})


async def goes_back(place: Path | str) -> None:
    """A limit is tightened, loosened and tightened again by the file; nothing is written where nothing changes."""
    for version, value in enumerate((0.02, 0.3, 0.02), 1):
        for _ in range(2):
            async with desk_on(place, capped(value)) as desk:
                ours = desk.experiment(NAME)
                assert (ours.version, ours.problem.limits["opt_out"].value) == (version, value)
                made = await desk.decide(NAME, user())
                assert made.limits["opt_out"].threshold == value
    async with desk_on(place, capped(0.02)) as desk:
        assert [event.key for event in desk.store.of_kind(NAME, "problem")] == ["1", "2", "3"]
        with pytest.raises(
            InvalidProblem, match=r"as version 2 had it.*'opt_out' at most 0.3 where it is at most 0.02"
        ):
            await desk.open(NAME, capped(0.3), "root", "an old file")
        assert desk.experiment(NAME).version == 3
        await desk.open(NAME, capped(0.3), "root", "meant", revert=True)
        assert desk.experiment(NAME).version == 4
    desk = Desk(open_store(str(place / "desk.db") if isinstance(place, Path) else place))
    await desk.start()
    assert desk.experiment(NAME).problem.limits["opt_out"].value == 0.3, "without a file, the newest version"
    await desk.stop()


@played
async def test_a_file_that_goes_back_to_an_earlier_limit_is_served(tmp_path: Path) -> None:
    await goes_back(tmp_path)


@played
async def test_a_file_that_goes_back_to_an_earlier_limit_is_served_on_postgres(postgres: str) -> None:
    await goes_back(postgres)


@played
async def test_an_old_file_loosens_nothing(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.new_version(NAME, problem(actions=["nothing", "offer"]).plain(), "ada", "no digests")
        with pytest.raises(InvalidProblem, match=r"it would allow the action 'digest'.*--revert"):
            await desk.open(NAME, problem(), "root", "started again with the old file")
        assert desk.experiment(NAME).version == 2
        await desk.open(NAME, problem(actions=["nothing", "digest", "sale"]), "root", "another file")
        assert desk.experiment(NAME).version == 3
        await desk.open(NAME, problem(actions=["nothing", "sale", "digest"]), "root", "the same in another order")
        assert desk.experiment(NAME).version == 3


@played
async def test_two_desks_with_one_new_file_make_one_version(postgres: str) -> None:
    """Both find the old version, and whoever writes second finds the same in the log."""
    async with desk_on(postgres) as one, desk_on(postgres) as two:
        await asyncio.gather(
            *(desk.open(NAME, capped(0.03), who, "a file") for desk, who in ((one, "ada"), (two, "bob")))
        )
        assert (one.experiment(NAME).version, two.experiment(NAME).version) == (2, 2)
        assert [event.key for event in one.store.of_kind(NAME, "problem")] == ["1", "2"]
