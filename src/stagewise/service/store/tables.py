"""What is read and kept by one statement, the same in SQLite and in PostgreSQL; `?` stands for a value."""

import time
from collections.abc import Sequence
from typing import Any

from stagewise.service.records import DECISION

FEW, FEW_WHOLE = 3, 2  # snapshots of a problem's version that stay

_EVENT = "SELECT seq, at, kind, key, place, body, chain, asked FROM events WHERE experiment = ?"
EVENTS = f"{_EVENT} AND seq > ? ORDER BY seq LIMIT ?"
FIND = f"{_EVENT} AND kind = ? AND key = ?"
# Decisions are found by walking along the log, other kinds by their index: an expression keeps planners from others.
_DENSE, _RARE = f"{_EVENT} AND kind || '' = ?", f"{_EVENT} AND kind = ? AND kind <> '{DECISION}'"
OF_KIND = {dense: f"{start} AND seq > ? ORDER BY seq LIMIT ?" for dense, start in ((True, _DENSE), (False, _RARE))}

HEAD = "SELECT seq, at, places, control, chain FROM heads WHERE experiment = ?"
ANSWERS = "SELECT signal, value FROM answers WHERE experiment = ? AND place = ?"
ENDS = "SELECT experiment, seq FROM heads WHERE experiment <> ''"
EXPERIMENTS = "SELECT experiment FROM heads WHERE seq > 0"
LOGS = "SELECT DISTINCT experiment FROM events"

KEEP = """
INSERT INTO snapshots (experiment, problem, seq, content, whole) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (experiment, problem, seq) DO UPDATE SET content = excluded.content,
    whole = CASE WHEN length(excluded.whole) > 0 THEN excluded.whole ELSE snapshots.whole END
"""
FORGET = """
DELETE FROM snapshots WHERE experiment = ? AND problem = ?
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? ORDER BY seq DESC LIMIT ?)
AND seq NOT IN (SELECT seq FROM snapshots WHERE experiment = ? AND problem = ? AND length(whole) > 0
                ORDER BY seq DESC LIMIT ?)
"""
_SNAPSHOT = "FROM snapshots WHERE experiment = ? AND problem = ? AND seq > ?"
LATEST = f"SELECT seq, content {_SNAPSHOT} ORDER BY seq DESC LIMIT 1"
LATEST_WHOLE = f"SELECT seq, content, whole {_SNAPSHOT} AND length(whole) > 0 ORDER BY seq DESC LIMIT 1"

SNAPSHOTS = "SELECT experiment, problem, seq, content, whole FROM snapshots WHERE experiment = ? ORDER BY seq"

SECRETS = "SELECT name, content FROM secrets ORDER BY name"
SECRET = "SELECT content FROM secrets WHERE name = ?"
FRESH_SECRET = "INSERT INTO secrets (name, content) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"

Statement = tuple[str, Sequence[Any]]


BEGUN, TICKING = time.time_ns(), time.monotonic_ns()


def wall_clock() -> int:
    """Return the time of this machine, in microseconds since 1970: as the process began, and what has passed since.

    So a clock that is set forward while a desk runs closes no window before its time.
    """
    return (BEGUN + time.monotonic_ns() - TICKING) // 1000
