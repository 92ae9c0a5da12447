"""Ids that nobody has.

Asking the system for randomness gives way to every other thread of the process, and under load that takes longer than
the decision itself; so it is asked for many ids at once.
"""

import os
import time
from collections import deque

RANDOM = 10  # bytes of an id
AT_ONCE = 256

_left: deque[bytes] = deque()
os.register_at_fork(after_in_child=_left.clear)  # two processes never share one


def fresh_id() -> str:
    """Return an id: milliseconds, so that ids lie in the order of time, and 80 random bits.

    >>> len(fresh_id()), fresh_id() == fresh_id()
    (32, False)
    """
    try:
        chance = _left.pop()
    except IndexError:
        pool = os.urandom(RANDOM * (AT_ONCE + 1))
        _left.extend(pool[start : start + RANDOM] for start in range(RANDOM, len(pool), RANDOM))
        chance = pool[:RANDOM]
    return f"{time.time_ns() // 1_000_000:012x}{chance.hex()}"
