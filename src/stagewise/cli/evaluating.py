"""`stagewise evaluate`: what a log says of a policy that did not make it."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.pairs import Names, pairs_of
from stagewise.cli.saying import in_a_sentence


def evaluate(
    log: Annotated[Path, typer.Argument(help="A .csv, .parquet or .jsonl file, such as a desk's export.")],
    problem: Annotated[Path, typer.Argument(help="A TOML file that declares the problem.")],
    candidate: Annotated[
        str | None,
        typer.Option(
            help="An action, 'offer=0.5,digest=0.5', a prefix of columns, or a saved agent; default: the log's own."
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            help="0.25 for a uniform trial, 'offer=0.5,nothing=0.5', or 'frequencies'; default: the log's own."
        ),
    ] = None,
    names: Names = None,
    decisive: Annotated[str, typer.Option(help="By which limits are judged: dr or ips.")] = "dr",
    delta: Annotated[
        float | None, typer.Option(help="All intervals hold with 1 - delta; default: the problem's.")
    ] = None,
    weight_bound: Annotated[float | None, typer.Option(help="At which number weights are clipped.")] = None,
    folds: Annotated[int | None, typer.Option(help="Cross-fit in so many folds; default: by earlier rows.")] = None,
    now: Annotated[
        str | None,
        typer.Option(
            help="When the log was read, 2026-03-01T12:00Z or seconds: by then windows closed; default: its last row."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for evaluation.json and evaluation.png.")] = None,
) -> None:
    """Say what a policy would have earned and cost: leaves with 0 only if every limit is shown to be kept.

    Example: stagewise evaluate log.parquet problem.toml --candidate offer
    """
    with in_a_sentence():
        from stagewise.launch.evaluation.evaluate import evaluate as evaluated

        told: dict[str, Any] = {"decisive": decisive, "delta": delta, "weight_bound": weight_bound, "folds": folds}
        told |= {"names": pairs_of(names, "--names"), "propensity": shares(propensity, "--propensity")}
        told |= {"now": time_of(now)}
        found = evaluated(log, problem, shares(candidate, "--candidate"), **told)
        if out is not None:
            from stagewise.reports.files import made, write_text

            made(out)
            write_text(out / "evaluation.json", json.dumps(found.plain(), indent=1) + "\n")
            found.save(out / "evaluation.png")
    typer.echo(str(found))
    if not found.candidate.kept:
        raise typer.Exit(1)


def time_of(text: str | None) -> datetime | float | None:
    """Return a time that was typed, or seconds since 1970."""
    from stagewise.problem.errors import InvalidFile

    if text is None:
        return None
    for read in (float, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    raise InvalidFile(f"--now is {text!r}, which is no time; write 2026-03-01T12:00:00Z, or seconds since 1970")


def shares(text: str | None, option: str) -> Any:
    """Return a number, shares by name, or a word as it is."""
    from stagewise.problem.errors import InvalidFile

    if text is None:
        return None
    try:
        if "=" in text:
            return {name: float(value) for name, value in pairs_of([text], option).items()}
        return float(text) if option == "--propensity" else text
    except ValueError:
        if "=" not in text:
            return text
        raise InvalidFile(f"{option} is {text!r}; shares are numbers, as in offer=0.5,nothing=0.5") from None
