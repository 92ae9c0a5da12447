"""The folder of one plan: each batch of runs when it is finished, and all of them at the end."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.atomic_write import write_text
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.reports.output_files import check_folder, make_folder
from stagewise.reports.result import Result, load_if_present

PLAN_KEYS = (
    "policy",
    "world",
    "rounds",
    "record_points",
    "seed",
    "audit",
    "warm_start",
)  # the same for all runs of a plan


class Folder:
    """The folder of the runs of one plan; without a `path` nothing is saved, and a folder of another plan is rejected.

    `single`: all runs are one batch. `again` False: saved runs are not reused, because the plan does not describe the
    worlds.
    """

    def __init__(
        self,
        path: Path | None,
        plan: dict[str, Any],
        same: Sequence[str] = PLAN_KEYS,
        single: bool = False,
        again: bool = True,
    ) -> None:
        self.path = None if path is None else check_folder(path)  # before hours of play, not after
        self.plan, self.single, self.again = plan, single, again
        self.has_plan = self.path is not None and check_plan(self.path, plan, same)

    def get_part_path(self, runs: Sequence[int]) -> Path | None:
        """Return the folder of these runs."""
        if self.path is None or self.single:
            return self.path
        name = f"run-{runs[0]:06d}" if len(runs) == 1 else f"runs-{runs[0]:06d}-{runs[-1]:06d}"
        return self.path / "parts" / name

    def found(self, runs: Sequence[int]) -> Result | None:
        """Return saved runs, or None."""
        batch_path = self.get_part_path(runs) if self.has_plan and self.again else None
        result = None if batch_path is None else load_if_present(batch_path)
        return result if result is not None and np.array_equal(result.runs, runs) else None

    def keep(self, result: Result) -> bool:
        """Save runs, and return whether they are saved."""
        batch_path = self.get_part_path(result.runs.tolist())
        if batch_path is None or not self.again or self.single:
            return False
        self.begin()
        result.save(batch_path)
        return True

    def finish(self, result: Result) -> None:
        """Save all runs together, for `Result.load`."""
        if self.path is not None:
            self.begin()
            result.save(self.path)

    def begin(self) -> None:
        """Write the plan, so that the folder is used for nothing else."""
        if self.path is not None and not self.has_plan:
            write_text(make_folder(self.path) / "plan.json", json.dumps(self.plan, indent=1))
            self.has_plan = True


def check_plan(path: Path, plan: dict[str, Any], same: Sequence[str]) -> bool:
    """Return whether the folder has a plan; raise if it is another one."""
    plan_path = path / "plan.json"
    try:
        stored = json.loads(plan_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be used as a folder: {strerror}",
            folder=path,
            strerror=error.strerror,
        ) from None
    except ValueError as error:
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT, "{path} is corrupt: {error}; choose another folder", path=plan_path, error=error
        ) from None

    for key in same:
        if not isinstance(stored, dict) or stored.get(key) != plan.get(key):
            raise InvalidFile(
                ErrorCode.FILE_EXISTS,
                "{folder} holds runs of another plan, which has a different {key}; choose another folder",
                folder=path,
                key=key,
            )
    return True
