"""Who decided: the mark that begins every decision's id, and a stream of random numbers of one's own.

An agent without a name draws with Philox's key = its seed and run = 0, as simulations do. Every named decider takes
both from a digest of seed and names: 64 bits of key and 32 of the counter, the run, which is never 0. So it never meets
the nameless agent's numbers of the same key, and two names share them with probability 2⁻⁹⁶.
"""

import hashlib
import json
from typing import Any

from stagewise.kernels.draw import signed
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem

LONGEST = 200  # characters of a name


def name_of(value: Any, what: str) -> str:
    """Return a name: a text, which may be empty for an agent."""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise InvalidProblem(f"{what} is {shown(value)}; it must be a text of at most {LONGEST} characters")
    return str.__str__(value)


def digest(purpose: str, seed: int, *names: str) -> bytes:
    """Return 32 bytes that follow from a seed and names."""
    return hashlib.sha256(json.dumps([purpose, seed, *names]).encode()).digest()


def mark_of(seed: int, *names: str) -> str:
    """Return what an agent's ids begin with, and those of its replicas.

    >>> mark_of(7, "")
    '088bcc8335aabd4a'
    """
    first = digest("mark", seed, names[0])[:8].hex()
    return first if len(names) == 1 else f"{first}.{digest('mark', seed, *names)[:8].hex()}"


def stream_of(seed: int, *names: str) -> tuple[int, int]:
    """Return the key and the run of a decider's random numbers."""
    if names == ("",):
        return signed(seed), 0
    told = digest("stream", seed, *names)
    return signed(int.from_bytes(told[:8], "big")), 1 + int.from_bytes(told[8:12], "big") % (2**32 - 1)
