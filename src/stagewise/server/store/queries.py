"""SQL that is the same in SQLite and PostgreSQL; `?` is a parameter."""

import time
from collections.abc import Sequence
from typing import Any

from stagewise.server.event_log import DECISION

MAX_SNAPSHOTS, MAX_FULL_SNAPSHOTS = 3, 2  # snapshots kept of each version of a problem

_EVENT = "SELECT seq, at, kind, key, decision_index, body, chain, request_digest FROM events WHERE experiment = ?"
SELECT_EVENTS = f"{_EVENT} AND seq > ? ORDER BY seq LIMIT ?"
SELECT_EVENT = f"{_EVENT} AND kind = ? AND key = ?"
# Decisions are found by scanning the log, other kinds by their index; the expression prevents other plans.
_DENSE, _RARE = f"{_EVENT} AND kind || '' = ?", f"{_EVENT} AND kind = ? AND kind <> '{DECISION}'"
SELECT_EVENTS_OF_KIND = {
    dense: f"{start} AND seq > ? ORDER BY seq LIMIT ?" for dense, start in ((True, _DENSE), (False, _RARE))
}

SELECT_HEAD = "SELECT seq, at, decision_count, control, chain FROM heads WHERE experiment = ?"
SELECT_ANSWERS = "SELECT signal, value FROM answers WHERE experiment = ? AND decision_index = ?"
SELECT_LOG_ENDS = "SELECT experiment, seq FROM heads WHERE experiment <> ''"
SELECT_EXPERIMENTS = "SELECT experiment FROM heads WHERE seq > 0"
SELECT_LOGS = "SELECT DISTINCT experiment FROM events"

UPSERT_SNAPSHOT = """
INSERT INTO snapshots (experiment, problem, seq, content, learner_state) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (experiment, problem, seq) DO UPDATE SET content = excluded.content,
    learner_state = CASE WHEN length(excluded.learner_state) > 0 THEN excluded.learner_state
                         ELSE snapshots.learner_state END
"""
DELETE_OLD_SNAPSHOTS = """
DELETE FROM snapshots WHERE experiment = ? AND problem = ?
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? ORDER BY seq DESC LIMIT ?)
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? AND length(learner_state) > 0
                ORDER BY seq DESC LIMIT ?)
"""
_SNAPSHOT = "FROM snapshots WHERE experiment = ? AND problem = ? AND seq > ?"
SELECT_LATEST_SNAPSHOT = f"SELECT seq, content {_SNAPSHOT} ORDER BY seq DESC LIMIT 1"
SELECT_LATEST_FULL_SNAPSHOT = (
    f"SELECT seq, content, learner_state {_SNAPSHOT} AND length(learner_state) > 0 ORDER BY seq DESC LIMIT 1"
)

SELECT_SNAPSHOTS = (
    "SELECT experiment, problem, seq, content, learner_state FROM snapshots WHERE experiment = ? ORDER BY seq"
)

SELECT_SECRETS = "SELECT name, content FROM secrets ORDER BY name"
SELECT_SECRET = "SELECT content FROM secrets WHERE name = ?"
INSERT_SECRET = "INSERT INTO secrets (name, content) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"

Statement = tuple[str, Sequence[Any]]


START_TIME, START_MONOTONIC = time.time_ns(), time.monotonic_ns()


def wall_clock() -> int:
    """Return the time in microseconds since 1970: the time at the start of the process, plus the elapsed time.

    Setting the clock forward while a server runs closes no window early.
    """
    return (START_TIME + time.monotonic_ns() - START_MONOTONIC) // 1000
