"""Play the runs that are not stored, draw figures, check claims and write the report."""

import json
import multiprocessing
import os
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.files.paths import write_text
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import suggest_name
from stagewise.reports.output_files import check_folder, make_folder
from stagewise.simulation.executors import open_pool, run_tasks
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.cell import Cell, merge_runs, play_run
from stagewise_reproduction.claim import FAILS, Claim
from stagewise_reproduction.drawing import save_figure
from stagewise_reproduction.experiment import PRESETS, Experiment
from stagewise_reproduction.instances import SIZES
from stagewise_reproduction.report import Section
from stagewise_reproduction.report_page import render_page
from stagewise_reproduction.report_text import render_text


class Job(NamedTuple):
    """One run of one curve, identified by names so that another process can find it."""

    experiment: str
    preset: str
    size: str
    cell: str
    run: int


def select_presets(experiment: Experiment, presets: Iterable[str]) -> list[str]:
    """Return the requested presets of an experiment; one that does not distinguish presets is played once."""
    preset_cells = [preset for preset in presets if preset in experiment.presets]
    return preset_cells or [experiment.presets[0]]


@cache
def get_cells(experiment: str, preset: str, size: str) -> dict[str, Cell]:
    """Return the curves of an experiment by name."""
    return {cell.name: cell for cell in CATALOGUE[experiment].cells(preset, size)}


def run_job(job: Job, out: str) -> float:
    """Play one run, in any process."""
    cell = get_cells(job.experiment, job.preset, job.size)[job.cell]
    return play_run(cell, Path(out) / "results" / job.experiment, job.run)


def reproduce(names: list[str], presets: list[str], size: str, out: Path, jobs: int) -> list[Claim]:
    """Run experiments and write results, figures, claims.json and the report; return the claims."""
    check_names(names, CATALOGUE, "experiment")
    check_names(presets, PRESETS, "preset")
    check_names([size], SIZES, "size")
    check_folder(out)
    selected = [(CATALOGUE[name], preset) for name in names for preset in select_presets(CATALOGUE[name], presets)]
    cells = {(e.name, preset): e.cells(preset, size) for e, preset in selected}
    run_all(cells, size, out, jobs if jobs > 0 else os.cpu_count() or 1)
    make_folder(out / "figures" / "phone")
    sections = []
    for experiment, preset in selected:
        folder = out / "results" / experiment.name
        results = {cell.name: merge_runs(cell, folder) for cell in cells[experiment.name, preset]}
        picture = experiment.name if len(experiment.presets) == 1 else f"{experiment.name}-{preset}"
        section = Section(experiment, preset, picture, results, [])
        save_figure(partial(experiment.draw, preset, results), out / "figures", picture, section.label)
        if experiment.table is not None:
            write_text(out / f"{picture}.md", experiment.table(results))
        preset_cells = preset if section.label else ""
        claims = [
            claim._replace(experiment=experiment.name, preset=preset_cells)
            for claim in experiment.check(preset, results)
        ]
        sections.append(section._replace(claims=claims))
    all_claims = [claim for section in sections for claim in section.claims]
    write_text(out / "claims.json", json.dumps([to_json(claim) for claim in all_claims], indent=1, ensure_ascii=False))
    write_text(out / "report.html", render_page(out, size, sections))
    write_text(out / "report.md", render_text(size, sections))
    return all_claims


def to_json(claim: Claim) -> dict[str, Any]:
    """Return a claim as a dict for claims.json."""
    return {**claim._asdict(), "limits": None if claim.limits is None else claim.limits._asdict()}


def run_all(cells: dict[tuple[str, str], list[Cell]], size: str, out: Path, jobs: int) -> None:
    """Play every run with a progress bar; one run of each kind goes first, in this process, to compile."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    first: dict[Any, Job] = {}
    rest: list[Job] = []
    rounds: dict[Job, int] = {}
    for (experiment, preset), preset_cells in cells.items():
        for cell in preset_cells:
            for run in range(cell.runs):
                job = Job(experiment, preset, size, cell.name, run)
                rounds[job] = cell.rounds
                if first.setdefault(cell.kind, job) != job:
                    rest.append(job)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns) as progress,
        open_pool(jobs, multiprocessing.get_context("spawn")) as processes,
    ):
        batches = (("compiling", first.values(), None), ("playing", rest, processes if jobs > 1 else None))
        for words, batch, workers in batches:
            task = progress.add_task(f"{words} ({sum(rounds[job] for job in batch):,} rounds)", total=len(batch))
            for _ in run_tasks(run_job, {job: (job, str(out)) for job in batch}, workers):
                progress.advance(task)


def check_names(values: list[str], choices: Any, setting: str) -> None:
    """Reject unknown names."""
    for name in values:
        if name not in choices:
            near = suggest_name(name, list(choices))
            raise InvalidProblem(
                ErrorCode.INVALID_CHOICE,
                "{setting} is {name!r}; it must be one of {choices}{near}",
                setting=setting,
                name=name,
                choices=", ".join(choices),
                near=near,
            )


def find_failed(claims: list[Claim]) -> list[Claim]:
    """Return the required claims that do not hold."""
    return [claim for claim in claims if claim.must_hold and claim.verdict == FAILS]
