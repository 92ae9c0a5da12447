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
    preset: Annotated[str, typer.Option(help="text, authors or ours; separate several with commas.")] = "text",
    size: Annotated[
        str, typer.Option(help="quick, full (the paper's size), or smoke (only tests that everything runs).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="The folder for results, figures and the report.")] = Path(
        "results/reproduction"
    ),
    jobs: Annotated[int, typer.Option(help="Number of processes; 0: one per core.")] = 0,
) -> None:
    """Run the paper's experiments, check its claims and write a report. Exit code 1 if a required claim fails.

    Example: stagewise reproduce figure-1 --preset text --size quick
    """
    from stagewise.cli.console import handle_errors
    from stagewise_reproduction import run
    from stagewise_reproduction.catalogue import CATALOGUE
    from stagewise_reproduction.report import format_source, format_value, summarize

    with handle_errors(out):
        claims = run.reproduce(names or list(CATALOGUE), preset.split(","), size, out, jobs)
    for claim in claims:
        value = f"{format_value(claim.value)} ({claim.criterion})"
        typer.echo(f"{claim.verdict:>19}  {format_source(claim)}: {claim.name}: {value}")
    typer.echo(f"\n{summarize(size, claims)}")
    typer.echo(f"The report: {out / 'report.html'}")
    failed_claims = run.find_failed(claims)
    if failed_claims:
        typer.echo(f"stagewise: {len(failed_claims)} claim(s) that must hold do not: {failed_claims[0].name}", err=True)
        raise typer.Exit(1)
