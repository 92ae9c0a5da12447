"""`stagewise evaluate`: off-policy evaluation of a candidate policy from a log."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.error_handling import handle_errors
from stagewise.cli.key_values import ColumnsOption, parse_pairs
from stagewise.problem.errors import ErrorCode


def evaluate(
    log: Annotated[Path, typer.Argument(help="The log: .csv, .parquet or .jsonl, such as the export of a server.")],
    problem: Annotated[Path, typer.Argument(help="The problem, a TOML file.")],
    candidate: Annotated[
        str | None,
        typer.Option(
            help="Action, probabilities (offer=0.5,digest=0.5), column prefix or saved agent; default: log's policy."
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            help="Logged probabilities: 0.25 (uniform), offer=0.5,nothing=0.5 or frequencies; default: log's column."
        ),
    ] = None,
    columns: ColumnsOption = None,
    primary_estimator: Annotated[str, typer.Option(help="Estimator that judges the limits: dr or ips.")] = "dr",
    delta: Annotated[
        float | None, typer.Option(help="Probability that any interval fails; default: the problem's.")
    ] = None,
    weight_bound: Annotated[
        float | None, typer.Option(help="Maximum of the importance weights; larger ones are clipped.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Number of folds for cross-fitting; default: fit on earlier rows.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(help="Time the log was read, 2026-03-01T12:00Z or seconds since 1970; default: its last row's."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for evaluation.json and evaluation.png.")] = None,
) -> None:
    """Estimate a policy's reward and costs from a log. Exit code 1 unless every limit is shown to hold.

    Example: stagewise evaluate log.parquet problem.toml --candidate offer
    """
    with handle_errors():
        from stagewise.launch.evaluation.evaluate import evaluate as run_evaluation

        settings: dict[str, Any] = {
            "primary_estimator": primary_estimator,
            "delta": delta,
            "weight_bound": weight_bound,
            "folds": folds,
            "columns": parse_pairs(columns, "--columns"),
            "propensity": parse_shares(propensity, "--propensity"),
            "as_of": parse_time(as_of),
        }
        result = run_evaluation(log, problem, parse_shares(candidate, "--candidate"), **settings)
        if out is not None:
            from stagewise.files.atomic_write import write_text
            from stagewise.reports.output_files import make_folder

            make_folder(out)
            write_text(out / "evaluation.json", json.dumps(result.to_dict(), indent=1) + "\n")
            result.save(out / "evaluation.png")
    typer.echo(str(result))
    if not result.candidate.limits_kept:
        raise typer.Exit(1)


def parse_time(text: str | None) -> datetime | float | None:
    """Return an ISO time as a datetime, or a number of seconds since 1970."""
    from stagewise.problem.errors import InvalidFile

    if text is None:
        return None
    for parse in (float, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    raise InvalidFile(
        ErrorCode.INVALID_TIME,
        "--as-of is {text!r}, which is not a time; write 2026-03-01T12:00:00Z or seconds since 1970",
        text=text,
    )


def parse_shares(text: str | None, option: str) -> Any:
    """Return a number, shares by name, or the text itself."""
    from stagewise.problem.errors import InvalidFile

    if text is None:
        return None
    try:
        if "=" in text:
            return {name: float(value) for name, value in parse_pairs([text], option).items()}
        return float(text) if option == "--propensity" else text
    except ValueError:
        if "=" not in text:
            return text
        raise InvalidFile(
            ErrorCode.INVALID_OPTION,
            "{option} is {text!r}; it must give numbers by action, such as offer=0.5,nothing=0.5",
            option=option,
            text=text,
        ) from None
