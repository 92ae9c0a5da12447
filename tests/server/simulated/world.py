"""Schedules by seed: servers, clients, an operator and faults in one thread; a seed replays to the byte.

    python -m tests.server.simulated.world FIRST COUNT [--plant BUG] [--processes N]

One seed decides everything: who goes on when, how long a message, a transaction and a commit take, which message or
acknowledgement is lost or comes twice, when a process dies, a clock steps or the disk is full.
"""

import argparse
import asyncio
import hashlib
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.server.history import History, find_violations
from tests.server.logs import DAY, problem
from tests.server.server_helpers import NAME, user
from tests.server.simulated.database import Crashed, Database
from tests.server.simulated.loop import simulated
from tests.server.simulated.process import SimulatedStore, build_server

from stagewise.problem.errors import StagewiseError
from stagewise.server import learner as learner_module
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate

PROCESSES, CLIENTS, SECONDS = 2, 4, 1.5
LOST = 0.02  # of the answers of COMMIT
TIMEOUT = 0.3  # seconds after which a client gives up
PLANTS = ("cache", "early_answer", "early_number", "unread_controls", "skipped_seal")


class Result(NamedTuple):
    """What became of a schedule."""

    seed: int
    violations: frozenset[str]
    rejected: int
    """Rows that the table's CHECK rejected."""
    decisions: int
    crashes: int
    digest: str
    """Of all rows, seals and answers: the same for the same seed."""


class World:
    """One schedule.

    Attributes:
        processes: How many there are beside each other.
    """

    processes = PROCESSES

    def __init__(self, seed: int, rng: random.Random, plant: str | None) -> None:
        self.rng, self.plant, self.history = rng, plant, History()
        self.database = self.build_database()
        self.database.cached = plant == "cache"
        self.servers: list[DecisionServer | None] = [None] * self.processes
        self.crashes, self.is_calm, self.seed = 0, False, seed

    def now(self) -> float:
        """Return the simulated time."""
        return asyncio.get_running_loop().time()

    async def pause(self, mean: float) -> None:
        """Let others go on."""
        await asyncio.sleep(self.rng.expovariate(1.0 / mean))

    async def run(self) -> frozenset[str]:
        """Play, heal, and judge."""
        first = self.start_process(steps=10**9)
        await self.boot(0, first)
        first.loses = LOST
        if self.processes == 1:  # it may die too
            first.left = self.rng.randrange(20, 1500)
        running = [asyncio.create_task(self.live(place)) for place in range(self.processes)]
        end = self.now() + SECONDS
        others = [self.client(who, end) for who in range(CLIENTS)]
        await asyncio.gather(*others, self.operate(end), self.disturb(end))
        self.is_calm, self.database.is_full = True, False
        for store in self.stores():
            store.left, store.loses = 10**9, 0.0
        last = [await asyncio.wait_for(self.final(), 60.0)]
        for task in running:
            task.cancel()
        found = find_violations(self.history, last[0].store, last)
        if not self.plant and await self.is_stuck(last[0]):
            found.add("stuck")
        return frozenset(found)

    def stores(self) -> list[Any]:
        """Return the stores of the processes that live."""
        return [server.store for server in self.servers if server is not None]

    def build_database(self) -> Any:
        """Return what all processes share."""
        return Database(self.rng)

    def build_store(self, rng: random.Random, steps: int) -> Any:
        """Return the store of a new process."""
        return SimulatedStore(self.database, rng, steps)

    def start_process(self, steps: int | None = None) -> Any:
        """Return the store of a new process, which dies after some steps."""
        rng = random.Random(self.rng.getrandbits(64))
        if steps is None:
            steps = 10**9 if self.is_calm or self.rng.random() < 0.4 else self.rng.randrange(20, 1500)
        store = self.build_store(rng, steps)
        is_first = self.servers.count(None) == self.processes and not self.crashes
        store.loses = 0.0 if is_first or self.is_calm else LOST  # the first must start
        store.reads_controls = self.plant != "unread_controls"
        store.commits_first = self.plant != "early_answer"
        store.reserves = self.plant == "early_number"
        return store

    async def boot(self, place: int, store: Any) -> DecisionServer:
        """Start a server on a store."""
        server = build_server(store)
        await server.start()
        await server.open(NAME, problem(), "ada", "a test")
        if self.plant == "unread_controls":
            server.refresh = lambda: None  # type: ignore[method-assign]
        if self.plant == "skipped_seal":
            skip_seals(server)
        self.servers[place] = server
        return server

    async def live(self, place: int) -> None:
        """Let a process learn, until it dies, and start another in its place."""
        while True:
            try:
                server = self.servers[place] or await self.boot(place, self.start_process())
                while True:
                    with suppress(StagewiseError):
                        server.learner.step()
                    await self.pause(0.02)
            except Crashed:
                self.crashes += 1
                self.servers[place] = None
                await self.pause(0.05)
            except StagewiseError:  # at its start
                self.servers[place] = None
                await self.pause(0.05)

    async def call(self, do: Callable[[DecisionServer], Any], repeats: bool = True) -> Any:
        """Send a request to any server, or to two; return the answer, or None if it is lost or an error."""
        await self.pause(0.005)
        server = self.rng.choice(self.servers)
        if server is None:
            return None
        if repeats and self.rng.random() < 0.1:  # a proxy repeats it somewhere else
            other = self.rng.choice(self.servers)
            if other is not None:
                asyncio.get_running_loop().create_task(self.forget(do, other))
        try:
            answer = await asyncio.wait_for(do(server), TIMEOUT)
        except (StagewiseError, TimeoutError, Crashed):
            return None
        await self.pause(0.005)
        return None if self.rng.random() < 0.05 else answer

    async def forget(self, do: Callable[[DecisionServer], Any], server: DecisionServer) -> None:
        """Send a request later; nobody gets the answer."""
        await self.pause(0.05)
        with suppress(StagewiseError, Crashed):
            await do(server)

    async def client(self, who: int, end: float) -> None:
        """Ask, try again with the same id, and report outcomes."""
        n = 0
        while self.now() < end:
            n += 1
            id_, age, made = f"{who}-{n}", float(self.rng.randrange(100)), None
            began = self.now()  # of the first try: its row may be there
            for _ in range(4):
                made = await self.call(lambda server, id_=id_, age=age: server.decide(NAME, user(id_, age=age)))
                if made is not None and made.receipt is not None:
                    self.history.add("decision", began, id_, made.receipt, made.mode)
                    break
            if made is None or made.receipt is None:
                continue
            values = {"click": float(self.rng.random() < 0.3), "opt_out": float(self.rng.random() < 0.02)}
            told = OutcomeUpdate(id_, values, outcome_id=f"o{id_}")
            began = self.now()
            for _ in range(self.rng.randrange(4)):
                answer = await self.call(lambda server, told=told: server.learn(NAME, told))
                if answer is not None:
                    self.history.add("outcome", began, id_, answer.receipt)
                    break

    async def operate(self, end: float) -> None:
        """Kill and resume the experiment."""
        while self.now() < end:
            for verb in ("kill", "resume"):
                began = self.now()
                answer = await self.call(partial(change, verb), repeats=False)
                self.history.add(verb if answer is not None else "resume", began)  # a lost answer obliges nobody
                await self.pause(0.2)

    async def disturb(self, end: float) -> None:
        """Step clocks, fill the disk, take the learner's lock away."""
        while self.now() < end:
            await self.pause(0.3)
            what, stores = self.rng.randrange(3), self.stores()
            if what == 0 and stores:
                self.rng.choice(stores).clock_offset += round(self.rng.choice([-1, 1, 30]) * DAY * self.rng.random())
            elif what == 1:
                self.database.is_full = True
                await self.pause(0.1)
                self.database.is_full = False
            else:
                self.database.leader = None

    async def final(self) -> DecisionServer:
        """Return a server that has learned everything."""
        while True:
            server = self.rng.choice(self.servers)
            if server is not None:
                head = server.store.head(NAME)
                is_learned = NAME in server.learner.folds and server.learner.folds[NAME].seq == head.seq == head.sealed
                if is_learned and not self.database.flying:
                    return server
            await self.pause(0.02)

    async def is_stuck(self, server: DecisionServer) -> bool:
        """Return whether a server that nothing disturbs cannot decide."""
        made = await asyncio.wait_for(server.decide(NAME, user("after all")), 10.0)
        return made.receipt is None


