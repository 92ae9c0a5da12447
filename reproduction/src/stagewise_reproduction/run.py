"""Play what is not kept yet, draw, check, report."""

import json
import multiprocessing
import os
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import nearest
from stagewise.reports.files import made, usable, write_text
from stagewise.simulation.executors import performed, pool
from stagewise.simulation.jobs import Interrupted, counting
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.cell import Cell, gathered, played
from stagewise_reproduction.claim import FAILS, Claim
from stagewise_reproduction.drawing import save
from stagewise_reproduction.experiment import PRESETS, Experiment
from stagewise_reproduction.instances import SIZES
from stagewise_reproduction.report import Section
from stagewise_reproduction.report_page import page
from stagewise_reproduction.report_text import text


class Job(NamedTuple):
    """One run of one curve, named so that another process can find it."""

    experiment: str
    preset: str
    size: str
    cell: str
    run: int


def chosen_presets(experiment: Experiment, presets: Iterable[str]) -> list[str]:
    """Return the presets of an experiment that are asked for; what it does not distinguish is played once."""
    own = [preset for preset in presets if preset in experiment.presets]
    return own or [experiment.presets[0]]


@cache
def cells_of(experiment: str, preset: str, size: str) -> dict[str, Cell]:
    """Return the curves of an experiment by name."""
    return {cell.name: cell for cell in CATALOGUE[experiment].cells(preset, size)}


def perform(job: Job, out: str) -> float:
    """Play one run, in whichever process."""
    cell = cells_of(job.experiment, job.preset, job.size)[job.cell]
    return played(cell, Path(out) / "results" / job.experiment, job.run)


def reproduce(names: list[str], presets: list[str], size: str, out: Path, jobs: int) -> list[Claim]:
    """Run experiments and write results, figures, claims.json and the report; return the claims."""
    checked(names, CATALOGUE, "experiment")
    checked(presets, PRESETS, "preset")
    checked([size], SIZES, "size")
    usable(out)
    asked = [(CATALOGUE[name], preset) for name in names for preset in chosen_presets(CATALOGUE[name], presets)]
    cells = {(e.name, preset): e.cells(preset, size) for e, preset in asked}
    play_all(cells, size, out, jobs if jobs > 0 else os.cpu_count() or 1)
    made(out / "figures" / "phone")
    sections = []
    for experiment, preset in asked:
        folder = out / "results" / experiment.name
        results = {cell.name: gathered(cell, folder) for cell in cells[experiment.name, preset]}
        picture = experiment.name if len(experiment.presets) == 1 else f"{experiment.name}-{preset}"
        section = Section(experiment, preset, picture, results, [])
        save(partial(experiment.draw, preset, results), out / "figures", picture, section.label)
        if experiment.table is not None:
            write_text(out / f"{picture}.md", experiment.table(results))
        own = preset if section.label else ""
        claims = [claim._replace(experiment=experiment.name, preset=own) for claim in experiment.check(preset, results)]
        sections.append(section._replace(claims=claims))
    everything = [claim for section in sections for claim in section.claims]
    write_text(out / "claims.json", json.dumps([listed(claim) for claim in everything], indent=1, ensure_ascii=False))
    write_text(out / "report.html", page(out, size, sections))
    write_text(out / "report.md", text(size, sections))
    return everything


def listed(claim: Claim) -> dict[str, Any]:
    """Return a claim as claims.json has it."""
    return {**claim._asdict(), "limits": None if claim.limits is None else claim.limits._asdict()}


def play_all(cells: dict[tuple[str, str], list[Cell]], size: str, out: Path, jobs: int) -> None:
    """Play every run with a progress bar; the first of each kind go first, here, to compile for the others."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    first: dict[Any, Job] = {}
    rest: list[Job] = []
    rounds: dict[Job, int] = {}
    for (experiment, preset), own in cells.items():
        for cell in own:
            for run in range(cell.runs):
                job = Job(experiment, preset, size, cell.name, run)
                rounds[job] = cell.rounds
                if first.setdefault(cell.kind, job) != job:
                    rest.append(job)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    done = 0
    with (
        counting(lambda: Interrupted(done, len(rounds))),
        Progress(*columns) as progress,
        pool(jobs, multiprocessing.get_context("spawn")) as processes,
    ):
        batches = (("compiling", first.values(), None), ("playing", rest, processes if jobs > 1 else None))
        for words, batch, workers in batches:
            task = progress.add_task(f"{words} ({sum(rounds[job] for job in batch):,} rounds)", total=len(batch))
            for _ in performed(perform, {job: (job, str(out)) for job in batch}, workers):
                done += 1
                progress.advance(task)


def checked(given: list[str], known: Any, what: str) -> None:
    """Refuse a name that is not known."""
    for name in given:
        if name not in known:
            near = nearest(name, list(known))
            raise InvalidProblem(f"{what} is {name!r}; it must be one of {', '.join(known)}{near}")


def failed(claims: list[Claim]) -> list[Claim]:
    """Return the claims that had to hold and do not."""
    return [claim for claim in claims if claim.must_hold and claim.verdict == FAILS]
