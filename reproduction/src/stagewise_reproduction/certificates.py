"""Certify every policy of the showcase, each in its own folder, with an index page: `make certificates`."""

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from stagewise.files.paths import write_text
from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.certificate_page import render_page
from stagewise.reports.evidence import SUPPORTED
from stagewise.simulation.certify import certify
from stagewise_reproduction.certificates_index import render_index
from stagewise_reproduction.instances import make_slug
from stagewise_reproduction.showcase import CASES, ROUNDS, Case


class CaseResult(NamedTuple):
    """The verdict of a case, and the expected one."""

    name: str
    expected: str
    verdict: str
    as_expected: bool


def certify_all(
    out: Path,
    *,
    runs: int,
    rounds: int = ROUNDS,
    confidence: float = 0.999,
    executor: Any = None,
    progress: bool = True,
    cases: tuple[Case, ...] | None = None,
) -> list[CaseResult]:
    """Certify every case into its own folder, and write the index."""
    for case in CASES if cases is None else cases:
        certify(
            case.policy,
            case.world,
            rounds=min(rounds, case.most[0]),
            runs=min(runs, case.most[1]),
            confidence=confidence,
            executor=executor,
            progress=progress,
            out=out / make_slug(case.name),
            name=case.title,
        )
    return write_index(out)


def write_index(out: Path) -> list[CaseResult]:
    """Write index.html and index.json of the existing certificates, those of the showcase first."""
    outcomes, certificates = [], {}
    for case in CASES:
        if (out / make_slug(case.name) / "certificate.json").exists():
            certificates[make_slug(case.name)] = SimulationCertificate.load(out / make_slug(case.name))
            outcomes.append(check_case(case, certificates[make_slug(case.name)]))
    others = [path.parent for path in sorted(out.glob("*/certificate.json")) if path.parent.name not in certificates]
    others_ = {folder.name: SimulationCertificate.load(folder) for folder in others}
    expected = {make_slug(one.name): one.expected for one in outcomes}
    write_text(out / "index.html", render_index({**certificates, **others_}, expected))
    write_text(out / "index.json", json.dumps([one._asdict() for one in outcomes], indent=1) + "\n")
    return outcomes


def redraw(out: Path) -> list[CaseResult]:
    """Render every page and the index again from the existing files; nothing is played."""
    for path in sorted(out.glob("*/certificate.json")):
        write_text(path.with_suffix(".html"), render_page(SimulationCertificate.load(path).content))
    return write_index(out)


def check_case(case: Case, certificate: SimulationCertificate) -> CaseResult:
    """Return a case's verdict, and whether it is the expected one."""
    is_expected = certificate.holds if case.expected == SUPPORTED else certificate.verdict == case.expected
    return CaseResult(case.name, case.expected, certificate.verdict, is_expected)


def command(
    out: Annotated[Path, typer.Option(help="The folder for the certificates and their index.")],
    runs: Annotated[int, typer.Option(help="At most so many runs of each.")] = 4000,
    only: Annotated[str, typer.Option(help="Certify only those whose folder's name begins so.")] = "",
    redraw_only: Annotated[
        bool, typer.Option("--redraw", help="Draw the pages again from their files; nothing is played.")
    ] = False,
) -> None:
    """Certify every policy on the paper's problems; fails unless those that must be refuted are, and no others."""
    chosen = tuple(case for case in CASES if make_slug(case.name).startswith(only))
    outcomes = redraw(out) if redraw_only else certify_all(out, runs=runs, cases=chosen)
    for one in outcomes:
        typer.echo(f"{one.verdict:>10}  {one.name} (expected: {one.expected})")
    typer.echo(f"The index: {out / 'index.html'}")
    if not all(one.as_expected for one in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(command)
