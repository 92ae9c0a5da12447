"""What a request meets: decisions, outcomes and controls, each in the log before it is answered."""

import asyncio
import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.problem.refusal import refused
from tests.server.logs import problem
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, serve_problem, soon, user

import stagewise as sw
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.server.audit.replay import Replay
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import GLOBAL, AppendRequest, encode_canonical
from stagewise.server.messages import (
    Conflict,
    DecisionRequest,
    ErrorResponse,
    OutcomeUpdate,
    UnknownDecision,
    UnknownExperiment,
)
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.migrate import open_store
from stagewise.server.web.metrics import render_metrics


async def begun(server: DecisionServer) -> None:
    """Let the server learn what the safe action earns: before that, nothing promises more."""
    for i in range(30):
        await server.decide(NAME, user(f"first-{i}"))
        await server.learn(NAME, OutcomeUpdate(f"first-{i}", {"click": 0, "opt_out": 0, "complaint": 0}))
    await learned(server)


@played
async def test_a_decision_is_in_the_log_before_it_is_answered(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        made = await server.decide(NAME, user("u-1"))
        row = server.store.find(NAME, "decision", "u-1")
        assert row is not None
        body = msgspec.json.decode(row.body)
        assert (body["action"], body["probabilities"]) == (made.action, made.probabilities)
        assert all(kept.pessimistic_cost <= kept.threshold for kept in made.limits.values())


@played
async def test_a_retry_is_answered_the_same_and_another_question_with_its_id_is_refused(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        first = await server.decide(NAME, user("u-1"))
        for _ in range(3):
            assert await server.decide(NAME, user("u-1")) == first
        with refused(Conflict, ErrorCode.CONFLICT):
            await server.decide(NAME, user("u-1", age=41.0))
        assert server.store.head(NAME).decision_count == 1


@played
async def test_a_retry_after_more_was_learned_does_not_draw_again(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        first = await server.decide(NAME, user("u-1"))
        for i in range(30):
            await server.decide(NAME, user(f"v-{i}"))
            await server.learn(NAME, OutcomeUpdate(f"v-{i}", {"click": True, "opt_out": False, "complaint": False}))
        await learned(server)
        assert server.experiment(NAME).snapshot > first.snapshot
        assert await server.decide(NAME, user("u-1")) == first


@played
async def test_a_retry_is_answered_the_same_when_its_action_was_retired_since(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        first = await server.decide(NAME, user("u-1", only=["digest"]))
        await server.new_version(NAME, problem(action_names=["nothing", "offer"]).to_dict(), "ada", "less")
        assert await server.decide(NAME, user("u-1", only=["digest"])) == first
        before = server.store.head(NAME)
        for asked in (user("u-2", only=["digest"]), user("u-1", only=["digest", "offer"]), user(only=["digest"])):
            with refused(InvalidActions, ErrorCode.ACTION_RETIRED):
                await server.decide(NAME, asked)
        assert server.store.head(NAME) == before


@played
async def test_of_two_who_open_an_experiment_at_once_the_second_makes_a_version(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        server.learner.stop()
        server._experiments.clear()  # as if the first had been another process, a moment ago
        await server.open(NAME, problem(action_names=["nothing", "offer"]), "eve", "another file")
        assert (server.experiment(NAME).version, server.experiment(NAME).current.retired) == (2, {"digest"})


@played
async def test_draws_follow_from_the_id_and_differ_between_ids(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await begun(server)
        dry = [(await server.decide(NAME, user(f"u-{i}", dry_run=True))) for i in range(40)]
        again = [(await server.decide(NAME, user(f"u-{i}", dry_run=True))) for i in range(40)]
        assert dry == again
        assert len({encode_canonical(one.probabilities) for one in dry}) > 1
        assert server.store.head(NAME).decision_count == 30
        assert not any(one.logged for one in dry)


@played
async def test_a_dry_run_does_not_tell_what_an_id_will_draw(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await begun(server)
        seen = [(await server.decide(NAME, user(f"u-{i}", dry_run=True))).action for i in range(1200)]
        chosen = [f"u-{i}" for i, action in enumerate(seen) if action != "nothing"]
        assert len(chosen) > 3
        drawn = [(await server.decide(NAME, user(id_))).action for id_ in chosen]
        assert "nothing" in drawn


@played
async def test_an_answer_has_the_estimates_of_what_was_drawn_from(tmp_path: Path) -> None:
    """The same to the bit in the row, in a retry, in a dry run, and whichever way it was decided."""
    async with serve_problem(tmp_path) as server:
        await begun(server)
        made = await server.decide(NAME, user("u-1"))
        body, dry = row_of(server, "u-1"), await server.decide(NAME, user("u-1", dry_run=True))
        assert made.estimated_reward == body["estimated_reward"] is not None
        for name, kept in made.limits.items():
            assert kept.estimate == body["limits"][name]["estimate"]
            assert kept.estimate is not None
            assert 0.0 <= kept.estimate <= kept.pessimistic_cost <= kept.threshold
            assert dry.limits[name].estimate is not None
        assert dry.estimated_reward is not None
        assert await server.decide(NAME, user("u-1")) == made
        server_words = server.explain(NAME, "u-1")["description"]
        assert f"click: estimated at {made.estimated_reward:.6g}." in server_words


@played
async def test_the_safe_action_served_unasked_has_no_estimate(tmp_path: Path) -> None:
    async with serve_problem(tmp_path, mode="shadow") as server:
        await begun(server)
        made, body = await server.decide(NAME, user("u-2")), row_of(server, "u-2")
        assert (made.estimated_reward, [kept.estimate for kept in made.limits.values()]) == (None, [None, None])
        assert body["choice"]["estimated_reward"] is not None
        assert body["choice"]["limits"]["opt_out"]["estimate"] is not None


def row_of(server: Any, id_: str) -> Any:
    """Return what the log has of a decision."""
    return msgspec.json.decode(server.store.find(NAME, "decision", id_).body)


@played
async def test_outcomes_come_in_parts_and_each_counts_once(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.decide(NAME, user("u-1"))
        told = await server.learn(NAME, OutcomeUpdate("u-1", {"click": True}))
        assert (told.accepted, told.duplicate) == (["click"], [])
        told = await server.learn(NAME, OutcomeUpdate("u-1", {"click": True, "opt_out": 0}))
        assert (told.accepted, told.duplicate) == (["opt_out"], ["click"])
        with refused(Conflict, ErrorCode.CONFLICT):
            await server.learn(NAME, OutcomeUpdate("u-1", {"opt_out": 1, "complaint": 0}))
        number = server.store.find(NAME, "decision", "u-1").number
        assert server.store.answers(number) == {"click": 1.0, "opt_out": 0.0}
        with pytest.raises(UnknownDecision):
            await server.learn(NAME, OutcomeUpdate("u-2", {"click": True}))


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"clik": 1}, ErrorCode.UNKNOWN_SIGNAL),
        ({"opt_out": 2}, ErrorCode.OUTCOME_OUT_OF_RANGE),
        ({"opt_out": "yes"}, ErrorCode.WRONG_TYPE),
        ({"shown": 1}, ErrorCode.WRONG_TYPE),
        ({}, ErrorCode.OUTCOME_MISSING),
        ({"click": float("nan")}, ErrorCode.OUTCOME_OUT_OF_RANGE),
    ],
)
@played
async def test_an_invalid_outcome_changes_nothing(tmp_path: Path, values: dict[str, object], code: ErrorCode) -> None:
    async with serve_problem(tmp_path) as server:
        await server.decide(NAME, user("u-1"))
        before = server.store.head(NAME)
        with refused(InvalidOutcome, code):
            await server.learn(NAME, OutcomeUpdate("u-1", values))  # type: ignore[arg-type]
        assert server.store.head(NAME) == before


@played
async def test_an_outcome_with_an_id_of_its_own_is_answered_the_same_and_another_with_it_is_refused(
    tmp_path: Path,
) -> None:
    async with serve_problem(tmp_path) as server:
        for id_ in ("u-1", "u-2"):
            await server.decide(NAME, user(id_))
        first = await server.learn(NAME, OutcomeUpdate("u-1", {"click": True}, outcome_id="o"))
        again = await server.learn(NAME, OutcomeUpdate("u-1", {"click": True}, outcome_id="o"))
        assert (first.decision_id, again.decision_id) == ("u-1", "u-1")
        rows = server.store.head(NAME).seq
        for other in (
            OutcomeUpdate("u-2", {"click": True}, outcome_id="o"),
            OutcomeUpdate("u-1", {"click": False}, outcome_id="o"),
        ):
            with pytest.raises(Conflict):
                await server.learn(NAME, other)
        assert server.store.head(NAME).seq == rows


@played
async def test_what_is_asked_in_vain_changes_nothing(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        before = server.store.head(NAME)
        for asked in (user(age=400.0), user(only=["sale"]), user(height=1.8), user(age="old"), user(age=None)):
            with pytest.raises(InvalidActions):
                await server.decide(NAME, asked)
        with refused(UnknownExperiment, ErrorCode.UNKNOWN_EXPERIMENT):
            await server.decide("male", user())
        assert server.store.head(NAME) == before


@played
async def test_a_batch_answers_each_by_itself(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        made = await server.decide_many(NAME, [user("a"), user("b", age=400.0), user("a"), user("c")])
        assert isinstance(made[1], ErrorResponse)
        assert made[0] == made[2]
        assert server.store.head(NAME).decision_count == 2
        told = await server.learn_many(NAME, [OutcomeUpdate("a", {"click": 1}), OutcomeUpdate("x", {"click": 1})])
        assert isinstance(told[1], ErrorResponse)
        assert (told[1].code, told[1].decision_id) == ("unknown_decision", "x")


@played
async def test_shadow_serves_the_safe_action_and_logs_the_choice(tmp_path: Path) -> None:
    async with serve_problem(tmp_path, mode="shadow") as server:
        await begun(server)
        chosen = set()
        for i in range(60):
            made = await server.decide(NAME, user(f"u-{i}"))
            assert (made.action, made.probabilities["nothing"], made.mode) == ("nothing", 1.0, "shadow")
            row = server.store.find(NAME, "decision", f"u-{i}")
            assert row is not None
            chosen.add(encode_canonical(msgspec.json.decode(row.body)["choice"]["probabilities"]))
        assert len(chosen) > 1


@played
async def test_a_canary_serves_the_policy_to_its_share_alone(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.set_mode(NAME, "canary", 0.25, "ada", "carefully")
        made = [await server.decide(NAME, user(f"u-{i}")) for i in range(200)]
        held_back = [one for one in made if one.reason == "outside_canary"]
        assert 120 < len(held_back) < 180
        assert {one.action for one in held_back} == {"nothing"}


@played
async def test_the_kill_switch_of_one_process_holds_in_another_at_its_next_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewise.server.experiments.REFRESH_INTERVAL", 3600.0)  # it does not even look
    async with serve_problem(tmp_path) as server:
        assert (await server.decide(NAME, user())).mode == "live"
        row = server.store.append([control(NAME, "kill")])[0]  # as another process would
        assert row.status == "new"
        made = await server.decide(NAME, user())
        assert (made.action, made.mode, made.reason) == ("nothing", "killed", "killed")
        killed = server.experiment(NAME).killed
        assert killed is not None
        assert killed.details == {"actor": "bob", "note": "so"}
        server.store.append([control(NAME, "resume")])
        assert (await server.decide(NAME, user())).mode == "live"
        server.store.append([control(GLOBAL, "kill")])
        assert (await server.decide(NAME, user())).mode == "killed"


def control(name: str, what: str) -> AppendRequest:
    return AppendRequest(name, "control", "", encode_canonical({"what": what, "actor": "bob", "reason": "so"}))


@played
async def test_a_store_that_cannot_be_written_gives_the_safe_action_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_problem(tmp_path) as server:

        def fail(requests: object) -> object:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(server.store, "append", fail)
            made = await server.decide(NAME, user("u-1"))
            assert (made.action, made.logged) == ("nothing", False)
            assert made.reason == "log_write_failed"
            with pytest.raises(StoreUnavailable):
                await server.learn(NAME, OutcomeUpdate("u-1", {"click": 1}))
        assert (await server.decide(NAME, user("u-1"))).logged


@played
async def test_deciding_that_fails_gives_the_safe_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_problem(tmp_path) as server:
        monkeypatch.setattr("stagewise.server.decide.choose", lambda *_: 1 / 0)
        made = await server.decide(NAME, user("u-1"))
        assert (made.action, made.logged) == ("nothing", True)
        assert made.reason == "decision_failed"


@played
async def test_another_version_is_learned_from_the_same_log(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        for i in range(40):
            await server.decide(NAME, user(f"u-{i}"))
            await server.learn(NAME, OutcomeUpdate(f"u-{i}", {"click": 1, "opt_out": 0, "complaint": 0}))
        await learned(server)
        more = problem(action_names=["nothing", "offer", "sale"])
        assert await server.new_version(NAME, more.to_dict(), "ada", "a sale") == 2
        made = await server.decide(NAME, user("after"))
        assert (made.version, set(made.probabilities)) == (2, {"nothing", "digest", "offer", "sale"})
        await learned(server)
        fold = server.learner.folds[NAME]
        assert fold.learned.update_count >= 120
        later = [await server.decide(NAME, user(f"w-{i}")) for i in range(60)]
        assert all(one.probabilities["digest"] == 0.0 for one in later)
        with refused(InvalidActions, ErrorCode.ACTION_RETIRED):
            await server.decide(NAME, user(only=["digest"]))
        with refused(InvalidProblem, ErrorCode.CHANGE_NOT_ALLOWED):
            await server.new_version(NAME, problem(delta=0.2).to_dict(), "ada", "more")


@played
async def test_a_server_that_starts_again_knows_what_it_knew(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        for i in range(50):
            await server.decide(NAME, user(f"u-{i}"))
            await server.learn(NAME, OutcomeUpdate(f"u-{i}", {"click": i % 2, "opt_out": 0}))
        await learned(server)
        fold = server.learner.folds[NAME]
        state, first = fold.encode(), await server.decide(NAME, user("dry", dry_run=True))
    for snapshots in (True, False):
        if not snapshots:
            with closing(open_store(str(tmp_path / "server.db"))) as store:
                drop_snapshots(store)
        async with serve_problem(tmp_path) as server:
            await learned(server)
            assert server.learner.folds[NAME].encode() == state
            assert await server.decide(NAME, user("dry", dry_run=True)) == first
            scratch = StateFold(server.experiment(NAME).problem, 1)
            scratch.take(server.store.events(NAME))
            assert scratch.encode() == state


@played
async def test_a_contradiction_stops_exploration_until_a_person_acknowledges_it(tmp_path: Path) -> None:
    async with serve_problem(
        tmp_path, problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, model="rates")})
    ) as server:

        def asked(i: object) -> DecisionRequest:
            return msgspec.structs.replace(user(f"u-{i}"), context={"age": 40.0, "tenure": 0.25})

        for i in range(600):
            made = await server.decide(NAME, asked(i))
            await server.learn(NAME, OutcomeUpdate(f"u-{i}", {"click": 0, "opt_out": int(i % 20 == 0)}))
        await learned(server)
        made = await server.decide(NAME, asked("x"))
        assert made.action == "nothing"
        assert made.reason == "assumption_contradicted"
        with refused(InvalidOutcome, ErrorCode.NO_OPEN_ALERT):
            await server.acknowledge(NAME, "the weather", "ada", "no")
        await server.acknowledge(NAME, "safe cost of opt_out", "ada", "we know")
        await learned(server)
        made = await server.decide(NAME, asked("y"))
        assert made.reason != "assumption_contradicted"


@played
async def test_costs_above_their_limit_trip_the_server_by_itself(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        for i in range(80):
            made = await server.decide(NAME, user(f"u-{i}"))
            if made.mode == "killed":
                break
            await server.learn(NAME, OutcomeUpdate(f"u-{i}", {"click": 0, "opt_out": 1, "complaint": 0}))
        await learned(server)
        await soon(lambda: server.experiment(NAME).killed)
        made = await server.decide(NAME, user("after"))
        assert made.mode == "killed"
        assert made.reason == "tripped"
        await server.resume(NAME, "ada", "the feed was wrong")
        await soon(lambda: server.experiment(NAME).killed is None)
        assert (await server.decide(NAME, user("later"))).mode == "live"


@played
async def test_events_that_are_told_stop_a_server_and_are_seen_before_their_windows_close(tmp_path: Path) -> None:
    """Nothing but opt-outs is told, of one decision in four, and learning waits for seven days."""
    limits = {"opt_out": sw.Limit(0.05, safe_bound=0.01, window="7d", by="country")}
    told = problem(limits=limits, reward=sw.Reward("click", window="1h"))
    async with serve_problem(tmp_path, told) as server:
        for i in range(200):
            await server.decide(NAME, user(f"u-{i}"))
            if i % 4 == 1:
                await server.learn(NAME, OutcomeUpdate(f"u-{i}", {"opt_out": True}))
        await soon(lambda: server.experiment(NAME).killed is not None)
        await learned(server)
        assert server.learner.folds[NAME].learned.update_count == 0
        figures = server.figures(NAME)
        killed = server.experiment(NAME).killed
        assert killed is not None
        assert (killed.details["trip"], killed.details["details"]["limit"]) == ("observed_cost_above_limit", "opt_out")
        limit = figures["limits"]["opt_out"]
        assert (limit["observed_mean"], limit["count"], limit["open"]) == (0.25, 200, 200)
        assert limit["threshold"] < limit["low"]
        finding = next(one for one in figures["health"] if one["name"] == "safe cost of opt_out")
        assert finding["verdict"] == "contradicted"
        assert 'stagewise_observed_cost{experiment="mail",limit="opt_out"} 0.25' in render_metrics(server)
        assert 'stagewise_killed{experiment="mail"} 1.0' in render_metrics(server)
        tests, alerts = server.learner.folds[NAME].circuit_breaker.to_dict(), dict(server.experiment(NAME).alerts)
    async with serve_problem(tmp_path, told) as server:  # another process takes over
        await learned(server)
        assert server.learner.folds[NAME].circuit_breaker.to_dict() == tests
        assert (server.experiment(NAME).alerts, server.experiment(NAME).killed is None) == (alerts, False)
        assert Replay(server.store, NAME).run().first_difference is None


@played
async def test_feedback_that_dries_up_trips_the_server(tmp_path: Path) -> None:
    async with serve_problem(tmp_path, feedback_timeout=0.2) as server:
        await server.decide(NAME, user("u-0"))
        await server.learn(NAME, OutcomeUpdate("u-0", {"click": 0}))
        for _ in range(120):
            await server.decide(NAME, user())
        await soon(lambda: server.experiment(NAME).killed)  # nobody asks for anything meanwhile
        made = await server.decide(NAME, user())
        assert made.reason == "tripped"


@played
async def test_a_decision_explains_itself(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        made = await server.decide(NAME, user("u-1"))
        await server.learn(NAME, OutcomeUpdate("u-1", {"click": 1}))
        told = server.explain(NAME, "u-1")
        assert told["outcome"] == {"click": 1.0}
        assert f"'{made.action}' was served" in told["description"][0]
        assert any("the limit is at most 0.05" in line for line in told["description"])
        with pytest.raises(UnknownDecision):
            server.explain(NAME, "u-2")
        limits = {name: dataclasses.replace(one, value=0.02) for name, one in problem().limits.items()}
        await server.new_version(NAME, problem(limits=limits).to_dict(), "ada", "less")
        assert server.explain(NAME, "u-1")["description"] == told["description"]  # nobody had promised 2 % of it


@played
async def test_the_figures_of_an_experiment_are_those_of_its_log(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await begun(server)
        told = server.figures(NAME)
        assert (told["decisions"], told["mode"], told["killed"], told["version"]) == (30, "live", None, 1)
        assert told["limits"]["opt_out"]["observed_mean"] == 0.0
        assert told["limits"]["opt_out"]["threshold"] == 0.05
        assert {one["verdict"] for one in told["health"]} <= {"fine", "unknown"}
        assert "outcomes" not in {one["name"] for one in told["health"]}
        assert msgspec.json.encode(told)


@played
async def test_what_was_not_shown_has_no_outcome_and_what_has_one_was_shown(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        for id_, first, second in (("a", {"shown": False}, {"click": 1}), ("b", {"click": 1}, {"shown": False})):
            await server.decide(NAME, user(id_))
            await server.learn(NAME, OutcomeUpdate(id_, first))
            with refused(Conflict, ErrorCode.CONFLICT):
                await server.learn(NAME, OutcomeUpdate(id_, second))
        await server.decide(NAME, user("c"))
        with pytest.raises(Conflict):
            await server.learn(NAME, OutcomeUpdate("c", {"shown": False, "click": 1}))
        await server.learn(NAME, OutcomeUpdate("c", {"shown": True, "click": 1}))


@played
async def test_an_id_may_be_as_long_as_the_reference_says(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        id_ = "\U0001f98a" * 256
        assert (await server.decide(NAME, user(id_))).logged
        assert (await server.learn(NAME, OutcomeUpdate(id_, {"click": 1}, id_))).accepted == ["click"]


@played
async def test_an_explanation_says_on_which_side_of_a_limit_the_bound_is(tmp_path: Path) -> None:
    limits = {
        "opt_out": sw.Limit(0.05, safe_bound=0.001, model="rates"),
        "stays": sw.Limit(sw.AtLeast(0.5), safe_bound=0.9, model="rates"),
    }
    async with serve_problem(tmp_path, problem(limits=limits)) as server:
        asked = msgspec.structs.replace(user("a"), context={"age": 40.0, "tenure": 0.25})
        await server.decide(NAME, asked)
        words = " ".join(server.explain(NAME, "a")["description"])
        assert "opt_out: estimated at 0.001, bound at most 0.001; the limit is at most 0.05." in words
        assert ", bound at least 0.9; the limit is at least 0.5." in words
        assert "click: estimated at 0.5." in words


@played
async def test_what_is_known_of_a_silent_log_does_not_grow_old(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.decide(NAME, user("a"))
        await learned(server)
        server.learner.stop()
        server.experiment(NAME).snapshot_time -= 100.0
        assert 'stagewise_snapshot_age_seconds{experiment="mail"} 0.0' in render_metrics(server)
        await server.decide(NAME, user("b"))
        later = server.store.now() + 50_000_000
        server.store.clock = lambda: later  # type: ignore[attr-defined]
        assert 'stagewise_snapshot_age_seconds{experiment="mail"} 5' in render_metrics(server), (
            "since the row that it lacks"
        )


@played
async def test_a_version_that_is_said_in_another_order_is_written_in_the_first_ones(tmp_path: Path) -> None:
    """Limits of earlier rows are found by their place."""
    async with serve_problem(tmp_path) as server:
        plain = problem().to_dict()
        turned = {
            **plain,
            "limits": dict(reversed(plain["limits"].items())),
            "context": {"tenure": [-1, 1], "age": [0, 100]},
        }
        turned["limits"]["complaint"]["at_most"] = 0.03
        assert await server.new_version(NAME, turned, "ada", "less") == 2
        row = msgspec.json.decode(server.store.events_of_kind(NAME, "problem")[-1].body)["problem"]
        assert list(row["limits"]) == list(plain["limits"])
        assert list(row["context"]) == list(plain["context"])
        await learned(server)
        fold = server.learner.folds[NAME]
        assert [limits for _, limits in fold.circuit_breaker.limit_changes] == [[0.05, 0.04], [0.05, 0.03]]


def capped(value: float) -> sw.Problem:
    return problem(
        limits={**problem().limits, "opt_out": sw.Limit(value, safe_bound=0.001, window="7d", model="rates")}
    )


async def goes_back(place: Path | str) -> None:
    """A limit is tightened, loosened and tightened again by the file; nothing is written where nothing changes."""
    for version, value in enumerate((0.02, 0.3, 0.02), 1):
        for _ in range(2):
            async with serve_problem(place, capped(value)) as server:
                ours = server.experiment(NAME)
                assert (ours.version, ours.problem.limits["opt_out"].value) == (version, value)
                made = await server.decide(NAME, user())
                assert made.limits["opt_out"].threshold == value
    async with serve_problem(place, capped(0.02)) as server:
        assert [event.key for event in server.store.events_of_kind(NAME, "problem")] == ["1", "2", "3"]
        with refused(InvalidProblem, ErrorCode.CHANGE_NOT_ALLOWED, "'opt_out' at most 0.3 where it is at most 0.02"):
            await server.open(NAME, capped(0.3), "root", "an old file")
        assert server.experiment(NAME).version == 3
        await server.open(NAME, capped(0.3), "root", "meant", revert=True)
        assert server.experiment(NAME).version == 4
    server = DecisionServer(open_store(str(place / "server.db") if isinstance(place, Path) else place))
    await server.start()
    assert server.experiment(NAME).problem.limits["opt_out"].value == 0.3, "without a file, the newest version"
    await server.stop()


@played
async def test_a_file_that_goes_back_to_an_earlier_limit_is_served(tmp_path: Path) -> None:
    await goes_back(tmp_path)


@played
async def test_a_file_that_goes_back_to_an_earlier_limit_is_served_on_postgres(postgres: str) -> None:
    await goes_back(postgres)


@played
async def test_an_old_file_loosens_nothing(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.new_version(NAME, problem(action_names=["nothing", "offer"]).to_dict(), "ada", "no digests")
        with refused(InvalidProblem, ErrorCode.CHANGE_NOT_ALLOWED, "the action 'digest'"):
            await server.open(NAME, problem(), "root", "started again with the old file")
        assert server.experiment(NAME).version == 2
        await server.open(NAME, problem(action_names=["nothing", "digest", "sale"]), "root", "another file")
        assert server.experiment(NAME).version == 3
        await server.open(
            NAME, problem(action_names=["nothing", "sale", "digest"]), "root", "the same in another order"
        )
        assert server.experiment(NAME).version == 3


@played
async def test_two_servers_with_one_new_file_make_one_version(postgres: str) -> None:
    """Both find the old version, and whoever writes second finds the same in the log."""
    async with serve_problem(postgres) as one, serve_problem(postgres) as two:
        await asyncio.gather(
            *(server.open(NAME, capped(0.03), who, "a file") for server, who in ((one, "ada"), (two, "bob")))
        )
        assert (one.experiment(NAME).version, two.experiment(NAME).version) == (2, 2)
        assert [event.key for event in one.store.events_of_kind(NAME, "problem")] == ["1", "2"]
