"""Ownership of agent files: an agent replaces only files that it loaded or saved, and that nobody changed since.

Two agents that continue from one file draw the same random numbers, and each overwrites what the other learned. Every
save therefore has a number and a writer, and a file that changed is not replaced.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from stagewise.files.atomic_write import compute_sha256, write_bytes
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path


class Ownership:
    """The number of saves of an agent, and the files it knows."""

    def __init__(self, generation: int = 0, known: dict[str, tuple[str, int]] | None = None) -> None:
        self.generation = generation
        self.writer = secrets.token_hex(8)
        self.known = known or {}  # by path: the fingerprint of the file as last seen, and the agent's round then

    def clone(self) -> "Ownership":
        """Return a copy for a copy of the agent, which is another writer."""
        return Ownership(self.generation, dict(self.known))

    def learn(self, path: Path, content: bytes, round_: int) -> None:
        """Remember the content of a file."""
        self.known[os.path.realpath(path)] = compute_sha256(content), round_

    def stamp(self) -> dict[str, Any]:
        """Return the number and the writer of the next save."""
        return {"generation": self.generation + 1, "writer": self.writer}

    def write(self, path: Path, content: bytes, round_: int, overwrite: bool) -> None:
        """Write the next save, if the path is new or holds a file of this agent."""

        def check(content_now: bytes) -> None:
            digest, round_read = self.known.get(os.path.realpath(path), (None, 0))
            if digest is None:
                raise InvalidFile(
                    ErrorCode.FILE_EXISTS,
                    "{path} exists, and this agent neither loaded nor saved it; save to another path, or "
                    "give overwrite=True to replace it",
                    path=format_path(path),
                )
            if digest != compute_sha256(content_now):
                raise InvalidFile(
                    ErrorCode.FILE_CHANGED,
                    "{path} was changed by another process after this agent read it at round {round}; it is "
                    "not overwritten, since both may have used the same random numbers, so load it again or "
                    "save to another path",
                    path=format_path(path),
                    round=round_read,
                )

        write_bytes(path, content, None if overwrite else check)
        self.generation += 1
        self.learn(path, content, round_)
