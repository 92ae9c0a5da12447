"""A program with workers, to be killed: `python left_alone.py FOLDER`; each worker leaves its number in the folder."""

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from stagewise.simulation.executors import leave_with_parent, open_pool


def work(folder: str, seconds: float) -> None:
    """Say that this process works, and do so for a while."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(seconds)


if __name__ == "__main__":
    spawned = multiprocessing.get_context("spawn")
    with (
        open_pool(2) as workers,
        ProcessPoolExecutor(1, spawned, initializer=leave_with_parent) as others,  # as `stagewise reproduce` has them
    ):
        tasks = [workers.submit(work, sys.argv[1], 1000.0), workers.submit(work, sys.argv[1], 0.5)]
        tasks.append(others.submit(work, sys.argv[1], 1000.0))
        for task in tasks:
            task.result()
