"""Rows that are removed by age: seals, the fold and later decisions stay (docs/how-to/remove-old-rows.md)."""

import re
import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.commands import called
from tests.problem.refusal import refused
from tests.server.logs import DAY, problem
from tests.server.server_helpers import NAME, drop_snapshots, learned, played, soon, user

from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.server import retention
from stagewise.server.audit.export import encode_parquet
from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import Receipt, verify_store
from stagewise.server.controls import build_first_version
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import CONTROL, GLOBAL
from stagewise.server.learner import TICK_INTERVAL
from stagewise.server.messages import OutcomeUpdate, UnknownDecision
from stagewise.server.retention import remove_old_rows
from stagewise.server.snapshots import begin_fold
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable, wall_clock
from stagewise.server.web.metrics import render_metrics


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = wall_clock() - 500 * DAY

    def __call__(self) -> int:
        return self.time


def opened(address: str, clock: Clock) -> Store:
    if "://" in address:
        from stagewise.server.store.postgres import PostgresStore

        return PostgresStore(address, clock=clock)
    from stagewise.server.store.sqlite import SqliteStore

    return SqliteStore(Path(address), clock=clock)


async def month(server: DecisionServer, clock: Clock, name: str, count: int = 30) -> list[Any]:
    """Decide for some users over a month, most with outcomes."""
    made = []
    for i in range(count):
        made.append(await server.decide(NAME, user(f"{name}-{i}", age=float(i % 100), country="NZ" if i % 2 else "FR")))
        if i % 5:
            await server.learn(NAME, OutcomeUpdate(f"{name}-{i}", {"click": i % 3 == 0, "opt_out": 0, "complaint": 0}))
        clock.time += DAY
        if i % 4 == 0:
            await learned(server)  # so that there is a seal
    await learned(server)
    return made


async def ticked(server: DecisionServer, clock: Clock) -> None:
    """Wait until the tick that is due is learned: while the clock stands, no other row comes by itself."""

    def is_over() -> bool:
        fold = server.learner.folds[NAME]
        closes = fold.queue.next_closing()
        return closes is None or closes > clock.time or clock.time - fold.at < TICK_INTERVAL

    await soon(is_over)


def state(store: Store, version: int = 1) -> bytes:
    fold = StateFold(problem(), version)
    fold.take(store.events(NAME, limit=10**7))
    return fold.encode()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "server.db") if request.param == "sqlite" else request.getfixturevalue("postgres")


@played
async def test_old_rows_leave_and_the_rest_stays_evident(address: str) -> None:
    clock = Clock()
    server = DecisionServer(opened(address, clock))
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    (first, *_) = await month(server, clock, "old")
    await server.kill(NAME, "ada", "complaints doubled")
    await server.resume(NAME, "bob", "it was a rumour")
    receipt = Receipt.of(str(verify_store(server.store).receipt))
    await month(server, clock, "new")
    await ticked(server, clock)
    await server.stop()

    with closing(opened(address, clock)) as store:
        whole, head, rows = state(store), store.head(NAME), store.count_rows(2**62)
        removal = remove_old_rows(store, clock.time - 25 * DAY, "ada", "the law")
        assert removal is not None
        assert removal.seal > receipt.number
        assert store.find(NAME, "decision", "old-0") is None
        assert store.count_rows(2**62) < 0.6 * rows
        assert store.events(NAME)[0].seq == removal.ends[NAME].seq + 1
        assert store.head(NAME) == head
        verified = verify_store(store, [receipt])
        assert verified.faults == []
        assert verified.removed == removal.seal
        removed_row = verify_store(store, [Receipt.of(first.receipt)]).faults
        assert [fault.code for fault in removed_row] == [FindingCode.RECEIPT_REMOVED]
        replayed = Replay(store, NAME).run()
        assert replayed.first_difference is None
        assert replayed.matching + replayed.missing == replayed.decisions
        assert replayed.matching >= 20
        assert encode_parquet(store, NAME)[1] == replayed.decisions
        assert remove_old_rows(store, clock.time - 25 * DAY, "ada", "again") is None

    server = DecisionServer(opened(address, clock))
    drop_snapshots(server.store)
    await server.start()
    await learned(server)
    assert server.learner.folds[NAME].encode() == whole  # to the bit, from the checkpoint
    figures = server.figures(NAME)
    assert figures["version"] == 1
    assert [one["what"] for one in figures["controls"]].count("kill") == 1
    with pytest.raises(UnknownDecision):
        await server.learn(NAME, OutcomeUpdate("old-1", {"click": 1}))
    again = await server.learn(NAME, OutcomeUpdate("new-10", {"click": 1}, outcome_id="o"))
    assert again.accepted == ["click"]
    await server.new_version(NAME, problem(action_names=["nothing", "offer", "sale"]).to_dict(), "ada", "a sale")
    await learned(server)
    fold = server.learner.folds[NAME]
    assert fold.version == 2
    assert fold.learned.update_count > 20
    await month(server, clock, "sale", 10)
    await server.stop()
    with closing(opened(address, clock)) as store:
        assert verify_store(store).faults == []
        replayed = Replay(store, NAME).run()
        assert replayed.first_difference is None
        assert replayed.matching >= 30
        assert remove_old_rows(store, clock.time - 9 * DAY, "ada", "the law") is not None
        assert verify_store(store).faults == []
        assert Replay(store, NAME).run().first_difference is None


