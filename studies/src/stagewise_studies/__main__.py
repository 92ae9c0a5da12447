"""`python -m stagewise_studies [NAME ...]`: run studies on real data; all of them by default."""

from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.console import handle_errors
from stagewise.problem.errors import ErrorCode

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def studies(
    names: Annotated[list[str] | None, typer.Argument(help="Studies by name; default: all.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for results, pictures and pages.")] = Path("results/studies"),
    seeds: Annotated[int, typer.Option(help="Seeds; 0: as many as the study says.", min=0)] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: as many as the study says.", min=0)] = 0,
) -> None:
    """Fetch the data of studies, simulate them, and write results, plots and pages.

    Exits with 2 if data are missing, and with 1 if a claim does not hold at the study's own size.
    """
    from stagewise.problem.errors import InvalidProblem
    from stagewise_studies.catalogue import list_names, load_study
    from stagewise_studies.run import run_study
    from stagewise_studies.study import Size

    failures = 0
    for name in names or list_names():
        with handle_errors():
            if name not in list_names():
                raise InvalidProblem(
                    ErrorCode.UNKNOWN_NAME,
                    "there is no study {name!r}; the studies are {names}",
                    name=name,
                    names=", ".join(list_names()),
                )
            default_size = load_study(name).SIZE
            size = Size(seeds or default_size.seeds, rounds or default_size.rounds)
            result = run_study(name, out, size)
        typer.echo(f"{name}: {result['title']}")
        for claim in result["claims"]:
            verdict = "holds" if claim["holds"] else "does not hold"
            failures += not claim["holds"] and size == default_size
            typer.echo(f"{verdict:>15}  {claim['message']}: {claim['value']:.4g} ({claim['criterion']})")
        typer.echo(f"{'':>15}  {out / name / 'index.html'}, in {result['seconds']:g} seconds\n")
    if failures:
        raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="studies")
