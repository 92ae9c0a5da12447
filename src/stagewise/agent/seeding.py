"""Id prefixes and random streams of agents and replicas.

An agent without a name uses Philox's key = its seed and run = 0, as simulations do. Every other decider derives both
from a digest of seed and names: 64 bits of key and 32 bits of the counter's run, which is never 0. So it never shares
the numbers of the unnamed agent, and two names share numbers with probability 2⁻⁹⁶.
"""

import hashlib
import json
from typing import Any

from stagewise.engine.random import to_signed_seed
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr

MAX_NAME_LENGTH = 200  # characters of a name


def check_name(value: Any, what: str) -> str:
    """Return a name, which may be empty for an agent."""
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH:
        raise InvalidProblem(
            ErrorCode.INVALID_NAME,
            "{what} is {value}; it must be a text of at most {max_name_length} characters",
            what=what,
            value=safe_repr(value),
            max_name_length=MAX_NAME_LENGTH,
        )
    return str.__str__(value)


def derive_digest(purpose: str, seed: int, *names: str) -> bytes:
    """Return 32 bytes derived from a seed and names."""
    return hashlib.sha256(json.dumps([purpose, seed, *names]).encode()).digest()


def derive_id_prefix(seed: int, *names: str) -> str:
    """Return the prefix of the ids of an agent or of one of its replicas.

    >>> derive_id_prefix(7, "")
    '088bcc8335aabd4a'
    """
    first = derive_digest("mark", seed, names[0])[:8].hex()
    return first if len(names) == 1 else f"{first}.{derive_digest('mark', seed, *names)[:8].hex()}"


def derive_stream(seed: int, *names: str) -> tuple[int, int]:
    """Return the key and the run of the random numbers."""
    if names == ("",):
        return to_signed_seed(seed), 0
    digest = derive_digest("stream", seed, *names)
    return to_signed_seed(int.from_bytes(digest[:8], "big")), 1 + int.from_bytes(digest[8:12], "big") % (2**32 - 1)