@played
async def test_what_a_removal_left_cannot_be_changed(address: str) -> None:
    clock = Clock()
    server = DecisionServer(opened(address, clock))
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    await month(server, clock, "old")
    await server.stop()
    with closing(opened(address, clock)) as store, refused(InvalidOutcome, ErrorCode.OUT_OF_RANGE, NAME, "7d"):
        remove_old_rows(store, clock.time - 6 * DAY, "ada", "too early")
    page = (Path(__file__).parents[2] / "docs/how-to/remove-old-rows.md").read_text(encoding="utf-8")
    ((commands, *_), said) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL), list[str]()
    for line in commands.replace("server.db", address).replace("messages", NAME).splitlines():
        status, told = called(*shlex.split(line)[1:])
        assert status == 0, told
        said.append(told)
    assert "are removed" in said[0]
    assert "were removed" in said[1]
    with closing(opened(address, clock)) as store:
        assert store.find(NAME, "decision", "old-0") is None
        assert store.head(NAME).decision_count == 30
        for code, statement in (
            (FindingCode.KEPT_ROWS_DIFFER, "UPDATE events SET at = at + 1 WHERE kind = 'problem'"),
            (FindingCode.CHECKPOINT_DIFFERS, "UPDATE checkpoints SET content = seals.root FROM seals WHERE seal = 1"),
        ):
            assert verify_store(store).faults == []
            kept = store._all("SELECT experiment, number, content FROM checkpoints")
            store._change((statement, ()))
            assert [fault.code for fault in verify_store(store).faults] == [code]
            if code is FindingCode.KEPT_ROWS_DIFFER:
                store._change(("UPDATE events SET at = at - 1 WHERE kind = 'problem'", ()))
            else:
                with refused(StoreUnavailable, ErrorCode.DIGEST_MISMATCH):
                    begin_fold(store, NAME, build_first_version(problem()))
                for row in kept:
                    store._change(("UPDATE checkpoints SET content = ? WHERE experiment = ?", (row[2], row[0])))


