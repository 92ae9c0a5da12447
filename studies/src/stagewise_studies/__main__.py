"""`python -m stagewise_studies [NAME ...]`: run studies on real data, all of them where none is named."""

from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.saying import in_a_sentence

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def studies(
    names: Annotated[list[str] | None, typer.Argument(help="Studies by name; default: all.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for results, pictures and pages.")] = Path("results/studies"),
    seeds: Annotated[int, typer.Option(help="Seeds; 0: as many as the study says.", min=0)] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: as many as the study says.", min=0)] = 0,
) -> None:
    """Fetch the data of studies, play them, and write results, pictures and pages.

    Leaves with 2 where data are missing, with 1 where a claim does not hold at the study's own size.
    """
    from stagewise.problem.errors import InvalidProblem
    from stagewise_studies.catalogue import names as known
    from stagewise_studies.catalogue import study
    from stagewise_studies.run import run
    from stagewise_studies.study import Size

    lost = 0
    for name in names or known():
        with in_a_sentence():
            if name not in known():
                raise InvalidProblem(f"there is no study {name!r}; there are {', '.join(known())}")
            own = study(name).SIZE
            size = Size(seeds or own.seeds, rounds or own.rounds)
            told = run(name, out, size)
        typer.echo(f"{name}: {told['title']}")
        for claim in told["claims"]:
            word = "holds" if claim["holds"] else "does not hold"
            lost += not claim["holds"] and size == own
            typer.echo(f"{word:>15}  {claim['sentence']}: {claim['value']:.4g} ({claim['criterion']})")
        typer.echo(f"{'':>15}  {out / name / 'index.html'}, in {told['seconds']:g} seconds\n")
    if lost:
        raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="studies")
