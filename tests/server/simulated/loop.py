"""An event loop in which time passes only when nothing else is left to do, and threads do not exist."""

import asyncio
import os
import random
import secrets
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


class NoSelector(selectors.BaseSelector):
    """A selector of nothing, whose waiting moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Let time pass."""
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.now += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        """Ignore the loop's own pipe."""

    def unregister(self, fileobj: Any) -> Any:
        """Ignore the loop's own pipe."""

    def get_map(self) -> Any:
        """There is nothing."""
        return {}


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own; what would run in a thread runs at once."""

    def __init__(self) -> None:
        self.virtual = NoSelector()
        super().__init__(self.virtual)

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self.virtual.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run a function now."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            future.set_exception(RuntimeError(error))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def simulated(rng: random.Random) -> Iterator[SimulatedLoop]:
    """Replace the clocks and the random bytes of this process by those of a loop and a seed."""
    loop = SimulatedLoop()
    loop.set_exception_handler(lambda *_: None)  # a crashed process leaves tasks behind
    with (
        patch.object(time, "monotonic", loop.time),
        patch.object(time, "time_ns", lambda: round(loop.time() * 1e9)),
        patch.object(os, "urandom", rng.randbytes),
        patch.object(secrets, "token_bytes", rng.randbytes),
    ):
        asyncio.set_event_loop(loop)
        try:
            yield loop
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            asyncio.set_event_loop(None)
            loop.close()


def run(loop: SimulatedLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end."""
    return loop.run_until_complete(coroutine)
