"""Schedules on a real PostgreSQL: servers and the store as they are, statement by statement in the order of a seed.

Each process is a thread that decides, reports, stops, resumes and learns, one after the other. Before each statement
another one may go on, its backend may be killed, or the process may die; the answer of a COMMIT may be lost.

    python -m tests.server.simulated.postgres 1 20 [--plant locks]
"""

import argparse
import asyncio
import hashlib
import logging
import os
import random
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from unittest.mock import patch

import psycopg
from psycopg.errors import CheckViolation
from tests.server.history import Call, History, find_violations
from tests.server.logs import problem
from tests.server.server_helpers import NAME, user
from tests.server.simulated.database import Crashed
from tests.server.simulated.loop import SimulatedLoop
from tests.server.simulated.turns import Turns

from stagewise.problem.errors import StagewiseError
from stagewise.server import learner as learner_module
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store import postgres as store_module
from stagewise.server.store import postgres_transactions as postgres_batch
from stagewise.server.store.postgres import PostgresStore

PROCESSES, ROUNDS, IDS = 3, 22, 30
TIMEOUT = re.compile(r"'\d+s'")  # of statements and locks: how fast this machine is decides nothing
EPOCH = 1_700_000_000_000_000
KILLED, DIED, LOST = 0.002, 0.002, 0.03  # chances: of a backend and a process, a statement; of an answer of COMMIT
PLANTS: dict[str, tuple[tuple[str, str], ...]] = {  # statements of `postgres_batch` that a planted bug replaces
    "locks": (("LOCK_SHARED", "SELECT 1"), ("LOCK_EXCLUSIVE", "SELECT 1")),
    "cache": (),
}


class Result(NamedTuple):
    """What became of a schedule."""

    seed: int
    violations: frozenset[str]
    decisions: int
    turns: int
    rejected: int
    """Rows that the table's CHECK rejected."""
    faults: int
    """Backends that were killed, processes that died, and answers that were lost."""
    digest: str
    """Of all rows, seals and answers: the same for the same seed."""


class ScheduledConnection(psycopg.Connection[Any]):
    """A connection whose statements wait for their turn.

    Half of the connections send each statement by itself instead of in a pipeline: others may then go on in between,
    as they may in PostgreSQL.
    """

    world: "PostgresWorld"
    _is_split = _is_piped = _commits = False

    def execute(self, query: Any, *about: Any, **named: Any) -> Any:
        """Execute a statement when it is this thread's turn."""
        self._commits |= query == "COMMIT"
        if not self._is_piped:
            self.world.wait(self)
        with self.world.counting():
            found = super().execute(query, *about, **named)
        if not self._is_piped:
            self._lose()
        return found

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        """Send statements together, or one by one."""
        self._is_split = self.world.rng.random() < 0.5
        if self._is_split:
            yield None
            return
        self.world.wait(self)
        self._is_piped = True
        try:
            with self.world.counting(), super().pipeline() as pipe:
                yield pipe
        finally:
            self._is_piped = False
        self._lose()

    def close(self) -> None:
        """Close the connection, and return when its backend and all of its locks are gone."""
        if not self.closed:
            process_id = self.info.backend_pid
            super().close()
            self.world.turns.terminate(process_id)
        super().close()

    def _lose(self) -> None:
        """Lose the answer of a COMMIT now and then."""
        commits, self._commits = self._commits, False
        if commits and not self.world.is_calm and self.world.rng.random() < LOST:
            self.world.faults += 1
            raise psycopg.OperationalError("the answer of COMMIT was lost")


class InlineWriter:
    """The writer of a process that writes one transaction after the other."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    def start(self) -> None:
        """There is nothing to start."""

    def get_error(self) -> str | None:
        """There is none that lasts."""
        return None

    async def append_all(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows in one transaction."""
        return self.store.append(requests)

    async def append(self, request: AppendRequest) -> AppendResult:
        """Append a row."""
        return self.store.append([request])[0]


