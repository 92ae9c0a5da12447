"""`stagewise doctor`: check a log against a problem, or propose a problem from a log."""

from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.error_handling import handle_errors
from stagewise.cli.key_values import ColumnsOption, parse_pairs
from stagewise.problem.errors import ErrorCode


def doctor(
    log: Annotated[Path, typer.Argument(help="The log: .csv, .parquet or .jsonl.")],
    problem: Annotated[
        Path | None, typer.Argument(help="The problem, a TOML file. Without it, a problem is proposed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the proposed problem.")] = None,
    holdout: Annotated[
        Path | None,
        typer.Option(help="File for the rows that the proposal did not use: .csv, .parquet or .jsonl."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="File for a picture of the log: .png or .svg.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    columns: ColumnsOption = None,
    action: Annotated[str | None, typer.Option(help="For a proposal: column of the actions.")] = None,
    reward: Annotated[str | None, typer.Option(help="For a proposal: column of the reward.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="For a proposal: a column and its limit, opt_out=0.02; repeatable.")
    ] = None,
    safe: Annotated[str | None, typer.Option(help="For a proposal: the safe action, in use today.")] = None,
    delta: Annotated[float, typer.Option(help="For a proposal: total probability of failure.")] = 0.05,
    proposal_fraction: Annotated[float, typer.Option(help="For a proposal: fraction of rows that it uses.")] = 0.5,
    no_holdout: Annotated[
        bool, typer.Option("--no-holdout", help="For a proposal: use all rows and a smaller delta.")
    ] = False,
    alpha: Annotated[float, typer.Option(help="Probability that a correct log raises any alarm.")] = 0.001,
    ignore_checks: Annotated[
        list[str] | None, typer.Option(help="Check whose failure does not change the exit code; repeatable.")
    ] = None,
) -> None:
    """Check a log against a problem, or propose a problem. Exit code 1 if the log contradicts the problem.

    Example: stagewise doctor log.csv --limit opt_out=0.02 --out problem.toml
    """
    with handle_errors():
        from stagewise.files.atomic_write import write_bytes, write_text
        from stagewise.files.tables import WRITERS
        from stagewise.launch.doctor.doctor import doctor as run_doctor
        from stagewise.problem.errors import InvalidFile
        from stagewise.reports.plot_style import write_figure

        if problem is not None and out is not None:
            raise InvalidFile(
                ErrorCode.CONFLICTING_OPTIONS,
                "--out writes a proposed problem; leave it out, since the problem is given",
            )
        for path, ends in ((picture, (".png", ".svg")), (holdout, tuple(WRITERS))):
            if path is not None and path.suffix.lower() not in ends:
                raise InvalidFile(
                    ErrorCode.FILE_WRONG_KIND,
                    "{path} ends in {suffix!r}; it must end in {ends}",
                    path=path,
                    suffix=path.suffix,
                    ends=" or ".join(ends),
                )
        columns_by_name = parse_pairs(columns, "--columns")
        settings: dict[str, Any] = {"alpha": alpha, "ignore_checks": ignore_checks or [], "columns": columns_by_name}
        if problem is None:
            limits = dict(map(parse_limit, limit)) if limit else None
            settings |= {"action": action, "reward": reward, "limits": limits, "safe": safe}
            settings |= {"delta": delta, "proposal_fraction": None if no_holdout else proposal_fraction}
        elif action or reward or limit or safe:
            raise InvalidFile(
                ErrorCode.CONFLICTING_OPTIONS,
                "--action, --reward, --limit and --safe describe a proposed problem; leave them out, "
                "since the problem is given",
            )
        report = run_doctor(log, problem, **settings)
        if out is not None:
            write_text(out, report.to_toml())
        if holdout is not None:
            write_bytes(holdout, report.format_holdout(holdout.suffix))
        if picture is not None:
            write_figure(report.plot(), picture)
    proposal = report.to_toml() if report.proposal is not None and out is None else ""
    typer.echo(report.to_json() if json else f"{report}\n\n{proposal}".strip())
    if report.contradicted:
        raise typer.Exit(1)


def parse_limit(text: str) -> tuple[str, float | None]:
    """Return a column and its limit, or None if the text has no number."""
    from stagewise.problem.errors import InvalidFile

    name, equal, value = text.rpartition("=")
    if not equal:
        return text, None
    try:
        return name, float(value)
    except ValueError:
        raise InvalidFile(
            ErrorCode.INVALID_OPTION,
            "--limit is {text!r}; it must be a column or column=number, with two percent written as 0.02",
            text=text,
        ) from None
