"""Workers of any kind give the same results, and one that dies takes nothing with it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.executors import open_executor, open_pool, run_tasks

FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum")
RAYS = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.1)
OTHER = sw.LinearWorld(reward=[0.0, 1.0], cost=[1.0, 0.0], actions=sw.RaySet([[1.0, 0.0], [0.6, 0.8]]), noise=0.1)
SAFE = sw.SafeAction(features=[0.0, 0.0])
POLICIES = {
    "careful": sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.1),
    "hopeful": sw.ROFUL(safe_action=SAFE, threshold=0.3, noise=0.1),
}
WORLDS = {"one": RAYS, "other": OTHER}


def played(**settings: Any) -> dict[Any, sw.Result]:
    settings = {"rounds": 40, "runs": 2, "record_points": 10, "progress": False} | settings
    pairs = [(policy, world) for policy in POLICIES for world in WORLDS]
    return {pair: sw.simulate(POLICIES[pair[0]], WORLDS[pair[1]], **settings) for pair in pairs}


def assert_same(one: dict[Any, sw.Result], other: dict[Any, sw.Result]) -> None:
    assert list(one) == list(other)
    for cell in one:
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(one[cell], field), getattr(other[cell], field))


def test_processes_by_name_give_the_same() -> None:
    assert_same(played(executor="processes:2"), played())


def fatal(path: str, number: int) -> int:
    """Kill the process that plays task 3, the first time."""
    if number == 3 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_a_pool_whose_process_was_killed_does_all_tasks(tmp_path: Path) -> None:
    tasks = {number: (str(tmp_path / "died"), number) for number in range(12)}
    with open_pool(2) as workers:
        found = dict(run_tasks(fatal, tasks, workers))
    assert (tmp_path / "died").exists()
    assert found == {number: number * number for number in range(12)}


def alive(process: int) -> bool:
    """Say whether a process runs; one that is dead and not yet collected does not."""
    try:
        status = Path("/proc", str(process), "stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def waited_for(true: Callable[[], bool]) -> bool:
    """Say whether something came true within a minute."""
    end = time.monotonic() + 60.0
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not list its processes in /proc")
def test_workers_whose_maker_is_killed_end_too(tmp_path: Path) -> None:
    """At work and waiting for work, forked and spawned."""
    maker = subprocess.Popen([sys.executable, Path(__file__).with_name("left_alone.py"), tmp_path])
    try:
        assert waited_for(lambda: len(list(tmp_path.iterdir())) == 3)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        assert all(alive(worker) for worker in workers)
    finally:
        maker.kill()
        maker.wait()
    try:
        assert waited_for(lambda: not any(alive(worker) for worker in workers))
    finally:
        for worker in filter(alive, workers):
            os.kill(worker, signal.SIGKILL)


def broken(number: int) -> int:
    raise ValueError(f"task {number}")


def test_an_error_in_a_task_is_not_tried_again() -> None:
    with open_executor("processes:1", 1, 1) as workers, pytest.raises(ValueError, match="task 0"):
        list(run_tasks(broken, {0: (0,)}, workers))


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_worker_is_killed_gives_what_one_machine_gives(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    settings: dict[str, Any] = {"rounds": 20_000, "runs": 32, "progress": False}
    expected = sw.simulate(POLICIES["careful"], RAYS, **settings)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            while not list(tmp_path.glob("parts/*/manifest.json")):
                time.sleep(0.002)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        pool = client.get_executor(pure=False)
        found = sw.simulate(POLICIES["careful"], RAYS, **settings, executor=pool, out=tmp_path)
        killer.join()
        assert victim not in client.run(os.getpid).values()
    assert_same({"": found}, {"": expected})


@pytest.mark.parametrize(
    ("executor", "part"),
    [
        ("cuda", ErrorCode.BACKEND_UNAVAILABLE),
        ("processes:0", ErrorCode.OUT_OF_RANGE),
        ("processes:many", ErrorCode.OUT_OF_RANGE),
        ("threads:2", ErrorCode.INVALID_CHOICE),
        ("dask:local", ErrorCode.INVALID_CHOICE),
        (3, ErrorCode.INVALID_CHOICE),
    ],
)
def test_workers_that_do_not_exist_are_refused(executor: Any, part: str) -> None:
    with refused(sw.InvalidProblem, part):
        sw.simulate(POLICIES["careful"], RAYS, rounds=10, executor=executor)


def test_an_executor_of_ones_own_stays_open() -> None:
    with ProcessPoolExecutor(1) as own:
        sw.simulate(POLICIES["careful"], RAYS, rounds=10, runs=2, executor=own)
        assert own.submit(abs, -3).result() == 3
