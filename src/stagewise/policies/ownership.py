"""The files of one agent. It replaces what it loaded or saved itself, as long as nobody else has changed it.

Two agents that went on from one file draw the same random numbers, and what one learned the other overwrites. So every
save is told apart by its number and its writer, and a file that is no longer the one an agent knows is not replaced.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.files.owned import fingerprint, put_in_place
from stagewise.files.paths import named
from stagewise.files.whole import place_for, replace, write_bytes
from stagewise.problem.errors import InvalidFile


class Known(NamedTuple):
    """A file as an agent last saw it."""

    fingerprint: str
    round: int  # of the agent, then


class Ownership:
    """How often an agent was saved, and which files it knows."""

    def __init__(self, generation: int = 0, known: dict[str, Known] | None = None) -> None:
        self.generation = generation
        self.writer = secrets.token_hex(8)
        self.known = known or {}

    def copied(self) -> "Ownership":
        """Return the same for a copy of the agent, which is another writer."""
        return Ownership(self.generation, dict(self.known))

    def learn(self, path: Path, content: bytes, round_: int) -> None:
        """Remember a file as it is now."""
        self.known[os.path.realpath(path)] = Known(fingerprint(content), round_)

    def write(self, path: Path, encode: Callable[[dict[str, Any]], bytes], round_: int, overwrite: bool) -> None:
        """Write a file of the next generation, if the place is new or holds what this agent knows."""
        known = self.known.get(str(place_for(path)))  # refused before the work of encoding

        def move(draft: Path, place: Path) -> None:
            if overwrite:
                replace(draft, place)
            elif not put_in_place(draft, place, known and known.fingerprint):
                raise InvalidFile(strange(path) if known is None else changed(path, known.round))

        content = encode({"generation": self.generation + 1, "writer": self.writer})
        write_bytes(path, content, move)
        self.generation += 1
        self.learn(path, content, round_)


def strange(path: Path) -> str:
    """Say that a file is not this agent's."""
    return (
        f"{named(path)} holds what this agent neither loaded nor saved, so it is left as it is; "
        "save under another name, or give overwrite=True to replace it"
    )


def changed(path: Path, round_: int) -> str:
    """Say that a file was this agent's."""
    return (
        f"{named(path)} was saved or changed by another since this agent had it at round {round_}; if that one went "
        "on from there, both drew the same random numbers; nothing was written, so load it again, or save under "
        "another name"
    )
