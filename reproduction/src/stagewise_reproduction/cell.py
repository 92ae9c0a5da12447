"""One curve of an experiment: its policy and world, its runs, and the name of its results."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.reports.result import Result, merge_results
from stagewise.reports.result import load_if_present as kept_result
from stagewise.simulation.simulate import simulate

RECORD = 400  # recorded points of every run
SEED = 0
Play = Callable[[int], Result]  # number of a run → its result


@dataclass(frozen=True)
class Cell:
    """A curve over several runs. Equal plans give equal results, to the bit."""

    name: str
    settings: dict[str, Any]  # policy, preset, d, tau, …: written to the manifest
    rounds: int
    runs: int
    play: Play

    @property
    def kind(self) -> tuple[Any, ...]:
        """The key of its compiled code: cells of one policy (and, in comparisons, one family) share it."""
        return self.settings["preset"], self.settings["policy"], self.settings.get("family")

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that the results depend on."""
        plan = {"cell": self.name, **self.settings, "rounds": self.rounds, "runs": self.runs, "seed": SEED}
        copy: dict[str, Any] = json.loads(json.dumps(plan))
        return copy


def build_play(make: Callable[[int], tuple[Any, Any]], rounds: int) -> Play:
    """Return a function that plays a run with its own policy and world."""

    def play(run: int) -> Result:
        policy, world = make(run)
        return simulate(policy, world, rounds=rounds, runs=[run], seed=SEED, record_points=RECORD, progress=False)

    return play


def build_repeated_play(policy: Any, world: Any, rounds: int) -> Play:
    """Return a function that plays a run, with one policy and world for all runs."""
    return build_play(lambda _: (policy, world), rounds)


def load_run(cell: Cell, folder: Path, run: int) -> Result | None:
    """Return a stored run, if it was played with this plan."""
    try:
        result = kept_result(folder / cell.name / "parts" / f"run-{run:03d}")
    except InvalidFile:
        return None
    return result if result is not None and result.manifest.get("plan") == cell.plan else None


def play_run(cell: Cell, folder: Path, run: int) -> float:
    """Play one run unless it is stored; return its duration in seconds."""
    result = load_run(cell, folder, run)
    if result is None:
        result = cell.play(run)
        result.manifest.update({"plan": cell.plan})
        result.save(folder / cell.name / "parts" / f"run-{run:03d}")
    return float(result.manifest["seconds"])


def merge_runs(cell: Cell, folder: Path) -> Result:
    """Merge the runs of a cell into one result, and save it."""
    loaded = [load_run(cell, folder, run) for run in range(cell.runs)]
    run_results = [one_run for one_run in loaded if one_run is not None]
    if len(run_results) < cell.runs:
        raise InvalidFile(
            ErrorCode.FILE_NOT_FOUND,
            "{folder} lacks runs that were already played; repeat the call to play them again",
            folder=folder / cell.name,
        )
    merged = merge_results(run_results)
    seconds = [one_run.manifest["seconds"] for one_run in run_results]
    all_thresholds = [one_run.manifest["thresholds"] for one_run in run_results]
    extra = {name: value for name, value in cell.settings.items() if name != "policy"}
    manifest = {**merged.manifest, **extra, "cell": cell.settings, "plan": cell.plan, "seconds": sum(seconds)}
    manifest["seconds_of_runs"] = seconds
    if "empty" in merged.manifest:  # rounds in which no action was certified (`beyond/as_printed`)
        manifest["empty"] = [one_run.manifest["empty"] for one_run in run_results]
    if any(one != all_thresholds[0] for one in all_thresholds):
        manifest["thresholds_of_runs"] = all_thresholds
    result = Result(**{**vars(merged), "manifest": manifest})
    result.save(folder / cell.name)
    return result
