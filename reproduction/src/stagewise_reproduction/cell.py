"""One curve of an experiment: what is played, how often, and under which name its results are kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.problem.errors import InvalidFile
from stagewise.reports.result import Result, merged
from stagewise.reports.result import kept as kept_result
from stagewise.simulation.simulate import simulate

RECORD = 400  # points kept of every run
SEED = 0
Play = Callable[[int], Result]  # the number of a run → its result


@dataclass(frozen=True)
class Cell:
    """A curve over several runs. Equal plans give equal results, to the bit."""

    name: str
    settings: dict[str, Any]  # policy, preset, d, tau, …: what the manifest says of it
    rounds: int
    runs: int
    play: Play

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is compiled for it: cells of one policy share that, in comparisons those of one policy and family."""
        return self.settings["preset"], self.settings["policy"], self.settings.get("family")

    @property
    def plan(self) -> dict[str, Any]:
        """What the results are a function of."""
        plan = {"cell": self.name, **self.settings, "rounds": self.rounds, "runs": self.runs, "seed": SEED}
        copy: dict[str, Any] = json.loads(json.dumps(plan))
        return copy


def simulated(make: Callable[[int], tuple[Any, Any]], rounds: int) -> Play:
    """Return how a run is played where each run has its own policy and world."""

    def play(run: int) -> Result:
        policy, world = make(run)
        return simulate(policy, world, rounds=rounds, runs=[run], seed=SEED, record=RECORD, progress=False)

    return play


def repeated(policy: Any, world: Any, rounds: int) -> Play:
    """Return how a run is played where all runs share policy and world."""
    return simulated(lambda _: (policy, world), rounds)


def kept(cell: Cell, folder: Path, run: int) -> Result | None:
    """Return a run that is kept already, if it is of this plan."""
    try:
        result = kept_result(folder / cell.name / "parts" / f"run-{run:03d}")
    except InvalidFile:
        return None
    return result if result is not None and result.manifest.get("plan") == cell.plan else None


def played(cell: Cell, folder: Path, run: int) -> float:
    """Play one run unless it is kept already; return its seconds."""
    done = kept(cell, folder, run)
    if done is None:
        done = cell.play(run)
        done.manifest.update({"plan": cell.plan})
        done.save(folder / cell.name / "parts" / f"run-{run:03d}")
    return float(done.manifest["seconds"])


def gathered(cell: Cell, folder: Path) -> Result:
    """Return all runs of a cell as one result, and keep it where `Result.load` finds it."""
    found = [kept(cell, folder, run) for run in range(cell.runs)]
    parts = [part for part in found if part is not None]
    if len(parts) < cell.runs:
        raise InvalidFile(f"{folder / cell.name} lost runs after they were played; the same call plays them again")
    whole = merged(parts)
    seconds = [part.manifest["seconds"] for part in parts]
    each = [part.manifest["thresholds"] for part in parts]
    told = {name: value for name, value in cell.settings.items() if name != "policy"}
    manifest = {**whole.manifest, **told, "cell": cell.settings, "plan": cell.plan, "seconds": sum(seconds)}
    manifest["seconds_of_runs"] = seconds
    if "empty" in whole.manifest:  # rounds in which nothing was certified (`beyond/as_printed`)
        manifest["empty"] = [part.manifest["empty"] for part in parts]
    if any(one != each[0] for one in each):
        manifest["thresholds_of_runs"] = each
    result = Result(**{**vars(whole), "manifest": manifest})
    result.save(folder / cell.name)
    return result
