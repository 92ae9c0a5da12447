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
from tests.problem.refusal import refused
from tests.server.audited import lived
from tests.server.logs import problem
from tests.server.server_helpers import NAME, learned, played, serve_problem, user

from stagewise.policies.policy import PolicyState
from stagewise.problem.errors import ErrorCode, Fault
from stagewise.server.access_keys import AccessKeys
from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.replay import Replay, explain_logged_decision
from stagewise.server.audit.verify import verify_store
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import GLOBAL, AppendRequest, StoredSnapshot, encode_canonical
from stagewise.server.experiments import Experiment
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.snapshots import SIGNATURE_BYTES, encode_snapshot
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.store.migrate import open_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(shutil.copy(made, tmp_path / "server.db")))
    yield opened
    opened.close()


def faults(store: Store) -> list[Fault]:
    return verify_store(store).faults


def control(experiment: str, what: str) -> AppendRequest:
    return AppendRequest(experiment, "control", "", encode_canonical({"what": what, "actor": "eve", "reason": "stop"}))


def ghost(store: Store, id_: str = "ghost", **changes: Any) -> None:
    """Add a decision that is chained as it should be: a copy of the last one, by other words."""
    last = max(store.events_of_kind(NAME, "decision"))
    body = encode_canonical(msgspec.json.decode(last.body) | changes)
    assert store.append([AppendRequest(NAME, "decision", id_, body)])[0].status == "new"


@pytest.mark.parametrize("where", [NAME, GLOBAL])
def test_a_decision_after_a_kill_by_what_held_before_it_is_found(store: Store, where: str) -> None:
    assert faults(store) == []
    store.append([control(where, "resume"), control(where, "kill")])
    ghost(store)
    (fault,) = faults(store)
    assert (fault.code, fault.details["key"]) == (FindingCode.NOT_IN_EFFECT, "'ghost'")
    assert fault.details["what"] == ("controls" if where == NAME else "global log")
    told = Replay(store, NAME).run()
    assert (told.matching, told.first_difference) == (told.decisions - 1, fault)


def test_a_decision_before_a_kill_everywhere_is_sound_whatever_the_clock_says(store: Store) -> None:
    """Logs have clocks of their own, so no time tells which row of two logs came first; their numbers do."""
    ghost(store)
    store.append([control(GLOBAL, "kill")])
    store.append([AppendRequest(NAME, "tick", "", b"{}")])
    assert faults(store) == []


@pytest.mark.parametrize(
    ("changes", "what", "found"),
    [({"problem": 1}, "versions", 1), ({"snapshot": 10**6}, "snapshots", 10**6)],
)
def test_a_decision_by_another_version_or_state_is_found(
    store: Store, changes: dict[str, Any], what: str, found: int
) -> None:
    ghost(store, **changes)
    (fault,) = faults(store)
    assert (fault.details["what"], fault.details["found"]) == (what, found)
    assert Replay(store, NAME).run().first_difference == fault


def test_an_old_version_with_a_state_that_it_cannot_have_is_found(store: Store) -> None:
    """Version 1 has no action 'sale', so no state of it comes after a row that has."""
    ghost(store, "sold", action="sale")
    sold = store.head(NAME).seq
    ghost(store, problem=1, snapshot=sold)
    (fault,) = faults(store)
    assert (fault.details["what"], fault.details["found"]) == ("versions", 1)
    assert Replay(store, NAME).run(after=sold).first_difference == fault
    assert "'ghost'" in explain_logged_decision(store, NAME, "ghost")


def test_a_version_that_may_not_follow_is_found(store: Store) -> None:
    wanted = {"version": 3, "problem": problem(delta=0.2).to_dict(), "actor": "eve", "reason": "more"}
    store.append([AppendRequest(NAME, "problem", "3", encode_canonical(wanted))])
    assert faults(store)[0].code is FindingCode.VERSION_INVALID


async def some(server: DecisionServer) -> None:
    """Decide for some users whom nothing ever costs anything."""
    for i in range(40):
        await server.decide(NAME, user(f"u{i}", age=float(i)))
        await server.learn(NAME, OutcomeUpdate(f"u{i}", {"click": False, "opt_out": 0, "complaint": 0}))
    await learned(server)


def planted(folder: Path) -> None:
    """Write into every snapshot that thousands of users were sent offers and all of them were glad."""
    with closing(sqlite3.connect(folder / "server.db")) as connection, connection:
        rows = connection.execute("SELECT seq, content, learner_state FROM snapshots").fetchall()
        assert rows
        for seq, content, learner_state in rows:
            decoded = msgspec.msgpack.decode(learner_state[SIGNATURE_BYTES:])
            fold = StateFold(problem(), 1)
            state = PolicyState(np.frombuffer(decoded["memory"]).copy())
            offered = np.array([[2.0, 1.0, 0.4, 0.25, 0.0]] * 2000)[:, : fold.policy.width]
            state = fold.policy.learn_rows(state, offered, np.array([[1.0, 0.0, 0.0]] * 2000))
            decoded["memory"] = state.memory.tobytes()
            fold.restore(msgspec.msgpack.encode(decoded))
            values = (
                content[:SIGNATURE_BYTES] + encode_snapshot(fold.build_snapshot()),
                learner_state[:SIGNATURE_BYTES] + msgspec.msgpack.encode(decoded),
                seq,
            )
            connection.execute("UPDATE snapshots SET content = ?, learner_state = ? WHERE seq = ?", values)


