"""A log of another policy, learned before the first decision: once, as an agent learns it, and replayable."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.server.logs import problem
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, serve_problem, user

import stagewise as sw
from stagewise.cli.server_startup import build_offline_log, read_log
from stagewise.problem.errors import ErrorCode
from stagewise.records.random_key import RandomKey
from stagewise.server.audit import verify
from stagewise.server.audit.export import export_log
from stagewise.server.audit.log_reader import count_offline_rows
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import CONFLICT, DECISION, DUPLICATE, LOG, NEW, AppendRequest
from stagewise.server.messages import Conflict, OutcomeUpdate
from stagewise.server.offline_log import PART_ROWS, OfflineLog, OfflineLogRequest, build_append_requests
from stagewise.server.state_fold import StateFold
from stagewise.server.store import append_batch
from stagewise.server.store.migrate import open_store
from stagewise.server.web.page.render import render_template

DAY = 86400.0


def frame(rows: int, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Return a log of the test's problem: whole, in no order of time."""
    rng = np.random.default_rng(seed)
    actions = np.array(["nothing", "digest", "offer"])[rng.integers(0, 3, rows)]
    dear = actions != "nothing"
    return {
        "action": actions,
        "age": rng.integers(0, 101, rows).astype(float),
        "tenure": np.round(rng.uniform(-1, 1, rows), 3),
        "country": np.array(["NZ", "PT", "FR"])[rng.integers(0, 3, rows)],
        "click": (rng.random(rows) < 0.1 + 0.2 * dear).astype(float),
        "opt_out": (rng.random(rows) < 0.015 * dear).astype(float),
        "complaint": (rng.random(rows) < 0.01 * dear).astype(float),
        **more,
    }


def offline(told: Any, **words: Any) -> OfflineLog:
    return build_offline_log(problem(), told, {}, **words)


def shuffled(told: dict[str, Any], seed: int = 5) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(len(told["action"]))
    return {name: np.asarray(column)[order] for name, column in told.items()}


def rows_of(server: DecisionServer) -> list[Any]:
    return [(event.kind, event.key, event.body) for event in server.store.events(NAME) if event.kind != "tick"]


def check_same(server: DecisionServer, told: dict[str, Any], played: sw.Problem | None = None) -> None:
    """A server decides by a log as an agent does that learned the same frame, to the bit."""
    agent, known = sw.Agent(played or problem(), seed=1), server.experiment(NAME).policy_snapshot
    agent.learn_log_frame(told)
    assert known.learned.state.memory.tobytes() == agent.state.memory.tobytes()
    dared = 0
    for number in range(20):
        context = {"age": 5.0 * number, "tenure": 0.25, "country": ("NZ", "PT", "elsewhere")[number % 3]}
        ours, theirs = (
            policy.choose(state, known.problem.encode_context(context, None), RandomKey(7, 1, number))
            for policy, state in ((known.policy, known.learned.state), (agent.policy, agent.state))
        )
        assert ours.to_dict() == theirs.to_dict()
        dared += ours.probabilities["nothing"] < 1.0
    assert dared > 5  # the log says enough to do something


@played
async def test_a_server_learns_a_log_as_an_agent_does_to_the_bit(tmp_path: Path) -> None:
    """In several parts, by several models, and after a restart from a snapshot or from the log alone."""
    told = frame(2 * PART_ROWS + 300)
    async with serve_problem(tmp_path) as server:
        loaded = await server.learn_log(NAME, offline(told), "ada", "last month")
        await server.learned(NAME, loaded.row)
        check_same(server, told)
        assert (loaded.rows, loaded.new, [event.kind for event in server.store.events(NAME)].count(LOG)) == (
            2300,
            True,
            3,
        )
    async with serve_problem(tmp_path) as server:
        await learned(server)
        check_same(server, told)
        drop_snapshots(server.store)
    async with serve_problem(tmp_path) as server:
        assert not server.experiment(NAME).policy_snapshot.read or server.experiment(NAME).snapshot > 2
        await learned(server)
        check_same(server, told)


