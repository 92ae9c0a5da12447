"""The folder of one plan: each part of its runs as soon as it was played, and the whole in the end."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import made, usable, write_text
from stagewise.reports.result import Result, kept

SAME = ("policy", "world", "rounds", "record", "seed", "audit", "learned")  # what runs of one plan have in common


class Folder:
    """Where the runs of one plan are kept; `place` None keeps nothing. A folder of another plan is refused.

    `single`: all runs are played at once, and the only part is the whole. `again` False: nothing in it is played on
    from, since no file could tell whether the runs of the next plan are the same.
    """

    def __init__(
        self,
        place: Path | None,
        plan: dict[str, Any],
        same: Sequence[str] = SAME,
        single: bool = False,
        again: bool = True,
    ) -> None:
        self.place = None if place is None else usable(place)  # refused now, and not after hours of play
        self.plan, self.single, self.again = plan, single, again
        self.begun = self.place is not None and agreed(self.place, plan, same)

    def part(self, runs: Sequence[int]) -> Path | None:
        """Return where these runs are kept by themselves."""
        if self.place is None or self.single:
            return self.place
        name = f"run-{runs[0]:06d}" if len(runs) == 1 else f"runs-{runs[0]:06d}-{runs[-1]:06d}"
        return self.place / "parts" / name

    def found(self, runs: Sequence[int]) -> Result | None:
        """Return runs that were played before, as they were written."""
        path = self.part(runs) if self.begun and self.again else None
        result = None if path is None else kept(path)
        return result if result is not None and np.array_equal(result.runs, runs) else None

    def keep(self, result: Result) -> bool:
        """Keep runs by themselves, and say whether they are."""
        path = self.part(result.runs.tolist())
        if path is None or not self.again or self.single:
            return False
        self.begin()
        result.save(path)
        return True

    def finish(self, result: Result) -> None:
        """Keep all runs together, where `Result.load` finds them."""
        if self.place is not None:
            self.begin()
            result.save(self.place)

    def begin(self) -> None:
        """Write down what the folder is for, so that nothing else is put there."""
        if self.place is not None and not self.begun:
            write_text(made(self.place) / "plan.json", json.dumps(self.plan, indent=1))
            self.begun = True


def agreed(place: Path, plan: dict[str, Any], same: Sequence[str]) -> bool:
    """Say whether a folder was begun; refuse one that was begun for another plan."""
    path = place / "plan.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidFile(f"{place} cannot be used as a folder: {error.strerror}") from None
    except ValueError as error:
        raise InvalidFile(f"{path} is not whole: {error}; choose another folder") from None
    if isinstance(told, dict) and "start" in told:  # what `learned` was called before
        told["learned"] = told.pop("start")
    for key in same:
        if not isinstance(told, dict) or told.get(key) != plan.get(key):
            raise InvalidFile(f"{place} holds runs of another plan, whose {key} differs; choose another folder")
    return True
