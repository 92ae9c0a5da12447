"""Executors: this process, a process pool or any other, and a progress bar; results do not depend on them."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import wait
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from typing import Any, TypeVar

from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import suggest_name

MIN_PARALLEL_ROUNDS = 2_000_000  # rounds from which a process pool is worth its start
MAX_WORKER_DEATHS = 3  # of workers that a task may see before it is given up

Key = TypeVar("Key")
Workers = Executor | str | None
EXECUTOR_KINDS = "a concurrent.futures.Executor or 'processes:N'"


@contextmanager
def open_executor(executor: Workers, tasks: int, rounds: int) -> Iterator[Executor | None]:
    """Yield an executor for the tasks; None: this process runs them one by one."""
    cores = os.cpu_count() or 1
    if isinstance(executor, Executor):
        yield executor
    elif executor is None and (tasks < 2 or rounds < MIN_PARALLEL_ROUNDS or cores < 2):
        yield None
    else:
        kind, _, rest = executor.partition(":") if isinstance(executor, str) else ("processes", "", str(cores))
        if not (executor is None or isinstance(executor, str)) or kind != "processes" or not rest:
            rule = f"{EXECUTOR_KINDS}{suggest_name(kind, ['processes', 'cuda'])}"
            raise InvalidProblem.must_be(ErrorCode.INVALID_CHOICE, "executor", executor, rule)
        if kind == "processes" and not (rest.isascii() and rest.isdigit() and len(rest) < 10 and int(rest) > 0):
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "executor", executor, "'processes:N' with N from 1")
        with open_pool(min(int(rest), max(tasks, 1))) as workers:
            yield workers


class RestartingPool(Executor):
    """A process pool that restarts when a process dies."""

    def __init__(self, count: int, context: Any = None) -> None:
        self.open: Callable[[], ProcessPoolExecutor] = partial(
            ProcessPoolExecutor, count, context, initializer=leave_with_parent
        )
        self.pool = self.open()

    def submit(self, function: Callable[..., Any], /, *args: Any, **settings: Any) -> "Future[Any]":
        """Submit a task, to a new pool if the old one is broken."""
        try:
            return self.pool.submit(function, *args, **settings)
        except BrokenProcessPool:
            self.shutdown(wait=False, cancel_futures=True)
            self.pool = self.open()
            return self.pool.submit(function, *args, **settings)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.pool.shutdown(wait, cancel_futures=cancel_futures)

    def stop(self) -> None:
        """Terminate the processes."""
        for process in list((getattr(self.pool, "_processes", None) or {}).values()):
            process.terminate()


def leave_with_parent() -> None:
    """Let this worker exit when its parent process ends.

    Ctrl+C reaches every process of a terminal; only the parent handles it and ends the workers.
    """
    parent = parent_process()
    if parent is not None:
        signal(SIGINT, SIG_IGN)
        Thread(target=exit_with_parent, args=(parent.sentinel, os.getppid()), daemon=True).start()


def exit_with_parent(sentinel: int, maker: int) -> None:
    """Exit when the pipe of the parent closes or the parent changes."""
    while not wait([sentinel], timeout=1.0) and os.getppid() == maker:
        pass
    os._exit(1)


@contextmanager
def open_pool(count: int, context: Any = None) -> Iterator[Executor]:
    """Yield a process pool; pending tasks are dropped at the end, and Ctrl+C terminates the processes."""
    processes = RestartingPool(count, context)
    try:
        yield processes
    except KeyboardInterrupt:
        processes.stop()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


def run_tasks(
    function: Callable[..., Any], tasks: Mapping[Key, tuple[Any, ...]], executor: Executor | None
) -> Iterator[tuple[Key, Any]]:
    """Yield the key and result of each task when it is finished; a task whose process died is run again."""
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
            if deaths > MAX_WORKER_DEATHS or not isinstance(executor, RestartingPool):
                raise
        except BaseException:
            for future in futures:
                future.cancel()
            raise


@contextmanager
def progress_bar(wanted: bool, runs: int, rounds: int, compiles: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts finished runs; show runs, rounds per second and the time left on a terminal.

    Until the first run is finished, the bar says that the loop is compiled, if `compiles`. A pipe gets no output.
    """
    if not wanted:
        yield lambda runs: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console()
    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=runs, status="compiling" if compiles else "starting")

        def advance(runs: int) -> None:
            if not runs:
                return
            progress.advance(task, runs)
            speed = progress.tasks[0].finished_speed or progress.tasks[0].speed or 0.0
            progress.update(task, status=f"{speed * rounds:,.0f} rounds per second")

        yield advance