@played
async def test_a_server_removes_old_rows_by_itself(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHECK_INTERVAL", 0.02)
    monkeypatch.setattr(retention, "SERVING_NUMBERS", 3)
    clock = Clock()
    server = DecisionServer(opened(address, clock), retention=40 * 86_400.0)
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    assert server.retention is not None
    server.retention.check()
    await month(server, clock, "old")
    assert server.store.find(NAME, "decision", "old-0") is not None  # nothing is 41 days old yet
    assert "stagewise_retention_failed 0.0" in render_metrics(server)
    with server.store.maintaining():  # somebody else removes rows
        clock.time += 25 * DAY
        await soon(lambda: server.retention is not None and server.retention.failed)
        assert "stagewise_retention_failed 1.0" in render_metrics(server)
    await soon(lambda: server.store.find(NAME, "decision", "old-0") is None)
    await month(server, clock, "new", 10)
    get_oldest = server.retention.get_oldest
    await soon(lambda: (get_oldest() or 0.0) * 1e6 > clock.time - 47 * DAY)  # a seal has rows of some days
    assert not server.retention.failed
    oldest = get_oldest()
    assert f"stagewise_oldest_row_timestamp_seconds {oldest!r}" in render_metrics(server)
    await server.stop()
    with closing(opened(address, clock)) as store:
        bodies = [msgspec.json.decode(event.body) for event in store.iter_events_of_kind(GLOBAL, CONTROL)]
        removals = [body for body in bodies if body["what"] == retention.RETENTION]
        assert {body["actor"] for body in removals} == {"the server"}
        assert {body["reason"] for body in removals} == {"--retention of 40 days"}
        assert verify_store(store).faults == []
        assert Replay(store, NAME).run().first_difference is None


@played
async def test_a_clock_that_was_set_forward_removes_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHECK_INTERVAL", 0.02)
    clock = Clock()
    for attempt in range(2):  # after the first start there are rows by the wrong clock
        server = DecisionServer(opened(address, clock), retention=40 * 86_400.0)
        await server.start()
        await server.open(NAME, problem(), "ada", "a test")
        await month(server, clock, f"new {attempt}", 3)
        clock.time += 400 * DAY
        await server.decide(NAME, user(f"later {attempt}"))
        await soon(lambda server=server: server.retention.failed)
        assert server.store.find(NAME, "decision", "new 0-0") is not None
        await server.stop()
        assert server.retention is not None
        assert "--retention" in str(server.retention.failed)
        clock.time += DAY
    with closing(opened(address, clock)) as store:
        assert remove_old_rows(store, clock.time - 40 * DAY, "ada", "it was off") is not None
        assert verify_store(store).faults == []


@played
async def test_a_server_refuses_an_age_within_a_window(address: str) -> None:
    server = DecisionServer(opened(address, Clock()), retention=6 * 86_400.0)
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    assert server.retention is not None
    with refused(InvalidOutcome, ErrorCode.OUT_OF_RANGE, NAME, "7d"):
        server.retention.check()
    await server.stop()


@played
async def test_of_two_removals_one_goes_on(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    server = DecisionServer(opened(address, clock))
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    await month(server, clock, "old")
    await server.stop()
    with closing(opened(address, clock)) as store:
        other = opened(address, clock) if "://" in address else store
        build = retention.build_checkpoint

        def meanwhile(*about: Any) -> Any:
            """Let another removal begin, of fewer rows: its checkpoint would come after ours."""
            with refused(StoreUnavailable, ErrorCode.STORE_BUSY):
                remove_old_rows(other, clock.time - 20 * DAY, "bob", "the law")
            return build(*about)

        monkeypatch.setattr(retention, "build_checkpoint", meanwhile)
        assert remove_old_rows(store, clock.time - 10 * DAY, "ada", "the law") is not None
        monkeypatch.setattr(retention, "build_checkpoint", build)
        assert verify_store(store).faults == []
        assert remove_old_rows(other, clock.time - 8 * DAY, "bob", "the law") is not None
        assert verify_store(store).faults == []
        if other is not store:
            other.close()


@played
async def test_who_lost_the_lock_of_a_removal_removes_nothing(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    server = DecisionServer(opened(postgres, clock))
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    await month(server, clock, "old")
    await server.stop()
    with closing(opened(postgres, clock)) as store:
        rows, build = store.count_rows(2**62), retention.build_checkpoint

        def killed(*about: Any) -> Any:
            store._all(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7304 AND "
                "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return build(*about)

        monkeypatch.setattr(retention, "build_checkpoint", killed)
        with pytest.raises(StoreUnavailable):
            remove_old_rows(store, clock.time - 10 * DAY, "ada", "the law")
        assert store.checkpoint(NAME) is None
        assert store.count_rows(2**62) == rows + 1  # the digests, of checkpoints that nobody has
        assert verify_store(store).faults == []
        monkeypatch.setattr(retention, "build_checkpoint", build)
        assert remove_old_rows(store, clock.time - 10 * DAY, "ada", "again") is not None
        assert verify_store(store).faults == []
