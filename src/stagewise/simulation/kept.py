"""Batches kept in a folder while a certificate is being made, so that one that was cut short goes on from there."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.owned import fingerprint
from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import write_bytes
from stagewise.reports.findings import Findings
from stagewise.simulation.judge import OURS
from stagewise.simulation.plan import agreed, begin


class Kept:
    """The batches of one plan: `folder` None, or worlds that no file can tell apart, keep nothing."""

    def __init__(self, folder: Path | None, plan: dict[str, Any]) -> None:
        kind = plan["world"].get("world", {}).get("kind")  # none, where a function draws them
        known = kind in [world.__name__ for world in OURS] and isinstance(plan["policy"]["settings"], dict)
        self.folder = folder / "batches" if folder is not None and known else None
        self.plan = json.loads(json.dumps(plan))
        if self.folder is not None:
            agreed(self.folder, self.plan, self.plan)

    def keep(self, first: int, findings: Findings) -> None:
        """Write a batch, whole or not at all; its name vouches for what it holds."""
        if self.folder is not None:
            begin(self.folder, self.plan)
            buffer = io.BytesIO()
            np.savez(buffer, **findings._asdict())
            content = buffer.getvalue()
            write_bytes(self.folder / f"from-{first:09d}-{fingerprint(content)}.npz", content)

    def found(self, first: int, count: int) -> Findings | None:
        """Return a batch that was played before: of these very runs, as the last one of a smaller plan is shorter."""
        path = None if self.folder is None else next(self.folder.glob(f"from-{first:09d}-*.npz"), None)
        if path is None:
            return None
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InvalidFile(f"{path} cannot be read: {error.strerror}; delete it, and it is played again") from None
        if path.stem.rpartition("-")[2] != fingerprint(content):
            raise InvalidFile(f"{path} is not a batch of runs; delete it, and it is played again")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            findings = Findings(*(arrays[name] for name in Findings._fields))
        return findings if np.array_equal(findings.runs, np.arange(first, first + count)) else None

    def forget(self) -> None:
        """Take the batches away: the certificate is there."""
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)
