"""`stagewise reproduce`, which stagewise finds by the entry point in this package's pyproject.toml."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments by name, such as figure-1; default: all.")
    ] = None,
    preset: Annotated[str, typer.Option(help="text, authors or ours; several with commas.")] = "text",
    size: Annotated[
        str, typer.Option(help="quick, full (the paper's size), or smoke (only that everything works).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="The folder for results, figures and the report.")] = Path(
        "results/reproduction"
    ),
    jobs: Annotated[int, typer.Option(help="Processes; 0: one a core.")] = 0,
) -> None:
    """Run the paper's experiments, check its claims and write a report. Fails if a claim that must hold does not.

    Example: stagewise reproduce figure-1 --preset text --size quick
    """
    from stagewise.cli.main import in_a_sentence
    from stagewise_reproduction import run
    from stagewise_reproduction.catalogue import CATALOGUE
    from stagewise_reproduction.report import place_of, shown, summary

    with in_a_sentence(out):
        claims = run.reproduce(names or list(CATALOGUE), preset.split(","), size, out, jobs)
    for claim in claims:
        typer.echo(f"{claim.verdict:>19}  {place_of(claim)}: {claim.name}: {shown(claim.value)} ({claim.criterion})")
    typer.echo(f"\n{summary(size, claims)}")
    typer.echo(f"The report: {out / 'report.html'}")
    broken = run.failed(claims)
    if broken:
        typer.echo(f"stagewise: {len(broken)} claim(s) that must hold do not: {broken[0].name}", err=True)
        raise typer.Exit(1)
