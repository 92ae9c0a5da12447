"""`stagewise doctor`, `evaluate` and `forecast`: what a log says before a launch."""

import json as json_module
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.console import announce_compilation, handle_errors
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr

LogArgument = Annotated[Path, typer.Argument(help="The log: .csv, .parquet or .jsonl, such as the export of a server.")]
ProblemArgument = Annotated[Path, typer.Argument(help="The problem, a TOML file.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(help="When the log was read: 2026-03-01T12:00Z or seconds since 1970; default: at its last row."),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(help="A name of the problem and its column in the log, such as click=clicked; repeatable."),
]

PictureOption = Annotated[Path | None, typer.Option(help="File for a picture: .png or .svg.")]


def doctor(
    log: LogArgument,
    problem: Annotated[
        Path | None, typer.Argument(help="The problem, a TOML file. Without it, a problem is proposed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the proposed problem.")] = None,
    holdout: Annotated[
        Path | None,
        typer.Option(help="File for the rows that the proposal did not use: .csv, .parquet or .jsonl."),
    ] = None,
    picture: PictureOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    columns: ColumnsOption = None,
    as_of: AsOfOption = None,
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
    fit_risk_score: Annotated[
        str | None,
        typer.Option(
            help="Fit a risk score for this limit of the problem to part of the rows; --out writes the problem."
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Probability that a correct log raises any alarm.")] = 0.001,
    ignore_checks: Annotated[
        list[str] | None, typer.Option(help="Check whose failure does not change the exit code; repeatable.")
    ] = None,
) -> None:
    """Check a log against a problem, or propose a problem. Exit code 1 if the log contradicts the problem.

    Example: stagewise doctor log.csv --limit opt_out=0.02 --out problem.toml
    """
    with handle_errors():
        from stagewise.files.paths import write_bytes, write_text
        from stagewise.files.tables import WRITERS
        from stagewise.launch.doctor.doctor import check_log
        from stagewise.reports.style import PICTURES, write_figure

        if fit_risk_score is not None:
            fit_score_for_limit(log, problem, fit_risk_score, out, holdout, proposal_fraction, columns)
            return
        if problem is not None and out is not None:
            problem_given = "--out writes a proposed problem; leave it out, since the problem is given"
            raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, problem_given)
        check_ending(holdout, tuple(WRITERS))
        check_ending(picture, PICTURES)
        columns_by_name = parse_pairs(columns, "--columns")
        settings: dict[str, Any] = {"alpha": alpha, "ignore_checks": ignore_checks or [], "columns": columns_by_name}
        settings["as_of"] = parse_time(as_of)
        if problem is None:
            limits = dict(map(parse_limit, limit)) if limit else None
            settings |= {"action": action, "reward": reward, "limits": limits, "safe": safe}
            settings |= {"delta": delta, "proposal_fraction": None if no_holdout else proposal_fraction}
        elif action or reward or limit or safe:
            described = (
                "--action, --reward, --limit and --safe describe a proposed problem; leave them out: there is one"
            )
            raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, described)
        report = check_log(log, problem, **settings)
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


def check_ending(path: Path | None, endings: tuple[str, ...]) -> None:
    """Raise InvalidFile unless a file has one of these endings."""
    if path is not None and path.suffix.lower() not in endings:
        raise InvalidFile.must_be_one_of(ErrorCode.FILE_WRONG_KIND, f"the ending of {path}", path.suffix, endings)


def fit_score_for_limit(
    log: Path, problem: Path | None, limit: str, out: Path | None, holdout: Path | None, fraction: float,
    columns: list[str] | None,
) -> None:  # fmt: skip
    """Fit a score; write the problem with it, and the rows that it was not fitted to."""
    from stagewise.files.paths import write_bytes, write_text
    from stagewise.launch.doctor.score_fit import fit_risk_score

    if problem is None:
        raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, "--fit-risk-score needs a problem, which has the limit")
    fitted = fit_risk_score(log, problem, limit, fraction=fraction, columns=parse_pairs(columns, "--columns"))
    if out is not None:
        write_text(out, fitted.to_toml())
    if holdout is not None:
        write_bytes(holdout, fitted.format_holdout(holdout.suffix))
    typer.echo(str(fitted) if out is not None else f"{fitted}\n\n{fitted.to_toml()}".strip())


def parse_limit(text: str) -> tuple[str, float | None]:
    """Return a column and its limit, or None if the text has no number."""
    name, equal, value = text.rpartition("=")
    if not equal:
        return text, None
    try:
        return name, float(value)
    except ValueError:
        rule = "a column or column=number, with two percent written as 0.02"
        raise InvalidFile.must_be(ErrorCode.INVALID_OPTION, "--limit", text, rule) from None


