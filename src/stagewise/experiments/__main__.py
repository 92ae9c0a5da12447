"""Run the paper's experiments and write a report: `python -m stagewise.experiments --size quick --out DIR`."""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from stagewise.experiments.figure_1 import claims, figure, plan
from stagewise.experiments.report import write


def run(size: str, out: Path, jobs: int) -> list[claims.Claim]:
    """Play what is not kept yet, draw, check, report."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    folder, pictures = out / "results" / "figure-1" / size, out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    pictures.mkdir(exist_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress, ProcessPoolExecutor(jobs) as pool:
        runs = [(cell, size, run, folder) for cell in plan.cells() for run in range(plan.SIZES[size][1])]
        task = progress.add_task("figure-1", total=len(runs))
        for done in as_completed([pool.submit(plan.play, *run) for run in runs]):
            done.result()
            progress.advance(task)
    figure.draw(folder, size, [pictures / "figure-1.png", pictures / "figure-1.svg"])
    checked = claims.check(folder, size)
    (out / "claims.json").write_text(json.dumps([claim._asdict() for claim in checked], indent=1, ensure_ascii=False))
    write(out, size, checked)
    return checked


def main() -> int:
    """Parse, run, print the claims; 1 if one that must hold does not."""
    parser = argparse.ArgumentParser(prog="stagewise.experiments", description=__doc__)
    parser.add_argument("--size", choices=sorted(plan.SIZES), default="quick")
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    checked = run(options.size, options.out, options.jobs)
    for claim in checked:
        print(f"{claim.verdict:>14}  {claim.name}: {claim.value} ({claim.criterion})")
    print(f"\nThe report: {options.out / 'report.html'}")
    return int(any(claim.must_hold and claim.verdict != "holds" for claim in checked))


if __name__ == "__main__":
    sys.exit(main())
