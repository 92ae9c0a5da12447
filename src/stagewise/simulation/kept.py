"""Batches kept in a folder while a certificate is being made, so that one that was cut short goes on from there."""

import json
import shutil
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import in_one_step
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

    def path(self, first: int) -> Path:
        """Return where the batch from run `first` on lies."""
        assert self.folder is not None
        return self.folder / f"from-{first:09d}.npz"

    def keep(self, first: int, findings: Findings) -> None:
        """Write a batch, whole or not at all."""
        if self.folder is not None:
            begin(self.folder, self.plan)
            with in_one_step(self.path(first)) as draft, draft.open("wb") as file:
                np.savez(file, **findings._asdict())

    def found(self, first: int, count: int) -> Findings | None:
        """Return a batch that was played before: of these very runs, as the last one of a smaller plan is shorter."""
        if self.folder is None or not self.path(first).exists():
            return None
        try:
            with np.load(self.path(first), allow_pickle=False) as arrays:
                findings = Findings(*(arrays[name] for name in Findings._fields))
        except (OSError, ValueError, KeyError, BadZipFile):
            raise InvalidFile(f"{self.path(first)} is not a batch of runs; delete it, and it is played again") from None
        return findings if np.array_equal(findings.runs, np.arange(first, first + count)) else None

    def forget(self) -> None:
        """Take the batches away: the certificate is there."""
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)
