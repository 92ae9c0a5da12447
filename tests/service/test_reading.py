"""Versions and controls that others write while this process reads: none is missed, and none is read twice."""

import threading
from pathlib import Path
from typing import Any

import msgspec
from tests.service.desks import NAME, desk_on, drop_snapshots, learned, played, user
from tests.service.logs import problem

import stagewise as sw
from stagewise.service.audit.replaying import Replay
from stagewise.service.deciding import Known
from stagewise.service.desk import Desk
from stagewise.service.fold import beginning
from stagewise.service.learner import Learner
from stagewise.service.records import CONTROL, DECISION, PROBLEM, Ask, Event, Kept, canonical


def version(number: int, value: float) -> Ask:
    """Return a version with another limit, as another process writes it."""
    limits = {"opt_out": sw.Limit(value, safe=0.001, window="7d"), "complaint": problem().limits["complaint"]}
    told = {"version": number, "problem": problem(limits=limits).plain(), "actor": "eve", "reason": "stricter"}
    return Ask(NAME, PROBLEM, str(number), msgspec.json.encode(told))


def control(**told: Any) -> Ask:
    return Ask(NAME, CONTROL, "", canonical({**told, "actor": "eve", "reason": "so"}))


def meanwhile(desk: Desk, does: Any) -> None:
    """Have something happen once, after the rows of versions were read and before those of controls are."""
    read, left = desk.store.of_kind, [does]

    def of_kind(name: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        rows = read(name, kind, after, limit)
        if kind == PROBLEM and left:
            left.pop()()
        return rows

    desk.store.of_kind = of_kind  # type: ignore[method-assign]


@played
async def test_a_version_that_comes_between_two_looks_is_played(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        desk.learner.stop()
        live = control(what="mode", mode="live", share=1.0)
        meanwhile(desk, lambda: desk.store.append([version(2, 0.002), live]))
        await desk.set_mode(NAME, "live", None, "ada", "so")
        made = await desk.decide(NAME, user("a"))
        assert (made.version, made.limits["opt_out"].threshold) == (2, 0.002)


@played
async def test_two_threads_that_read_a_version_count_it_once(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        desk.learner.stop()
        desk.store.append([version(2, 0.002)])
        other = threading.Thread(target=desk.refresh)

        def begin() -> None:
            other.start()
            other.join(0.5)

        meanwhile(desk, begin)
        desk.refresh()
        other.join()
        assert desk.experiment(NAME).version == 2


@played
async def test_what_is_published_of_an_older_version_is_not_decided_by(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        desk.learner.stop()
        ours, old = desk.experiment(NAME), desk.experiment(NAME).current
        desk.store.append([version(2, 0.002)])
        other = threading.Thread(target=desk.refresh)

        known = beginning(old.problem, old.number, old.retired)

        class Asked(int):
            def __eq__(self, number: object) -> bool:
                same = int(self) == number
                other.start()
                other.join(0.5)
                return same

            __hash__ = int.__hash__

        late: Known = known._replace(version=Asked(1))
        desk._publish(NAME, late)
        other.join()
        assert (ours.version, int(ours.known.version)) == (2, 2)


@played
async def test_a_kill_behind_very_many_controls_is_obeyed_after_a_start(tmp_path: Path) -> None:
    live = control(what="mode", mode="live", share=1.0)
    async with desk_on(tmp_path) as desk:
        desk.store.append([*[live] * 10_001, control(what="kill")])
    async with desk_on(tmp_path) as desk:
        assert (await desk.decide(NAME, user("a"))).mode == "killed"


@played
async def test_until_what_was_learned_is_read_the_safe_action_is_served(tmp_path: Path) -> None:
    """A contradiction that the log holds would be forgotten meanwhile."""
    async with desk_on(tmp_path) as desk:
        for i in range(5):
            assert (await desk.decide(NAME, user(f"u-{i}"))).reason != "not_read"
        await learned(desk)
    async with desk_on(tmp_path, learn=False) as desk:
        made = await desk.decide(NAME, user("v"))
        assert (made.action, made.state) == ("nothing", 0)
        assert made.reason == "not_read"
        follower = Learner(desk.store, desk._versions, desk._publish, desk.writer.append_now, alone=False)
        drop_snapshots(desk.store)
        follower.follow(NAME, desk.experiment(NAME).current)  # nobody has shared a snapshot
        assert (await desk.decide(NAME, user("w"))).reason == "not_read"
        follower.learn(NAME, desk.experiment(NAME).current)
        assert (await desk.decide(NAME, user("x"))).reason != "not_read"
        told = Replay(desk.store, NAME).run()
        assert (told.decisions, told.agree) == (8, 8)


@played
async def test_a_learner_of_an_older_version_stops_before_what_it_cannot_know(tmp_path: Path) -> None:
    async with desk_on(tmp_path, learn=False) as desk:
        old = desk.experiment(NAME).current
        learner = Learner(desk.store, desk._versions, desk._publish, desk.writer.append_now, alone=True)
        await desk.decide(NAME, user("a"))
        more = problem(actions=["nothing", "digest", "offer", "sale"])
        await desk.new_version(NAME, more.plain(), "ada", "more")
        row = {"action": "sale", "asked": {"context": user().context}, "reason": None}
        desk.store.append([Ask(NAME, DECISION, "b", canonical(row))])
        learner.learn(NAME, old)
        assert learner.folds[NAME].seq == desk.store.head(NAME).seq - 2
        learner.learn(NAME, desk.experiment(NAME).current)
        assert learner.folds[NAME].seq == desk.experiment(NAME).state == desk.store.head(NAME).seq


@played
async def test_a_snapshot_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.decide(NAME, user("a"))
        await learned(desk)
        desk.learner.stop()
        desk.store.keep(Kept(NAME, 1, desk.store.head(NAME).seq + 1, b"", msgspec.msgpack.encode({"seq": 9})))
    async with desk_on(tmp_path) as desk:
        await learned(desk)
        assert desk.learner.failed is None
