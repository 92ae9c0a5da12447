"""Where tasks are done: in this process, in several, or on a cluster. No result depends on it."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import parent_process
from multiprocessing.connection import wait
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from typing import Any, TypeVar

from stagewise.files.machine import GIB, memory
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import nearest

PAYS = 2_000_000  # rounds from which a process pool is worth its start
PROCESS = 2**27  # bytes that a worker needs at least, with NumPy and Numba loaded
DEATHS = 3  # of workers that a task may see before it is given up

Key = TypeVar("Key")
Workers = Executor | str | None
KINDS = "a concurrent.futures.Executor, 'processes:N', 'dask:ADDRESS' or 'dask:local'"


@contextmanager
def opened(executor: Workers, tasks: int, rounds: int) -> Iterator[Executor | None]:
    """Yield an executor for so many tasks and rounds in all; None: this process does them one by one."""
    cores = os.cpu_count() or 1
    if isinstance(executor, Executor):
        yield executor
    elif executor is None and (tasks < 2 or rounds < PAYS or cores < 2):
        yield None
    else:
        kind, _, rest = executor.partition(":") if isinstance(executor, str) else ("processes", "", str(cores))
        if not (executor is None or isinstance(executor, str)) or kind not in ("processes", "dask") or not rest:
            near = nearest(kind, ["processes", "dask", "cuda"])
            raise InvalidProblem(f"executor is {shown(executor)}; it must be {KINDS}{near}")
        with cluster(rest) if kind == "dask" else pool(processes(number_of(rest), tasks)) as workers:
            yield workers


class Processes(Executor):
    """A process pool that is opened again when a process dies."""

    def __init__(self, count: int, context: Any = None) -> None:
        self.open: Callable[[], ProcessPoolExecutor] = partial(
            ProcessPoolExecutor, count, context, initializer=leave_with_parent
        )
        self.pool = self.open()

    def submit(self, function: Callable[..., Any], /, *args: Any, **settings: Any) -> "Future[Any]":
        """Hand over a task; in a new pool, where the old one is broken."""
        try:
            return self.pool.submit(function, *args, **settings)
        except BrokenProcessPool:
            self.shutdown(wait=False, cancel_futures=True)
            self.pool = self.open()
            return self.pool.submit(function, *args, **settings)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the pool."""
        self.pool.shutdown(wait, cancel_futures=cancel_futures)

    def stop(self) -> None:
        """End the processes now, whatever they are doing."""
        for process in list((getattr(self.pool, "_processes", None) or {}).values()):
            process.terminate()


def leave_with_parent() -> None:
    """Let this worker end when the process that made it does, in whatever way: nobody else would tell it to.

    Ctrl+C reaches every process of a terminal: that one hears it alone, and ends the others.
    """
    parent = parent_process()
    if parent is not None:
        signal(SIGINT, SIG_IGN)
        Thread(target=watch, args=(parent.sentinel, os.getppid()), daemon=True).start()


def watch(sentinel: int, maker: int) -> None:
    """End this process when the parent's end of a pipe closes, or somebody else becomes the parent."""
    while not wait([sentinel], timeout=1.0) and os.getppid() == maker:
        pass
    os._exit(1)


@contextmanager
def pool(count: int, context: Any = None) -> Iterator[Executor]:
    """Yield so many processes; what waits is dropped at the end, and Ctrl+C ends them at once."""
    processes = Processes(count, context)
    try:
        yield processes
    except KeyboardInterrupt:
        processes.stop()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Yield a Dask cluster's workers; 'local' starts one on this machine, a process a core."""
    if find_spec("distributed") is None:
        raise InvalidProblem("an executor 'dask:…' needs Dask: pip install 'stagewise[dask]'")
    distributed: Any = import_module("distributed")
    with ExitStack() as closing:
        if address == "local":
            made = distributed.LocalCluster(processes=True, threads_per_worker=1, dashboard_address=None)
            client = distributed.Client(closing.enter_context(made))
        else:
            try:
                client = distributed.Client(address, timeout=10)
            except (OSError, ValueError, TypeError) as error:
                raise InvalidProblem(f"executor is 'dask:{address}'; no scheduler answers there: {error}") from None
        yield closing.enter_context(client).get_executor(pure=False, retries=DEATHS)


def performed(
    function: Callable[..., Any], tasks: Mapping[Key, tuple[Any, ...]], executor: Executor | None
) -> Iterator[tuple[Key, Any]]:
    """Yield each task's key and result as it comes. A task whose process died is done again."""
    if executor is None:
        for key, task in tasks.items():
            yield key, function(*task)
        return
    left, deaths = dict(tasks), 0
    while left:
        futures = {executor.submit(function, *task): key for key, task in left.items()}
        try:
            for future in as_completed(futures):
                result = future.result()
                del left[futures[future]]
                yield futures[future], result
        except BrokenProcessPool:
            deaths += 1
            if deaths > DEATHS or not isinstance(executor, Processes):
                raise
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def processes(asked: int, tasks: int) -> int:
    """Return how many processes there will be: no more than tasks, and no more than memory holds."""
    count = min(asked, max(tasks, 1))
    if count * PROCESS > memory():
        raise InvalidProblem(
            f"{count:,} processes would need some {count * PROCESS / GIB:,.0f} GiB, and this machine has "
            f"{memory() / GIB:,.0f}; it has {os.cpu_count()} cores, and more processes than that gain nothing"
        )
    return count


def number_of(text: str) -> int:
    """Return how many processes are asked for."""
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) < 1:
        raise InvalidProblem(f"executor is {shown(f'processes:{text}')}; a whole number of at least 1 must stand there")
    return int(text)