@played
async def test_a_planted_snapshot_is_found_and_not_served(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await some(server)
    found = []
    for change in (lambda _: None, planted):
        change(tmp_path)
        reader = open_store(str(tmp_path / "server.db"), read_only=True)
        found.append(faults(reader))
        reader.close()
    assert found[0] == []
    assert found[1][0].code is FindingCode.SNAPSHOT_DIFFERS
    async with serve_problem(tmp_path) as server:
        await learned(server)
        assert (await server.decide(NAME, user("after"))).probabilities["offer"] < 1.0
        assert Replay(server.store, NAME).run().first_difference is None


@played
async def test_a_snapshot_of_a_log_that_went_on_otherwise_is_not_used(tmp_path: Path) -> None:
    """The tail is cut, and other rows take its place: what was learned of the old ones is nothing of theirs."""
    async with serve_problem(tmp_path) as server:
        await some(server)
    with closing(sqlite3.connect(tmp_path / "server.db")) as connection, connection:
        connection.execute("DELETE FROM events WHERE experiment = 'mail' AND kind IN ('decision', 'outcome')")
        kept = connection.execute("SELECT max(number) FROM events").fetchone()
        connection.execute("DELETE FROM seals WHERE high > ?", kept)
        connection.execute("DELETE FROM seal_parts WHERE seal > (SELECT max(seal) FROM seals)")
        connection.execute("DELETE FROM answers")
    async with serve_problem(tmp_path) as server:
        for i in range(5):
            await server.decide(NAME, user(f"new{i}"))
        await learned(server)
        whole = StateFold(problem(), 1)
        whole.take(server.store.events(NAME))
        assert server.learner.folds[NAME].encode() == whole.encode()


@played
async def test_a_follower_takes_no_planted_snapshot(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    """A server that does not lead serves what the leader published, and nobody else."""
    async with serve_problem(postgres, alone=False) as leader, serve_problem(postgres, alone=False) as follower:
        await some(leader)
        assert (leader.learner.is_leader, follower.learner.is_leader) == (True, False)
        seq = leader.store.head(NAME).seq
        fold = StateFold(problem(), 1)
        fold.take(leader.store.events(NAME))
        fold.seq = seq + 5
        follower.learner.stop()
        known = follower.experiment(NAME).policy_snapshot
        follower.store.save_snapshot(
            StoredSnapshot(NAME, 1, seq + 5, bytes(32) + encode_snapshot(fold.build_snapshot()))
        )
        follower.learner.follow(NAME, follower.experiment(NAME).current)
        assert follower.experiment(NAME).policy_snapshot is known
        assert "cannot be used" in caplog.text


def test_a_secret_that_was_changed_is_not_used(store: Store) -> None:
    """Whoever knows the key of the draws can choose ids by what they draw."""
    store._change(("UPDATE secrets SET content = ? WHERE name = ?", (bytes(32), f"draws of {NAME}")))
    with refused(StoreUnavailable, ErrorCode.DIGEST_MISMATCH):
        Replay(store, NAME)
    (fault,) = faults(store)
    assert (fault.code, fault.details["name"]) == (FindingCode.SECRET_DIFFERS, "'draws of mail'")


def test_keys_are_rows_of_the_log(store: Store) -> None:
    """A role that was changed is a row that is not what was written; and there is no key but by a row."""
    keys = AccessKeys(store)
    _, _, viewer = keys.create_initial_keys()
    assert faults(store) == []
    change = "UPDATE events SET body = ? WHERE experiment = '' AND key = 'key viewer'"
    row = store.find(GLOBAL, "control", "key viewer")
    assert row is not None
    store._change((change, (row.body.replace(b'"reader"', b'"admin"'),)))
    assert any(fault.details.get("key") == "'key viewer'" for fault in faults(store))
    holder = AccessKeys(open_store(str(store.path), read_only=True)).holder(viewer)  # type: ignore[attr-defined]
    assert holder is not None, "it is found, not prevented"


@played
async def test_no_row_has_the_controls_of_a_version_and_the_limits_of_the_one_before(tmp_path: Path) -> None:
    """A version begins between the two moments at which a decision asks what is known and who may decide."""
    async with serve_problem(tmp_path) as server:
        ours, other = server.experiment(NAME), problem(action_names=["nothing", "offer"])
        before = ours.policy_snapshot

        class Moving(Experiment):
            def __init__(self) -> None:
                self.__dict__.update(ours.__dict__)

            @property
            def policy_snapshot(self) -> Any:
                if not self.__dict__.pop("moving", False):
                    return self.__dict__["now"]
                asks = [
                    AppendRequest(NAME, "problem", "2", encode_canonical({"version": 2, "problem": other.to_dict()}))
                ]
                server.store.append(asks)
                server.refresh()
                return before

            @policy_snapshot.setter
            def policy_snapshot(self, value: Any) -> None:
                self.__dict__["now"] = value

        moving = Moving()
        moving.policy_snapshot, moving.__dict__["moving"] = before, True
        server._experiments[NAME] = moving
        told = await server.decide(NAME, user("between"))
        assert told.version == 2
        assert faults(server.store) == []
