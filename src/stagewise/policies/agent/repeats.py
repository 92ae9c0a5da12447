"""Whether a log was learned already: every outcome counts once, and a file that is read twice looks like two.

Which logs were is among an agent's notes, and saved with them.
"""

from hashlib import sha256
from typing import Any

import numpy as np

from stagewise.problem.checks import switch
from stagewise.problem.errors import InvalidOutcome

KEPT = 10_000  # logs that are remembered, the latest
LOOKED_AT = 4096  # rows that tell how alike two honest logs can be
RARE = 30.0  # nats: two honest logs agree in all rows with probability e⁻³⁰


def mark_of(actions: Any, values: Any) -> str | None:
    """Return a digest of a log as it is learned; None: another honest log may well be the same.

    Where rows come with frequencies p, n honest rows are the same again with probability exp(n Σ p log p). Twenty rows
    without a context, all of them of one action to which nobody answered, say nothing; a thousand of several do.

    >>> mark_of(np.zeros(20), np.zeros((20, 2))) is None, mark_of(np.arange(20), np.zeros((20, 2))) is None
    (True, False)
    """
    parts = (np.asarray(part, dtype=np.float64) for part in (actions, values))
    rows = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    some = rows[:: 1 + len(rows) // LOOKED_AT]  # from all over it: a log may be sorted
    counts = np.unique(some, axis=0, return_counts=True)[1]
    if counts @ np.log(counts.sum() / counts) < RARE:
        return None
    rows += 0.0  # 0.0 and -0.0 are the same
    return sha256(np.ascontiguousarray(rows).data).hexdigest()[:32]


def check_first(notes: Any, mark: str | None, again: Any) -> None:
    """Refuse a log that was learned already, unless somebody says that it is another one."""
    if switch(again, "again") or mark is None or mark not in notes.logs:
        return
    raise InvalidOutcome(
        f"this log was learned already, all {notes.logs[mark]:,} rows of it, and once is all that an outcome counts; "
        "leave it out, or give again=True where these are other outcomes that happen to be the same"
    )


def remember(notes: Any, mark: str | None, rows: int) -> None:
    """Remember a log that was learned."""
    if mark is not None:
        notes.logs.pop(mark, None)
        notes.logs[mark] = rows
        while len(notes.logs) > KEPT:
            del notes.logs[next(iter(notes.logs))]
