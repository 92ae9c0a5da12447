"""What this machine can hold."""

import os

GIB = 2**30


def memory() -> float:
    """Return this machine's memory in bytes, or infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