def evaluate(
    log: LogArgument,
    problem: ProblemArgument,
    candidate: Annotated[
        str | None,
        typer.Option(
            help="Action, probabilities (offer=0.5,digest=0.5), column prefix or saved agent; "
            "default: the log's own policy."
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            help="Logged probabilities: 0.25 (uniform), offer=0.5,nothing=0.5 or frequencies; default: from the log."
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
    as_of: AsOfOption = None,
    out: Annotated[Path | None, typer.Option(help="File for the evaluation as JSON.")] = None,
    picture: PictureOption = None,
) -> None:
    """Estimate a policy's reward and costs from a log. Exit code 1 unless every limit is shown to hold.

    Example: stagewise evaluate log.parquet problem.toml --candidate offer
    """
    with handle_errors():
        from stagewise.launch.evaluation.evaluate import evaluate_on_log
        from stagewise.reports.style import PICTURES, write_figure

        check_ending(picture, PICTURES)
        settings: dict[str, Any] = {
            "primary_estimator": primary_estimator,
            "delta": delta,
            "weight_bound": weight_bound,
            "columns": parse_pairs(columns, "--columns"),
            "propensity": parse_shares(propensity, "--propensity"),
            "as_of": parse_time(as_of),
        }
        result = evaluate_on_log(log, problem, parse_shares(candidate, "--candidate"), **settings)
        if out is not None:
            from stagewise.files.paths import write_text

            write_text(out, json_module.dumps(result.to_dict(), indent=1) + "\n")
        if picture is not None:
            write_figure(result.plot(), picture)
    typer.echo(str(result))
    if not result.candidate.limits_kept:
        raise typer.Exit(1)


def parse_time(text: str | None, option: str = "--as-of") -> datetime | float | None:
    """Return an ISO time as a datetime, or a number of seconds since 1970."""
    if text is None:
        return None
    for parse in (float, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    rule = "a time, such as 2026-03-01T12:00:00Z or seconds since 1970"
    raise InvalidFile.must_be(ErrorCode.INVALID_TIME, option, text, rule)


def parse_shares(text: str | None, option: str) -> Any:
    """Return a number, shares by name, or the text itself."""
    if text is None:
        return None
    try:
        if "=" in text:
            return {name: float(value) for name, value in parse_pairs([text], option).items()}
        return float(text) if option == "--propensity" else text
    except ValueError:
        if "=" not in text:
            return text
        rule = "numbers by action, such as offer=0.5,nothing=0.5"
        raise InvalidFile.must_be(ErrorCode.INVALID_OPTION, option, text, rule) from None


def forecast(
    log: LogArgument,
    problem: ProblemArgument,
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
    as_of: AsOfOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for forecast.html, forecast.png and forecast.json.")] = Path(
        "forecast"
    ),
    executor: Annotated[
        str | None,
        typer.Option(help="Where to run: processes:N; default: one process per core."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Simulate a launch from a log, and show gains by day, costs, and the price of each limit.

    Example: stagewise forecast log.csv problem.toml --limits opt_out=0.01,0.02
    """
    from stagewise.launch.forecast.forecast import forecast_from_log
    from stagewise.launch.forecast.forecast_log import WarmStart

    with handle_errors(), announce_compilation():
        result = forecast_from_log(
            log,
            problem,
            limits={name: parse_values(text, name) for name, text in parse_pairs(limits, "--limits").items()},
            days=days,
            users_per_day=users_per_day,
            runs=runs,
            seed=seed,
            warm_start=warm_start if warm_start in set(WarmStart) - {WarmStart.OTHER_LOG} else Path(warm_start),
            columns=parse_pairs(columns, "--columns"),
            as_of=parse_time(as_of),
            executor=executor,
            progress=not quiet,
        )
        result.save(out)
    typer.echo(f"{result}\nThe page: {out / 'forecast.html'}")


def parse_values(text: str, name: str) -> list[float]:
    try:
        return [float(entry) for entry in text.split(",")]
    except ValueError:
        rule = f"a list of numbers{', with 1% written as 0.01' * ('%' in text)}"
        raise InvalidFile.must_be(ErrorCode.INVALID_OPTION, f"--limits {name}", text, rule) from None


def parse_pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Return values by name; text after a comma without a name belongs to the value before it."""
    pairs: dict[str, str] = {}
    for text in given or []:
        name = ""
        for piece in text.split(","):
            key, sign, value = (part.strip() for part in piece.partition("="))
            if sign and key in pairs:
                twice = "{option} gives {key} twice; give each name once"
                raise InvalidFile(ErrorCode.DUPLICATE_NAME, twice, option=option, key=safe_repr(key))
            if sign and key and value:
                name = key
                pairs[name] = value
            elif not sign and name and key:
                pairs[name] += f",{key}"
            else:
                rule = "name=value, with commas between several pairs"
                raise InvalidFile.must_be(ErrorCode.INVALID_OPTION, option, text, rule)
    return pairs
