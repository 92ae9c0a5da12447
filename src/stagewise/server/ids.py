"""Unique ids."""

import os
import time


def new_id() -> str:
    """Return a unique id: milliseconds, so that ids sort by time, and 80 random bits.

    >>> len(new_id()), new_id() == new_id()
    (32, False)
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