class PostgresWorld:
    """One schedule."""

    def __init__(self, seed: int, address: str, plant: str | None) -> None:
        self.rng, self.address, self.plant = random.Random(seed), address, plant
        self.turns, self.history, self.faults, self.rejected = Turns(self.rng, address), History(), 0, 0
        self.has_stops = self.rng.random() < 0.5  # a change of controls lets all others wait
        self.began: dict[str, float] = {}  # when an id was first asked for
        self.is_calm = True
        self.dead = set[int]()  # threads whose process is dead

    def now(self) -> float:
        """Return the time: a turn is a millisecond."""
        return self.turns.step / 1000.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the rows that the table's CHECK rejects."""
        try:
            yield
        except CheckViolation:
            self.rejected += 1
            raise

    def wait(self, connection: psycopg.Connection[Any]) -> None:
        """Wait for this thread's turn; something may be over then."""
        if self.is_calm:
            return
        process_id = connection.info.backend_pid
        self.turns.pause(process_id)
        if threading.get_ident() not in self.dead and self.rng.random() < DIED:
            self.faults += 1
            self.dead.add(threading.get_ident())
        if threading.get_ident() in self.dead:  # whatever it does next does not happen
            raise Crashed
        if self.rng.random() < KILLED:
            self.faults += 1
            self.turns.terminate(process_id)

    def start(self) -> DecisionServer:
        """Return a server on a store of its own."""
        store = PostgresStore(self.address, clock=lambda: EPOCH + self.turns.step * 1000)
        try:
            server = DecisionServer(store, learn=False, alone=False)
            writer: Any = InlineWriter(store)
            server.writer, server.learner.append = writer, store.append
            run(server.start())
            run(server.open(NAME, problem(), "ada", "a test"))
        except BaseException:
            store.close()
            raise
        return server

    def play(self) -> frozenset[str]:
        """Play, heal, and judge."""
        servers = [self.start() for _ in range(PROCESSES)]
        if self.plant == "cache":
            self.turns.monitor.execute("ALTER SEQUENCE numbers CACHE 20")
        self.is_calm = False
        self.turns.play([self._live(place, servers[place : place + 1]) for place in range(PROCESSES)])
        self.is_calm = True
        if self.plant == "cache":
            self.turns.monitor.execute("ALTER SEQUENCE numbers CACHE 1")
        server = self.start()
        end = time.perf_counter() + 60.0
        while not self._is_learned(server) and time.perf_counter() < end:
            server.learner.step()
        found = find_violations(self.history, server.store, [server])
        if not self._is_learned(server) or run(server.decide(NAME, user("after all"))).receipt is None:
            found.add("stuck")
        self.rows = server.store._all("SELECT number, key, body, mac, seen, link FROM events ORDER BY number")
        self.rows += server.store._all("SELECT seal, size, high, open, hash FROM seals ORDER BY seal")
        server.store.close()
        return frozenset(found)

    def _is_learned(self, server: DecisionServer) -> bool:
        head, fold = server.store.head(NAME), server.learner.folds.get(NAME)
        return fold is not None and fold.seq == head.seq == head.sealed

    def _live(self, place: int, servers: list[DecisionServer]) -> Callable[[], None]:
        """Return the life of a process, which starts again when it has died."""

        def live() -> None:
            left, server = ROUNDS, servers.pop() if servers else None
            while left:
                try:
                    server = server or self.start()
                    while left:
                        left -= 1
                        with suppress(StagewiseError):
                            self._do(server, place)
                except (Crashed, RuntimeError):  # nobody answers what a dead process was asked
                    if threading.get_ident() not in self.dead:
                        raise
                    self.dead.discard(threading.get_ident())
                    left -= left > 0
                    if server is not None:  # the system closes what a dead process had open
                        server.store.close()
                    server = None
                except StagewiseError:  # at its start
                    server, left = None, left - (left > 0)
            if server is not None:
                server.store.close()

        return live

    def _do(self, server: DecisionServer, place: int) -> None:
        """Ask, report, stop or resume, or learn."""
        rng, began, number = self.rng, self.now(), self.rng.randrange(IDS)
        id_, what = f"u{number}", self.rng.random()
        if what < 0.5:
            began = self.began.setdefault(id_, began)
            made = run(server.decide(NAME, user(id_, age=float(number))))
            if made.receipt is not None:
                self._add("decision", began, id_, made.receipt, made.mode)
        elif what < 0.7:
            values = {"click": float(rng.random() < 0.5), "opt_out": 0.0}
            told = run(server.learn(NAME, OutcomeUpdate(id_, values, outcome_id=rng.choice([None, f"o{id_}"]))))
            self._add("outcome", began, id_, told.receipt)
        elif what < 0.8 and self.has_stops:
            verb = rng.choice(("kill", "resume"))
            done = False
            try:
                run(getattr(server, verb)(NAME, "ada", "a drill"))
                done = True
            finally:
                self._add(verb if done else "resume", began)  # a lost answer obliges nobody
        else:
            server.learner.step()

    def _add(self, kind: str, began: float, id_: str = "", receipt: str | None = None, mode: str = "") -> None:
        self.history.calls.append(Call(kind, began, self.now(), id_, receipt, mode))