async def change(verb: str, server: DecisionServer) -> Any:
    """Kill or resume."""
    return await getattr(server, verb)(NAME, "ada", "a drill")


def skip_seals(server: DecisionServer) -> None:
    """Plant a learner that leaves out the outcomes of every other batch."""
    restore, turn = server.learner.restore_fold, [False]

    def restored(*about: Any) -> Any:
        fold = restore(*about)
        take = fold.take

        def skipping(events: Sequence[Any]) -> None:
            turn[0] = not turn[0]
            kinds = {event.kind for event in events}
            if turn[0] and kinds <= {"outcome", "control", "tick"}:
                fold.seq = events[-1].seq
            else:
                take(events)

        fold.take = skipping
        return fold

    server.learner.restore_fold = restored  # type: ignore[method-assign]


def play(seed: int, plant: str | None = None, kind: type[World] = World) -> Result:
    """Play the schedule of a seed."""
    rng = random.Random(seed)
    with (
        simulated(rng) as loop,
        patch.object(learner_module, "SAVE_INTERVAL", 0.1),
        patch.object(learner_module, "SHARE_INTERVAL", 0.03),
    ):
        world = kind(seed, rng, plant)
        violations = loop.run_until_complete(world.run())
        rows = world.database.connection.execute("SELECT * FROM events ORDER BY number").fetchall()
        seals = world.database.connection.execute("SELECT * FROM seals ORDER BY seal").fetchall()
        digest = hashlib.sha256(repr((rows, seals, world.history.calls, sorted(violations))).encode()).hexdigest()
        decisions = sum(call.kind == "decision" for call in world.history.calls)
        return Result(seed, violations, world.database.rejected, decisions, world.crashes, digest)


def main(words: Sequence[str] | None = None, play: Any = play, plants: Sequence[str] = PLANTS) -> int:
    """Play seeds; print those whose schedule has a violation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--plant", choices=plants)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(words)
    seeds = range(options.first, options.first + options.count)
    started, worked, failed, results = time.perf_counter(), time.process_time(), 0, list[Result]()
    with ProcessPoolExecutor(options.processes) as pool:
        one = partial(play, plant=options.plant)
        for result in map(one, seeds) if options.processes == 1 else pool.map(one, seeds, chunksize=20):
            results.append(result)
            if result.violations or (result.rejected and options.plant):
                failed += 1
                print(f"seed {result.seed}: {sorted(result.violations)}, {result.rejected} rejected", flush=True)
    elapsed, own = time.perf_counter() - started, time.process_time() - worked
    decisions, crashes = sum(one.decisions for one in results), sum(one.crashes for one in results)
    print(f"{len(results):,} schedules, {decisions:,} decisions, {crashes:,} crashes, {failed} with violations; "
          f"{elapsed / len(results):.3f} s a schedule, {own / len(results):.3f} s of processor time here")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
