"""Versions and controls that others write while this process reads: none is missed, and none is read twice."""

import threading
from pathlib import Path
from typing import Any

import msgspec
from tests.server.logs import problem
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, serve_problem, user

import stagewise as sw
from stagewise.server.audit.replay import Replay
from stagewise.server.decide import PolicySnapshot
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    PROBLEM,
    AppendRequest,
    Event,
    StoredSnapshot,
    encode_canonical,
)
from stagewise.server.learner import Learner
from stagewise.server.snapshots import build_initial_snapshot


def version(number: int, value: float) -> AppendRequest:
    """Return a version with another limit, as another process writes it."""
    limits = {
        "opt_out": sw.Limit(value, safe_bound=0.001, window="7d", model="rates"),
        "complaint": problem().limits["complaint"],
    }
    told = {"version": number, "problem": problem(limits=limits).to_dict(), "actor": "eve", "reason": "stricter"}
    return AppendRequest(NAME, PROBLEM, str(number), msgspec.json.encode(told))


def control(**told: Any) -> AppendRequest:
    return AppendRequest(NAME, CONTROL, "", encode_canonical({**told, "actor": "eve", "reason": "so"}))


def meanwhile(server: DecisionServer, does: Any) -> None:
    """Have something happen once, after the rows of versions were read and before those of controls are."""
    read, left = server.store.events_of_kind, [does]

    def of_kind(name: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        rows = read(name, kind, after, limit)
        if kind == PROBLEM and left:
            left.pop()()
        return rows

    server.store.events_of_kind = of_kind  # type: ignore[method-assign]


@played
async def test_a_version_that_comes_between_two_looks_is_played(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        server.learner.stop()
        live = control(what="mode", mode="live", share=1.0)
        meanwhile(server, lambda: server.store.append([version(2, 0.002), live]))
        await server.set_mode(NAME, "live", None, "ada", "so")
        made = await server.decide(NAME, user("a"))
        assert (made.version, made.limits["opt_out"].threshold) == (2, 0.002)


@played
async def test_two_threads_that_read_a_version_count_it_once(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        server.learner.stop()
        server.store.append([version(2, 0.002)])
        other = threading.Thread(target=server.refresh)

        def begin() -> None:
            other.start()
            other.join(0.5)

        meanwhile(server, begin)
        server.refresh()
        other.join()
        assert server.experiment(NAME).version == 2


@played
async def test_what_is_published_of_an_older_version_is_not_decided_by(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        server.learner.stop()
        ours, old = server.experiment(NAME), server.experiment(NAME).current
        server.store.append([version(2, 0.002)])
        other = threading.Thread(target=server.refresh)

        known = build_initial_snapshot(old.problem, old.number, old.retired)

        class Asked(int):
            def __eq__(self, number: object) -> bool:
                same = int(self) == number
                other.start()
                other.join(0.5)
                return same

            __hash__ = int.__hash__

        late: PolicySnapshot = known._replace(version=Asked(1))
        server._publish(NAME, late)
        other.join()
        assert (ours.version, int(ours.policy_snapshot.version)) == (2, 2)


@played
async def test_a_kill_behind_very_many_controls_is_obeyed_after_a_start(tmp_path: Path) -> None:
    live = control(what="mode", mode="live", share=1.0)
    async with serve_problem(tmp_path) as server:
        server.store.append([*[live] * 10_001, control(what="kill")])
    async with serve_problem(tmp_path) as server:
        assert (await server.decide(NAME, user("a"))).mode == "killed"


@played
async def test_until_what_was_learned_is_read_the_safe_action_is_served(tmp_path: Path) -> None:
    """A contradiction that the log holds would be forgotten meanwhile."""
    async with serve_problem(tmp_path) as server:
        for i in range(5):
            assert (await server.decide(NAME, user(f"u-{i}"))).reason != "server_not_ready"
        await learned(server)
    async with serve_problem(tmp_path, learn=False) as server:
        made = await server.decide(NAME, user("v"))
        assert (made.action, made.snapshot) == ("nothing", 0)
        assert made.reason == "server_not_ready"
        follower = Learner(server.store, server._versions, server._publish, server.writer.append_now, alone=False)
        drop_snapshots(server.store)
        follower.follow(NAME, server.experiment(NAME).current)  # nobody has shared a snapshot
        assert (await server.decide(NAME, user("w"))).reason == "server_not_ready"
        follower.learn(NAME, server.experiment(NAME).current)
        assert (await server.decide(NAME, user("x"))).reason != "server_not_ready"
        told = Replay(server.store, NAME).run()
        assert (told.decisions, told.matching) == (8, 8)


@played
async def test_a_learner_of_an_older_version_stops_before_what_it_cannot_know(tmp_path: Path) -> None:
    async with serve_problem(tmp_path, learn=False) as server:
        old = server.experiment(NAME).current
        learner = Learner(server.store, server._versions, server._publish, server.writer.append_now, alone=True)
        await server.decide(NAME, user("a"))
        more = problem(action_names=["nothing", "digest", "offer", "sale"])
        await server.new_version(NAME, more.to_dict(), "ada", "more")
        row = {"action": "sale", "request": {"context": user().context}, "reason": None}
        server.store.append([AppendRequest(NAME, DECISION, "b", encode_canonical(row))])
        learner.learn(NAME, old)
        assert learner.folds[NAME].seq == server.store.head(NAME).seq - 2
        learner.learn(NAME, server.experiment(NAME).current)
        assert learner.folds[NAME].seq == server.experiment(NAME).snapshot == server.store.head(NAME).seq


@played
async def test_a_snapshot_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.decide(NAME, user("a"))
        await learned(server)
        server.learner.stop()
        server.store.save_snapshot(
            StoredSnapshot(NAME, 1, server.store.head(NAME).seq + 1, b"", msgspec.msgpack.encode({"seq": 9}))
        )
    async with serve_problem(tmp_path) as server:
        await learned(server)
        assert server.learner.failed is None
