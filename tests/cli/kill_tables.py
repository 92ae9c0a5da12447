"""Kill processes that decide and learn tables at any instant, and let them finish: python -m tests.cli.kill_tables.

Each is killed at its n-th call of a function, which is between any two statements. The command that a scheduler runs
again must end as one that was never killed. One line says how many died, and what differed.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stagewise as sw
from stagewise.agent.table_file import decide_file, learn_file
from stagewise.files import tables as record_batches
from stagewise.files.tables import read_batches, write_batches

USERS = 64
PROBLEM = sw.Problem(
    action_names=["nothing", "offer"], safe_name="nothing", context={"age": (18, 99)}, reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.5, safe_bound=0.0, model="rates")},
)  # fmt: skip


def decide(folder: Path) -> None:
    agent = sw.Agent.load(folder / "agent.json")
    decide_file(agent, folder / "users.parquet", folder / "decisions.parquet", run="night")
    agent.save(folder / "agent.json")


def learn(folder: Path) -> None:
    agent = sw.Agent.load(folder / "agent.json")
    learn_file(agent, folder / "outcomes.parquet", out=folder / "statuses.parquet")
    agent.save(folder / "agent.json")


def in_child(work: Callable[[Path], None], folder: Path, calls: int | None) -> bool:
    """Do work in a process that dies at a call; return whether it died."""
    pid = os.fork()
    if pid == 0:
        left = [calls or 0]

        def count(frame: Any, event: str, _: Any) -> None:
            left[0] -= event == "call"
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count if calls else None)
        try:
            work(folder)
        except BaseException:
            sys.setprofile(None)
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a process failed by itself"
    return os.WIFSIGNALED(status)


def count_calls(work: Callable[[Path], None], folder: Path) -> int:
    """Return how many functions a whole run calls."""
    calls = [0]

    def count(frame: Any, event: str, _: Any) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    work(folder)
    sys.setprofile(None)
    return calls[0]


def prepare(folder: Path) -> None:
    folder.mkdir()
    sw.Agent(PROBLEM, seed=7).save(folder / "agent.json")
    columns = {"user_id": list(range(USERS)), "age": [20.0 + row % 70 for row in range(USERS)]}
    write_batches(folder / "users.parquet", read_batches(columns).batches)


def tell(folder: Path) -> None:
    """Write outcomes of all decisions, the first of them twice."""
    ids = [
        id_
        for batch in read_batches(folder / "decisions.parquet").batches
        for id_ in batch.column("decision_id").to_pylist()
    ]
    columns = {"decision_id": [*ids, ids[0]], "click": [1.0] * (USERS + 1), "opt_out": [0.0] * (USERS + 1)}
    write_batches(folder / "outcomes.parquet", read_batches(columns).batches)


def read_end(folder: Path) -> tuple[bytes, bytes, int, Any]:
    """Return what a night leaves: both files, what is pending, and what was learned."""
    agent = sw.Agent.load(folder / "agent.json")
    files = ((folder / f"{name}.parquet").read_bytes() for name in ("decisions", "statuses"))
    return (*files, agent.pending_count, agent.state.memory.tobytes())


def main(kills: int) -> None:
    record_batches.BATCH_ROWS = 16
    died, different = 0, list[float]()
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "whole"
        prepare(whole)
        calls = {decide: count_calls(decide, whole)}
        tell(whole)
        calls[learn] = count_calls(learn, whole)
        expected = read_end(whole)
        for kill in range(kills):
            folder, share = Path(temporary) / str(kill), (kill + 1) / (kills + 1)
            prepare(folder)
            for work in (decide, learn):
                died += in_child(work, folder, round(calls[work] * share))
                in_child(work, folder, None)
                if work is decide:
                    tell(folder)
            if read_end(folder)[0] != expected[0] or read_end(folder)[2:] != expected[2:]:
                different.append(share)
    print(json.dumps({"died": died, "different": different}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
