"""What somebody can do who writes to the store, and that it is found, or not served."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.service.audited import lived
from tests.service.desks import NAME, desk_on, learned, played, user
from tests.service.logs import problem

from stagewise.policies.policy import State
from stagewise.service.audit.replaying import Replay
from stagewise.service.audit.verifying import verify
from stagewise.service.desk import Desk
from stagewise.service.experiment import Experiment
from stagewise.service.fold import Fold, encoded_known
from stagewise.service.keys import Keys
from stagewise.service.messages import Outcome
from stagewise.service.records import EVERYWHERE, Ask, Kept, canonical
from stagewise.service.snapshots import SEAL
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import Store, StoreDown


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(shutil.copy(made, tmp_path / "desk.db")))
    yield opened
    opened.close()


def faults(store: Store) -> list[str]:
    return [one.fault for one in verify(store) if one.fault is not None]


def control(experiment: str, what: str) -> Ask:
    return Ask(experiment, "control", "", canonical({"what": what, "actor": "eve", "reason": "stop"}))


def ghost(store: Store, **changes: Any) -> None:
    """Add a decision that is chained as it should be: a copy of the last one, by other words."""
    last = max(store.of_kind(NAME, "decision"))
    body = canonical(msgspec.json.decode(last.body) | changes)
    assert store.append([Ask(NAME, "decision", "ghost", body)])[0].verdict == "new"


@pytest.mark.parametrize("where", [NAME, EVERYWHERE])
def test_a_decision_after_a_kill_by_what_held_before_it_is_found(store: Store, where: str) -> None:
    assert faults(store) == []
    store.append([control(where, "revive"), control(where, "kill")])
    ghost(store)
    held = "the controls of row" if where == NAME else "of what holds everywhere"
    (fault,) = faults(store)
    assert "decision 'ghost'" in fault
    assert held in fault
    told = Replay(store, NAME).run()
    assert (told.agree, told.first is not None and held in told.first) == (told.decisions - 1, True)


def test_a_decision_before_a_kill_everywhere_is_sound_whatever_the_clock_says(store: Store) -> None:
    """Logs have clocks of their own, so no time tells which row of two logs came first; the rows themselves do."""
    ghost(store)
    store.append([control(EVERYWHERE, "kill")])
    store.append([Ask(NAME, "tick", "", b"{}", at=10**17)])
    assert faults(store) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"problem": 1}, "by version 1, and version 2 held"), ({"state": 10**6}, "its state is of row 1000000")],
)
def test_a_decision_by_another_version_or_state_is_found(store: Store, changes: dict[str, Any], words: str) -> None:
    ghost(store, **changes)
    assert words in faults(store)[0]
    assert Replay(store, NAME).run().first is not None


def test_a_version_that_may_not_follow_is_found(store: Store) -> None:
    wanted = {"version": 3, "problem": problem(delta=0.2).plain(), "actor": "eve", "reason": "more"}
    store.append([Ask(NAME, "problem", "3", canonical(wanted))])
    assert "delta cannot change" in faults(store)[0]


async def some(desk: Desk) -> None:
    """Decide for some users whom nothing ever costs anything."""
    for i in range(40):
        await desk.decide(NAME, user(f"u{i}", age=float(i)))
        await desk.learn(NAME, Outcome(f"u{i}", {"click": False, "opt_out": 0, "complaint": 0}))
    await learned(desk)


def planted(place: Path) -> None:
    """Write into every snapshot that thousands of users were sent offers and all of them were glad."""
    with closing(sqlite3.connect(place / "desk.db")) as connection, connection:
        rows = connection.execute("SELECT seq, content, whole FROM snapshots").fetchall()
        assert rows
        for seq, content, whole in rows:
            told = msgspec.msgpack.decode(whole[SEAL:])
            fold = Fold(problem(), 1)
            state = State(np.frombuffer(told["memory"]).copy())
            offered = np.array([[2.0, 1.0, 0.4, 0.25, 0.0]] * 2000)[:, : fold.policy.width]
            state = fold.policy.learn_rows(state, offered, np.array([[1.0, 0.0, 0.0]] * 2000))
            told["memory"] = state.memory.tobytes()
            fold.restore(msgspec.msgpack.encode(told))
            values = content[:SEAL] + encoded_known(fold.known()), whole[:SEAL] + msgspec.msgpack.encode(told), seq
            connection.execute("UPDATE snapshots SET content = ?, whole = ? WHERE seq = ?", values)


@played
async def test_a_planted_snapshot_is_found_and_not_served(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await some(desk)
    found = []
    for change in (lambda _: None, planted):
        change(tmp_path)
        reader = open_store(str(tmp_path / "desk.db"), read_only=True)
        found.append(faults(reader))
        reader.close()
    assert found[0] == []
    assert "is not what the log comes to" in found[1][0]
    async with desk_on(tmp_path) as desk:
        await learned(desk)
        assert (await desk.decide(NAME, user("after"))).probabilities["offer"] < 1.0
        assert Replay(desk.store, NAME).run().first is None


@played
async def test_a_snapshot_of_a_log_that_went_on_otherwise_is_not_used(tmp_path: Path) -> None:
    """The tail is cut, and other rows take its place: what was learned of the old ones is nothing of theirs."""
    async with desk_on(tmp_path) as desk:
        await some(desk)
    with closing(sqlite3.connect(tmp_path / "desk.db")) as connection, connection:
        row = connection.execute("SELECT seq, at, chain FROM events WHERE experiment = 'mail' AND seq = 2").fetchone()
        connection.execute("DELETE FROM events WHERE experiment = 'mail' AND seq > 2")
        connection.execute("DELETE FROM answers")
        change = "UPDATE heads SET seq = ?, at = ?, chain = ?, places = 0, control = 2 WHERE experiment = 'mail'"
        connection.execute(change, row)
    async with desk_on(tmp_path) as desk:
        for i in range(5):
            await desk.decide(NAME, user(f"new{i}"))
        await learned(desk)
        whole = Fold(problem(), 1)
        whole.take(desk.store.events(NAME))
        assert desk.learner.folds[NAME].whole() == whole.whole()


@played
async def test_a_follower_takes_no_planted_snapshot(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    """A desk that does not lead serves what the leader published, and nobody else."""
    async with desk_on(postgres, alone=False) as leader, desk_on(postgres, alone=False) as follower:
        await some(leader)
        assert (leader.learner.leads, follower.learner.leads) == (True, False)
        seq = leader.store.head(NAME).seq
        fold = Fold(problem(), 1)
        fold.take(leader.store.events(NAME))
        fold.seq = seq + 5
        follower.learner.stop()
        known = follower.experiment(NAME).known
        follower.store.keep(Kept(NAME, 1, seq + 5, bytes(32) + encoded_known(fold.known())))
        follower.learner.follow(NAME, follower.experiment(NAME).current)
        assert follower.experiment(NAME).known is known
        assert "cannot be used" in caplog.text


def test_a_secret_that_was_changed_is_not_used(store: Store) -> None:
    """Whoever knows the key of the draws can choose ids by what they draw."""
    store._change(("UPDATE secrets SET content = ? WHERE name = ?", (bytes(32), f"draws of {NAME}")))
    with pytest.raises(StoreDown, match="is not the one whose digest is in the log"):
        Replay(store, NAME)
    assert "'draws of mail' is another one" in faults(store)[0]


def test_keys_are_rows_of_the_log(store: Store) -> None:
    """A role that was changed is a row that is not what was written; and there is no key but by a row."""
    keys = Keys(store)
    _, _, viewer = keys.first()
    assert faults(store) == []
    change = "UPDATE events SET body = ? WHERE experiment = '' AND key = 'key viewer'"
    row = store.find(EVERYWHERE, "control", "key viewer")
    assert row is not None
    store._change((change, (row.body.replace(b'"reader"', b'"admin"'),)))
    assert any("key viewer" in fault for fault in faults(store))
    holder = Keys(open_store(str(store.path), read_only=True)).holder(viewer)  # type: ignore[attr-defined]
    assert holder is not None, "it is found, not prevented"


@played
async def test_no_row_has_the_controls_of_a_version_and_the_limits_of_the_one_before(tmp_path: Path) -> None:
    """A version begins between the two moments at which a decision asks what is known and who may decide."""
    async with desk_on(tmp_path) as desk:
        ours, other = desk.experiment(NAME), problem(actions=["nothing", "offer"])
        plain = ours.known

        class Moving(Experiment):
            def __init__(self) -> None:
                self.__dict__.update(ours.__dict__)

            @property
            def known(self) -> Any:
                if not self.__dict__.pop("moving", False):
                    return self.__dict__["now"]
                asks = [Ask(NAME, "problem", "2", canonical({"version": 2, "problem": other.plain()}))]
                desk.store.append(asks)
                desk.refresh()
                return plain

            @known.setter
            def known(self, value: Any) -> None:
                self.__dict__["now"] = value

        moving = Moving()
        moving.known, moving.__dict__["moving"] = plain, True
        desk._experiments[NAME] = moving
        told = await desk.decide(NAME, user("between"))
        assert told.version == 2
        assert faults(desk.store) == []
