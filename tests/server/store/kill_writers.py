"""Kills processes that write, at any instant, and holds the log to what they had acknowledged.

    python -m tests.server.store.kill_writers ADDRESS KILLS SEED

Each process opens the store, appends batches of new rows, of repeated rows and of rows that a dead one may or may not
have written, and says what was acknowledged only after it was. Half of them are killed by the clock, and half kill
themselves at the n-th call or return of any function, which is between any two statements.
"""

import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.server.store.append_requests import decision, log_of, outcome, sound, tick

from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.store.migrate import open_store

EXPERIMENTS = ("mail", "push")


def main(address: str, kills: int, seed: int) -> None:
    """Kill so many; print what was seen."""
    chance = random.Random(seed)
    open_store(address).close()
    said: dict[str, tuple[str, int]] = {}  # by experiment and id: of which row it was acknowledged
    rows = acknowledged = alive = 0
    for turn in range(kills):
        lines, killed = one(address, chance.randrange(2**32), turn)
        alive += not killed
        for line in lines:
            name, kind, number = line.split(" ")
            assert said.setdefault(name, (kind, int(number))) == (kind, int(number)), "an id has one row, for good"
        acknowledged += len(lines)
        if turn % max(10, kills // 20) == 0 or turn == kills - 1:
            rows = checked(address, said)
    print(f"{kills - alive} killed, {alive} ended; {acknowledged} acknowledged, {len(said)} ids, {rows} rows")


def one(address: str, seed: int, number: int) -> tuple[list[str], bool]:
    """Let a process write until it is killed; return what it said, and whether it was killed."""
    chance = random.Random(seed)
    reads, writes = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reads)
            child(address, writes, chance, number)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    os.close(writes)
    said = b""
    by_clock = number % 2 == 0
    most = chance.randrange(8000) if chance.random() < 0.7 else 0  # characters to wait for, before the clock counts
    until = time.monotonic() + 20.0
    while len(said) < most or not by_clock:
        if not select.select([reads], [], [], max(0.0, until - time.monotonic()))[0]:
            break
        more = os.read(reads, 65536)
        said += more
        if not more:
            break
    if by_clock:
        time.sleep(chance.random() ** 2 * 0.02)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    while more := os.read(reads, 65536):
        said += more
    os.close(reads)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a process failed by itself"
    return said.decode().splitlines(), os.WIFSIGNALED(status)


def child(address: str, writes: int, chance: random.Random, number: int) -> None:
    """Write batches; each line that is sent names a row that was acknowledged."""
    if number % 2:
        die_after(chance.choice([300, 5_000, 60_000]), chance)
    store = open_store(address)
    for batch in range(30 if number % 2 else 10_000):
        asks = batch_of(chance, number, batch)
        lines = [line for ask, settled in zip(asks, store.append(asks), strict=True) if (line := row_of(ask, settled))]
        os.write(writes, "".join(lines).encode())


def batch_of(chance: random.Random, number: int, batch: int) -> list[AppendRequest]:
    """Return new rows, and rows that others may have written; what an id stands for is the same for everybody."""
    experiment = chance.choice(EXPERIMENTS)
    asks: list[AppendRequest] = []
    for n in range(chance.choice([1, 3, 100])):
        who = chance.choice([number, number, number - 1, chance.randrange(number + 1)])
        key = f"{who}-{batch}-{n}"
        asks.append(decision(key, experiment))
        if chance.random() < 0.5:
            asks.append(outcome(key, experiment, f"o{key}", click=float(len(key) % 2), buy=float(n)))
    return [*asks, tick(experiment)] if chance.random() < 0.1 else asks


def row_of(ask: AppendRequest, settled: AppendResult) -> str:
    """Return the line of an acknowledged row with an id."""
    assert settled.status in ("new", "duplicate"), settled
    assert settled.event is not None
    return f"{ask.experiment}/{ask.key} {ask.kind} {settled.event.number}\n" if ask.key else ""


def die_after(most: int, chance: random.Random) -> None:
    """Kill this process at one of its next calls or returns."""
    left = chance.randrange(most)

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    profile: Callable[[Any], None] = sys.setprofile
    profile(count)


def checked(address: str, said: dict[str, tuple[str, int]]) -> int:
    """Hold every log to being one, and to having each acknowledged row where it was said to be."""
    store = open_store(address)
    rows = sound(store)
    logs = {name: {row.number: row for row in log_of(store, name)} for name in store.logs()}
    store.close()
    for name, (kind, number) in said.items():
        experiment, _, key = name.partition("/")
        event = logs[experiment][number]
        assert (event.kind, event.key) == (kind, key), f"{name} was acknowledged as row {number}"
    return rows


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
