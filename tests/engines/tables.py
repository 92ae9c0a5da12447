"""A night's folder for tests of engines, and the decisions that every engine must make."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.files.tables import read_batches

sys.path.append(str(Path(__file__).parents[2] / "examples" / "engines"))
import night

PROBLEM = replace(night.PROBLEM, reward=sw.Reward("click", model="rates"))
USERS, LOGGED = 60, 1_000


def build_folder(folder: Path) -> list[dict[str, Any]]:
    """Write an agent that has learned a log, and users; return the decisions of one process."""
    random, agent = np.random.default_rng(3), sw.Agent(PROBLEM, seed=7)
    actions = random.integers(0, 3, LOGGED)
    log = {
        "age": random.integers(18, 99, LOGGED).astype(float),
        "opens_7d": random.integers(0, 8, LOGGED).astype(float),
    }
    log |= {
        "plan": [["free", "pro"][i] for i in random.integers(0, 2, LOGGED)],
        "action": [night.ACTIONS[i] for i in actions],
    }
    agent.learn_log_frame(
        {**log, "click": random.random(LOGGED) < 0.2 * actions, "opt_out": random.random(LOGGED) < 0.03 * actions}
    )
    agent.save(folder / "agent.json")
    night.write_users(folder / "users.parquet", USERS)
    (users,) = read_batches(folder / "users.parquet").batches
    rows = read_rows(sw.decide_frame(agent.replica_snapshot(), users, run="night"))
    assert len({row["propensity"] for row in rows}) > 1
    return rows


def read_rows(table: Any) -> list[dict[str, Any]]:
    """Return a table as rows in the order of the users."""
    batches = [batch for batch in read_batches(table).batches if batch.num_rows]
    rows = [
        dict(zip(batch.schema.names, values, strict=True))
        for batch in batches
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    return sorted(rows, key=lambda row: row["user_id"])


def check_night(statuses: list[str], decisions: Any, expected: list[dict[str, Any]]) -> None:
    """Check what an example returned and wrote."""
    assert statuses == ["accepted"] * USERS
    assert read_rows(decisions) == expected
