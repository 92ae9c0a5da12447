"""`stagewise forecast`: what a policy would come to, from a log of what was done."""

from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.pairs import Names, pairs_of
from stagewise.cli.saying import in_a_sentence


def forecast(
    log: Annotated[Path, typer.Argument(help="What was done: a .csv, .parquet or .jsonl file.")],
    problem: Annotated[Path, typer.Argument(help="A TOML file that declares the problem.")],
    limits: Annotated[
        list[str] | None,
        typer.Option(help="Values to hold against each other: opt_out=0.01,0.02; again for another limit."),
    ] = None,
    days: Annotated[int, typer.Option(help="How many days.")] = 60,
    users: Annotated[float | None, typer.Option(help="Users a day; default: as in the log's times.")] = None,
    runs: Annotated[int, typer.Option(help="How many simulated campaigns; bands need at least 38.")] = 100,
    learn: Annotated[
        str, typer.Option(help="What the policy starts from: all rows, the later half, nothing, or a log's path.")
    ] = "all",
    names: Names = None,
    seed: Annotated[int, typer.Option(help="Where random numbers start.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for forecast.html, .png and .json.")] = Path("forecast"),
    executor: Annotated[str | None, typer.Option(help="processes:N, dask:ADDRESS; default: a process a core.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Simulate a problem's policy in the worlds that a log leaves open: gains by day, costs, what each limit costs.

    Example: stagewise forecast log.csv problem.toml --limits opt_out=0.01,0.02
    """
    from stagewise.launch.forecast.forecast import forecast as foretell
    from stagewise.launch.forecast.reading import ALL, LATER, NONE

    with in_a_sentence():
        found = foretell(
            log,
            problem,
            limits={name: values_in(text, name) for name, text in pairs_of(limits, "--limits").items()},
            days=days,
            users=users,
            runs=runs,
            seed=seed,
            learn=learn if learn in (ALL, LATER, NONE) else Path(learn),
            names=pairs_of(names, "--names"),
            executor=executor,
            progress=not quiet,
        )
        found.save(out)
    typer.echo(f"{found}\nThe page: {out / 'forecast.html'}")


def values_in(text: str, name: str) -> list[float]:
    """Return numbers as somebody typed them."""
    from stagewise.problem.errors import InvalidProblem
    from stagewise.problem.words import shown

    try:
        return [float(entry) for entry in text.split(",")]
    except ValueError:
        percent = "; write 1% as 0.01" if "%" in text else ""
        raise InvalidProblem(f"--limits {name} has {shown(text)}, which is no list of numbers{percent}") from None