def run(coroutine: Any) -> Any:
    """Run a coroutine in this thread; what would run in another thread runs at once."""
    loop = SimulatedLoop()
    loop.set_exception_handler(lambda *_: None)  # a dead process leaves tasks behind
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def play(seed: int, address: str, plant: str | None = None) -> Result:
    """Play the schedule of a seed in an empty database."""
    world = PostgresWorld(seed, address, plant)
    connection = type("Connection", (ScheduledConnection,), {"world": world})
    with ExitStack() as changed:
        for name, statement in PLANTS[plant] if plant else ():
            changed.enter_context(patch.object(postgres_batch, name, statement))
        for where, name, value in (
            (psycopg, "connect", connection.connect),
            (store_module, "SETTINGS", TIMEOUT.sub("0", store_module.SETTINGS)),
            (store_module, "DEFAULTS", {**store_module.DEFAULTS, "connect_timeout": 60}),
            (time, "monotonic", world.now),
            (os, "urandom", world.rng.randbytes),
            (secrets, "token_bytes", world.rng.randbytes),
            (learner_module, "SHARE_INTERVAL", 0.1),
            (learner_module, "SAVE_INTERVAL", 0.3),
        ):
            changed.enter_context(patch.object(where, name, value))
        try:
            violations = world.play()
        finally:
            world.turns.close()
    digest = hashlib.sha256(repr((world.rows, world.history.calls, sorted(violations))).encode()).hexdigest()
    decisions = sum(call.kind == "decision" for call in world.history.calls)
    return Result(seed, violations, decisions, world.turns.step, world.rejected, world.faults, digest)


def main(words: Sequence[str] | None = None) -> int:
    """Play seeds; print those whose schedule has a violation."""
    from tests.server import servers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--plant", choices=PLANTS)
    options = parser.parse_args(words)
    logging.getLogger("stagewise.server").setLevel(logging.ERROR)
    failed, results, started, worked = 0, list[Result](), time.perf_counter(), time.process_time()
    for seed in range(options.first, options.first + options.count):
        results.append(play(seed, servers.server().fresh(), options.plant))
        if results[-1].violations:
            failed += 1
            print(f"seed {seed}: {sorted(results[-1].violations)}", flush=True)
    sums = {name: sum(getattr(one, name) for one in results) for name in ("decisions", "turns", "faults")}
    counts = ", ".join(f"{count:,} {name}" for name, count in sums.items())
    elapsed, own = (time.perf_counter() - started) / len(results), (time.process_time() - worked) / len(results)
    print(f"{len(results):,} schedules, {counts}, {failed} with violations")
    print(f"{elapsed:.2f} s a schedule, {own:.2f} s of processor time here")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
