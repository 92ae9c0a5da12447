"""Every policy of the showcase certified, each in a folder of its own, with an index page: `make certificates`."""

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_page import page
from stagewise.reports.evidence import SUPPORTED
from stagewise.reports.files import write_text
from stagewise.simulation.certify import certify
from stagewise_reproduction.certificates_index import index
from stagewise_reproduction.instances import slug
from stagewise_reproduction.showcase import CASES, ROUNDS, Case


class Outcome(NamedTuple):
    """What came out, and what had to."""

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
) -> list[Outcome]:
    """Certify every case into a folder of its own, and write the index."""
    for case in CASES if cases is None else cases:
        certify(
            case.policy,
            case.world,
            rounds=min(rounds, case.most[0]),
            runs=min(runs, case.most[1]),
            confidence=confidence,
            executor=executor,
            progress=progress,
            out=out / slug(case.name),
            name=case.title,
        )
    return indexed(out)


def indexed(out: Path) -> list[Outcome]:
    """Write index.html and index.json of the certificates that are there, those of the showcase first."""
    outcomes, found = [], {}
    for case in CASES:
        if (out / slug(case.name) / "certificate.json").exists():
            found[slug(case.name)] = Certificate.load(out / slug(case.name))
            outcomes.append(outcome_of(case, found[slug(case.name)]))
    others = [path.parent for path in sorted(out.glob("*/certificate.json")) if path.parent.name not in found]
    more = {folder.name: Certificate.load(folder) for folder in others}
    expected = {slug(one.name): one.expected for one in outcomes}
    write_text(out / "index.html", index({**found, **more}, expected))
    write_text(out / "index.json", json.dumps([one._asdict() for one in outcomes], indent=1) + "\n")
    return outcomes


def redraw(out: Path) -> list[Outcome]:
    """Draw every page and the index again from the files that are there; nothing is played."""
    for path in sorted(out.glob("*/certificate.json")):
        write_text(path.with_suffix(".html"), page(Certificate.load(path).content))
    return indexed(out)


def outcome_of(case: Case, certificate: Certificate) -> Outcome:
    """Return whether the verdict is the one that is due."""
    right = certificate.holds if case.expected == SUPPORTED else certificate.verdict == case.expected
    return Outcome(case.name, case.expected, certificate.verdict, right)


def command(
    out: Annotated[Path, typer.Option(help="The folder for the certificates and their index.")],
    runs: Annotated[int, typer.Option(help="At most so many runs of each.")] = 4000,
    only: Annotated[str, typer.Option(help="Certify only those whose folder's name begins so.")] = "",
    drawn: Annotated[
        bool, typer.Option("--redraw", help="Draw the pages again from their files; nothing is played.")
    ] = False,
) -> None:
    """Certify every policy on the paper's problems; fails unless those that must be refuted are, and no others."""
    chosen = tuple(case for case in CASES if slug(case.name).startswith(only))
    outcomes = redraw(out) if drawn else certify_all(out, runs=runs, cases=chosen)
    for one in outcomes:
        typer.echo(f"{one.verdict:>10}  {one.name} (expected: {one.expected})")
    typer.echo(f"The index: {out / 'index.html'}")
    if not all(one.as_expected for one in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(command)
