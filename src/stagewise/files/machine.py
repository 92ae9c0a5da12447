"""The memory of this machine."""

import os

GIB = 2**30


def get_total_memory() -> float:
    """Return this machine's memory in bytes, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
