"""A user is erased: no context of theirs can be read, and seals, the fold and other decisions stay as they were."""

import asyncio
import re
import shlex
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import called
from tests.lacking import needed
from tests.problem.refusal import refused
from tests.server.logs import DAY, problem
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, user
from tests.server.test_retention import Clock, opened

from stagewise.problem.errors import ErrorCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.controls import build_first_version
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.retention import UnknownUser, erase_user, remove_old_rows
from stagewise.server.snapshots import begin_fold
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store
from stagewise.server.user_keys import open_rows

needed("cryptography", "no context was erased")
AGE = 77.125  # of the user who is erased, and of nobody else


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "server.db") if request.param == "sqlite" else request.getfixturevalue("postgres")


async def ask(server: DecisionServer, clock: Clock, id_: str, who: str | None, age: float) -> None:
    request = msgspec.structs.replace(user(id_, age=age), user=who)
    made = await server.decide(NAME, request)
    assert made.logged
    assert await server.decide(NAME, request) == made  # a retry
    await server.learn(NAME, OutcomeUpdate(id_, {"click": 1, "opt_out": 0}))
    clock.time += DAY


def find_traces(store: Store) -> list[str]:
    """Return the tables in which the age of the erased user is."""
    marks = [b"77.125", msgspec.msgpack.encode(AGE)[1:], msgspec.msgpack.encode(AGE)[:0:-1], b"zebra"]
    found = []
    for table in ("events", "snapshots", "checkpoints", "answers", "user_keys", "seal_parts"):
        content = repr(store._all(f"SELECT * FROM {table}")).encode("latin-1", "replace")
        if any(repr(mark)[2:-1].encode() in content for mark in marks):
            found.append(table)
    return found


@played
async def test_a_user_is_erased_and_the_rest_stays_evident(address: str) -> None:
    clock = Clock()
    server = DecisionServer(opened(address, clock))
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    for i in range(6):
        await ask(server, clock, f"early-{i}", None if i % 2 else "bob", 40.0 + i)
    await learned(server)
    for i in range(4):
        await ask(server, clock, f"ann-{i}", "zebra", AGE)
    await ask(server, clock, "bob-1", "bob", 41.0)
    await learned(server)
    await server.stop()

    with closing(opened(address, clock)) as store:
        assert b"77.125" not in b"".join(event.body for event in store.events(NAME))
        assert any(b"77.125" in event.body for event in open_rows(store, store.events(NAME)))
        waiting = erase_user(store, "zebra", "ada", "asked")
        assert waiting.decisions == 4
        assert clock.time < waiting.until < clock.time + 7 * DAY
        with refused(UnknownUser, ErrorCode.UNKNOWN_NAME, "eve"):
            erase_user(store, "eve", "ada", "asked")
    clock.time += 8 * DAY
    server = DecisionServer(opened(address, clock))
    await server.start()
    await ask(server, clock, "ann-again", "zebra", 20.0)  # the same user comes back, under a new key
    for i in range(3):
        await ask(server, clock, f"late-{i}", "bob", 50.0)
    await learned(server)
    await server.stop()

    with closing(opened(address, clock)) as store:
        before = Replay(store, NAME).run()
        assert (before.matching, before.erased, before.missing) == (before.decisions, 0, 0)
        fold = StateFold(problem(), 1)
        fold.take(open_rows(store, store.events(NAME)))
        number = next(event.number for event in store.events(NAME) if event.key == "ann-3")
        secret = float(fold.queue.rows[fold._indices[number] - fold.queue.base, 2])  # the age as it is learned
        assert secret in fold.queue.rows
        assert store._all("SELECT count(*) FROM user_keys") == [(3,)]
    clock.time += 8 * DAY
    page = (Path(__file__).parents[2] / "docs/how-to/erase-a-user.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    said = list[str]()
    with closing(opened(address, clock)) as store:
        assert erase_user(store, "zebra", "ada", "asked").decisions == 0
        assert find_traces(store) == []
        kept = begin_fold(store, NAME, build_first_version(problem()))
        assert kept.seq > 30
        assert secret not in kept.queue.rows
        assert verify_store(store).faults == []
        after = Replay(store, NAME).run()
        assert after.first_difference is None
        assert after.erased == 5
        assert after.matching >= 6  # what was decided before the user came
        assert after.matching + after.erased + after.missing == after.decisions
        age = [msgspec.json.decode(event.body)["request"]["context"] for event in open_rows(store, store.events(NAME))
               if event.key == "bob-1"]  # fmt: skip
        assert age[0]["age"] == 41.0
    for line in commands.replace("server.db", address).replace("messages", NAME).splitlines():
        status, told = called(*shlex.split(line.replace("user-4711", "bob"))[1:])
        assert status == 0, told
        said.append(told)
    assert "are erased" in said[0]
    assert "of users who were erased" in said[2]
    server = DecisionServer(opened(address, clock))
    drop_snapshots(server.store)
    await server.start()
    await ask(server, clock, "after", "cyd", 30.0)
    await learned(server)
    assert server.learner.failed is None
    assert server.learner.folds[NAME].learned.update_count > 10  # what was learned of them stays learned
    await server.stop()
    clock.time += 8 * DAY
    with closing(opened(address, clock)) as store:
        assert verify_store(store).faults == []
        assert remove_old_rows(store, clock.time - 20 * DAY, "ada", "the law") is not None  # before the checkpoint
        assert verify_store(store).faults == []
        assert Replay(store, NAME).run().first_difference is None
    server = DecisionServer(opened(address, clock))
    drop_snapshots(server.store)
    await server.start()
    await learned(server)
    assert server.learner.failed is None
    await server.stop()


@played
async def test_a_server_goes_on_while_a_user_is_erased_and_rows_are_removed(postgres: str) -> None:
    clock = Clock()
    server = DecisionServer(opened(postgres, clock), alone=False)
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    for i in range(6):
        await ask(server, clock, f"first-{i}", "zebra" if i % 2 else None, AGE if i % 2 else 40.0)
        await learned(server)
    clock.time += 30 * DAY
    done, count = asyncio.Event(), 0

    async def go_on() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            request = msgspec.structs.replace(user(f"later-{count}"), user="bob" if count % 2 else None)
            assert (await server.decide(NAME, request)).logged

    asking = asyncio.create_task(go_on())
    with closing(opened(postgres, clock)) as store:
        assert (await asyncio.to_thread(erase_user, store, "zebra", "ada", "asked")).decisions == 0
        assert find_traces(store) == []
        assert await asyncio.to_thread(remove_old_rows, store, clock.time - 20 * DAY, "ada", "the law") is not None
        more = count + 20
        while count < more:
            await asyncio.sleep(0.01)
        done.set()
        await asking
        await learned(server)
        assert server.learner.failed is None
        assert verify_store(store).faults == []
        fold = begin_fold(store, NAME, build_first_version(problem()))
        fold.take(open_rows(store, store.events(NAME, fold.seq, 10**6)))
        assert fold.encode() == server.learner.folds[NAME].encode()
    await server.stop()