@played
async def test_means_are_held_against_those_of_the_log_as_an_agent_does(tmp_path: Path) -> None:
    """Where means stood is noted at the first decision after a log: what moves later is seen to."""
    told, agent = frame(1200), sw.Agent(problem())
    agent.learn_log_frame(told)
    agent.decide({"age": 40.0, "tenure": 0.25, "country": "NZ"})
    async with serve_problem(tmp_path) as server:
        await server.learned(NAME, (await server.learn_log(NAME, offline(told), "ada", "last month")).row)
        await server.decide(NAME, user("a"))
        await learned(server)
        fold = StateFold(problem(), 1)
        fold.take(server.store.events(NAME))
    tracks, own = fold.learned.statistics.tracks, agent._learned.statistics.tracks
    assert {name: track.to_dict() for name, track in tracks.items()} == {name: own[name].to_dict() for name in own}
    assert all(track.marks for track in tracks.values())


@played
async def test_another_version_of_the_problem_learns_it_too(tmp_path: Path) -> None:
    told, more = frame(1200), problem(action_names=["nothing", "digest", "offer", "sale"])
    async with serve_problem(tmp_path) as server:
        await server.learn_log(NAME, offline(told), "ada", "last month")
        await server.new_version(NAME, more.to_dict(), "ada", "a sale")
        await learned(server)
        assert server.experiment(NAME).version == 2
        check_same(server, told, server.experiment(NAME).problem)


@played
async def test_the_same_rows_count_once_and_others_are_refused(tmp_path: Path) -> None:
    told = frame(1200)
    async with serve_problem(tmp_path) as server:
        await server.learn_log(NAME, offline(told), "ada", "last month")
        before = rows_of(server)
        again = await server.learn_log(NAME, offline(shuffled(told)), "eve", "once more")
        assert (again.new, again.rows) == (False, 1200)
        for other in (frame(1200, 1), frame(2200, 1), {k: v[:900] for k, v in told.items()}):
            with refused(Conflict, ErrorCode.CONFLICT):
                await server.learn_log(NAME, offline(other), "ada", "another")
        assert rows_of(server) == before
        await learned(server)
        check_same(server, told)


@played
async def test_a_log_comes_before_the_first_decision(tmp_path: Path) -> None:
    told = frame(1200)
    async with serve_problem(tmp_path) as server:
        await server.decide(NAME, user("a"))
        before = rows_of(server)
        with refused(Conflict, ErrorCode.CONFLICT):
            await server.learn_log(NAME, offline(told), "ada", "too late")
        assert rows_of(server) == before
    (tmp_path / "other").mkdir()
    async with serve_problem(tmp_path / "other") as server:
        loaded = await server.learn_log(NAME, offline(told), "ada", "in time")
        await server.decide(NAME, user("a"))
        assert (await server.learn_log(NAME, offline(told), "ada", "at the next start")).row == loaded.row


def test_of_two_logs_that_come_at_once_one_is_written_whole(tmp_path: Path) -> None:
    """Whichever is longer: no part of the other comes behind it."""
    one, other = (build_append_requests(NAME, offline(frame(rows, rows)), "a", "b")[1] for rows in (1200, 3300))
    for first, second in ((one, other), (other, one)):
        store = open_store(str(tmp_path / f"{len(first)}.db"))
        verdicts = [settled.status for settled in store.append([*first, *second])]
        assert verdicts == [NEW] * len(first) + [CONFLICT] * len(second)
        assert {settled.status for settled in store.append(first)} == {DUPLICATE}
        assert {settled.status for settled in store.append(second)} == {CONFLICT}
        assert store.head(NAME).seq == len(first)
        store.close()


