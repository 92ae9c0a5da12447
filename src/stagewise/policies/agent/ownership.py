"""The files of one agent. It replaces what it loaded or saved itself, as long as nobody else has changed it.

Two agents that went on from one file draw the same random numbers, and what one learned the other overwrites. So every
save is told apart by its number and its writer, and a file that is no longer the one an agent knows is not replaced.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from stagewise.files.paths import named
from stagewise.files.whole import fingerprint, write_bytes
from stagewise.problem.errors import InvalidFile


class Ownership:
    """How often an agent was saved, and which files it knows."""

    def __init__(self, generation: int = 0, known: dict[str, tuple[str, int]] | None = None) -> None:
        self.generation = generation
        self.writer = secrets.token_hex(8)
        self.known = known or {}  # by path: the fingerprint of the file as last seen, and the agent's round then

    def copied(self) -> "Ownership":
        """Return the same for a copy of the agent, which is another writer."""
        return Ownership(self.generation, dict(self.known))

    def learn(self, path: Path, content: bytes, round_: int) -> None:
        """Remember a file as it is now."""
        self.known[os.path.realpath(path)] = fingerprint(content), round_

    def stamp(self) -> dict[str, Any]:
        """Return what tells the next save from all others."""
        return {"generation": self.generation + 1, "writer": self.writer}

    def write(self, path: Path, content: bytes, round_: int, overwrite: bool) -> None:
        """Write the next save, if the place is new or holds what this agent knows."""

        def check(there: bytes) -> None:
            print_, seen = self.known.get(os.path.realpath(path), (None, 0))
            if print_ is None:
                raise InvalidFile(
                    f"{named(path)} holds what this agent neither loaded nor saved, so it is left as it is; "
                    "save under another name, or give overwrite=True to replace it"
                )
            if print_ != fingerprint(there):
                raise InvalidFile(
                    f"{named(path)} was saved or changed by another since this agent had it at round {seen}; if that "
                    "one went on from there, both drew the same random numbers; nothing was written, so load it "
                    "again, or save under another name"
                )

        write_bytes(path, content, None if overwrite else check)
        self.generation += 1
        self.learn(path, content, round_)
