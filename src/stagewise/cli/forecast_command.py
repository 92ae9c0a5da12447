"""`stagewise forecast`: simulate a launch from a log."""

from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.compile_notice import announce_compilation
from stagewise.cli.error_handling import handle_errors
from stagewise.cli.key_values import ColumnsOption, parse_pairs
from stagewise.problem.errors import ErrorCode


def forecast(
    log: Annotated[Path, typer.Argument(help="The log: .csv, .parquet or .jsonl.")],
    problem: Annotated[Path, typer.Argument(help="The problem, a TOML file.")],
    limits: Annotated[
        list[str] | None,
        typer.Option(help="Values of a limit to compare, opt_out=0.01,0.02; repeatable."),
    ] = None,
    days: Annotated[int, typer.Option(help="Number of days to simulate.")] = 60,
    users_per_day: Annotated[float | None, typer.Option(help="Users per day; default: from the log's times.")] = None,
    runs: Annotated[int, typer.Option(help="Number of simulated campaigns; bands need at least 38.")] = 100,
    warm_start: Annotated[
        str,
        typer.Option(help="Rows learned before the launch: all, half (the later half), nothing, or another log."),
    ] = "all",
    columns: ColumnsOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for forecast.html, forecast.png and forecast.json.")] = Path(
        "forecast"
    ),
    executor: Annotated[
        str | None, typer.Option(help="processes:N, dask:ADDRESS or dask:local; default: one process per core.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Simulate a launch from a log, and show gains by day, costs, and the price of each limit.

    Example: stagewise forecast log.csv problem.toml --limits opt_out=0.01,0.02
    """
    from stagewise.launch.forecast.forecast import forecast as run_forecast
    from stagewise.launch.forecast.forecast_log import WarmStart

    with handle_errors(), announce_compilation():
        result = run_forecast(
            log,
            problem,
            limits={name: parse_values(text, name) for name, text in parse_pairs(limits, "--limits").items()},
            days=days,
            users_per_day=users_per_day,
            runs=runs,
            seed=seed,
            warm_start=warm_start if warm_start in set(WarmStart) - {WarmStart.OTHER_LOG} else Path(warm_start),
            columns=parse_pairs(columns, "--columns"),
            executor=executor,
            progress=not quiet,
        )
        result.save(out)
    typer.echo(f"{result}\nThe page: {out / 'forecast.html'}")


def parse_values(text: str, name: str) -> list[float]:
    """Return a list of numbers."""
    from stagewise.problem.errors import InvalidProblem
    from stagewise.problem.formatting import safe_repr

    try:
        return [float(entry) for entry in text.split(",")]
    except ValueError:
        percent = "; write 1% as 0.01" if "%" in text else ""
        raise InvalidProblem(
            ErrorCode.INVALID_OPTION,
            "--limits {name} is {text}; it must be a list of numbers{percent}",
            name=name,
            text=safe_repr(text),
            percent=percent,
        ) from None