@played
async def test_decisions_after_a_log_are_made_again_and_the_log_is_whole(tmp_path: Path) -> None:
    told = frame(2300)
    async with serve_problem(tmp_path) as server:
        await server.learned(NAME, (await server.learn_log(NAME, offline(told), "ada", "last month")).row)
        made = [await server.decide(NAME, user(f"u{i}", age=float(i))) for i in range(60)]
        assert sum(one.action != "nothing" for one in made) > 5
        for one in made:
            await server.learn(NAME, OutcomeUpdate(one.decision_id, {"click": 1.0}))
        await learned(server)
    store = open_store(str(tmp_path / "server.db"))
    try:
        assert verify_store(store).faults == []
        again = Replay(store, NAME).run()
        assert (again.decisions, again.matching, again.first_difference) == (60, 60, None)
        kept, events = store.get_latest_snapshot(NAME, 1, with_learner_state=True), store.events(NAME)
        assert kept is not None
        for cut in (2, 5):  # within the log, and after it
            whole, part, rest = (StateFold(problem(), 1) for _ in range(3))
            whole.take(events)
            part.take(events[:cut])
            rest.restore(part.encode())
            rest.take(events[cut:])
            assert rest.encode() == whole.encode()
        assert export_log(store, NAME, tmp_path / "log.parquet") == 60
        assert count_offline_rows(store, NAME) == 2300
    finally:
        store.close()


