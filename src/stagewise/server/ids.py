"""Unique ids.

`os.urandom` releases the GIL, and under load that takes longer than a decision; so one call serves many ids.
"""

import os
import time
from collections import deque

RANDOM_BYTES = 10  # random bytes of an id
POOL_SIZE = 256

_left: deque[bytes] = deque()
os.register_at_fork(after_in_child=_left.clear)  # a forked process must not reuse them


def new_id() -> str:
    """Return a unique id: milliseconds, so that ids sort by time, and 80 random bits.

    >>> len(new_id()), new_id() == new_id()
    (32, False)
    """
    try:
        chance = _left.pop()
    except IndexError:
        pool = os.urandom(RANDOM_BYTES * (POOL_SIZE + 1))
        _left.extend(pool[start : start + RANDOM_BYTES] for start in range(RANDOM_BYTES, len(pool), RANDOM_BYTES))
        chance = pool[:RANDOM_BYTES]
    return f"{time.time_ns() // 1_000_000:012x}{chance.hex()}"