@pytest.mark.parametrize("change", ["digest", "parts", "columns", "late"])
def test_a_log_that_is_not_what_it_says_is_found(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes to a store can chain whatever he likes; what does not fit together is found."""
    store = open_store(str(tmp_path / "server.db"))
    asks = build_append_requests(NAME, offline(frame(2300)), "ada", "last month")[1]
    body = msgspec.json.decode(asks[1].body)
    if change == "digest":
        body["values"]["click"][7] = 1.0 - body["values"]["click"][7]
    elif change == "columns":
        body["values"]["click"].pop()
    asks[1] = asks[1]._replace(body=msgspec.json.encode(body))
    if change == "late":
        monkeypatch.setattr(append_batch, "is_next_log_part", lambda *_: True)
        monkeypatch.setattr(
            verify.LogVerifier, "_decision", lambda walk, event: walk.answers.update({event.number: {}})
        )
        store.append([AppendRequest(NAME, DECISION, "a", b"{}")])
    store.append(asks[:2] if change == "parts" else asks)
    faults = {found.experiment: found.fault for found in verify_store(store).logs}
    store.close()
    found = faults[NAME]
    assert (faults[""], found and found.code) == (
        None,
        "row_malformed" if change == "columns" else "offline_log_invalid",
    )


@played
async def test_rows_whose_windows_are_open_are_not_learned(tmp_path: Path) -> None:
    """Whatever stands there; where one closed without a word, that counts as declared."""
    told = frame(1000, at=np.arange(1000) * 0.02 * DAY)  # 20 days; the windows are of seven
    late = told["at"] + 7 * DAY > told["at"].max()
    told["opt_out"] = np.where(np.arange(1000) % 2, told["opt_out"], np.nan)
    log = offline(told)
    assert (len(log.actions), log.notes[0].partition(",")[0]) == (
        int((~late).sum()),
        "opt_out: 350 rows are left out",
    )
    filled = {name: column[~late] for name, column in told.items() if name != "at"}
    filled["opt_out"] = np.nan_to_num(filled["opt_out"])
    async with serve_problem(tmp_path) as server:
        await server.learned(NAME, (await server.learn_log(NAME, log, "ada", "last month")).row)
        agent = sw.Agent(problem())
        agent.learn_log_frame(filled)
        assert server.experiment(NAME).policy_snapshot.learned.state.memory.tobytes() == agent.state.memory.tobytes()
    assert len(offline(told, now=float(told["at"].max() + 8 * DAY)).actions) == 1000


@played
async def test_the_doctor_refuses_what_contradicts_and_nothing_is_written(tmp_path: Path) -> None:
    told = frame(3000)
    told["opt_out"] = (np.arange(3000) % 3 == 0).astype(float)  # of everybody: the safe action is not safe
    columns = {name: column.tolist() for name, column in told.items()}
    async with serve_problem(tmp_path, read_log=read_log) as server:
        before = rows_of(server)
        with refused(sw.InvalidOutcome, ErrorCode.LOG_CONTRADICTS_PROBLEM):
            await server.learn_columns(NAME, OfflineLogRequest(columns, "last month"), "ada")
        assert rows_of(server) == before
    async with serve_problem(tmp_path) as server:
        with refused(sw.InvalidOutcome, ErrorCode.UNSUPPORTED):
            await server.learn_columns(NAME, OfflineLogRequest(columns, "last month"), "ada")


@played
async def test_what_could_not_be_learned_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing could be learned after it, ever."""
    async with serve_problem(tmp_path) as server:
        before = rows_of(server)
        for name, value in (("country", "x" * 201), ("age", 101.0), ("click", 2.0), ("action", "sale")):
            told = offline(frame(1200))
            {"action": told.actions, **told.context, **told.values}[name][1100] = value
            with pytest.raises(sw.StagewiseError) as caught:
                await server.learn_log(NAME, told, "ada", "last month")
            assert (caught.value.code, caught.value.details["row"]) == (ErrorCode.INVALID_ROW, 1100)
        monkeypatch.setattr("stagewise.server.offline_log.MAX_LOG_ROWS", 1199)
        for few_or_many in (OfflineLog([], {}, {}), offline(frame(1200))):
            with refused(sw.InvalidOutcome, ErrorCode.OUT_OF_RANGE):
                await server.learn_log(NAME, few_or_many, "ada", "last month")
        assert rows_of(server) == before


@played
async def test_figures_say_how_many_rows_were_learned(tmp_path: Path) -> None:
    async with serve_problem(tmp_path, mode="shadow") as server:
        assert server.figures(NAME)["offline_log_rows"] == 0
        await server.learned(NAME, (await server.learn_log(NAME, offline(frame(1200)), "ada", "last month")).row)
        decided = await server.decide(NAME, user("a"))  # shadow serves what it always does
        told = server.figures(NAME)
    assert (decided.action, decided.mode) == ("nothing", "shadow")
    assert (told["offline_log_rows"], told["decisions"], told["limits"]["opt_out"]["count"]) == (1200, 1, 0)
    page = " ".join(render_template(f"parts/{part}.html", figures=told) for part in ("pending", "changes"))
    assert "1,200 rows of an offline log were learned before the first decision" in page
    assert "log: 1,200 rows" in page
    assert next((one["what"], one.get("rows"), one["actor"]) for one in told["controls"]) == ("log", 1200, "ada")


@played
async def test_several_servers_of_one_store_take_it_once(postgres: str) -> None:
    told = frame(2300)
    async with serve_problem(postgres, alone=False) as one, serve_problem(postgres, alone=False) as other:
        both = await asyncio.gather(
            one.learn_log(NAME, offline(told), "ada", "last month"),
            other.learn_log(NAME, offline(shuffled(told)), "eve", "last month"),
        )
        assert sorted(loaded.new for loaded in both) == [False, True]
        for server in (one, other):
            await server.learned(NAME, both[0].row)
        first = next(loaded for loaded in both if loaded.new)
        check_same(one, told if first is both[0] else shuffled(told))
        assert (
            one.experiment(NAME).policy_snapshot.learned.state.memory.tobytes()
            == other.experiment(NAME).policy_snapshot.learned.state.memory.tobytes()
        )
        await one.decide(NAME, user("a"))
        with pytest.raises(Conflict):
            await other.learn_log(NAME, offline(frame(1200, 1)), "ada", "another")
        assert verify_store(one.store).faults == []
