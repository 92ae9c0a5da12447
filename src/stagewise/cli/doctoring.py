"""`stagewise doctor`: a log held against a problem, or a problem proposed from a log."""

from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.pairs import Names, pairs_of
from stagewise.cli.saying import in_a_sentence


def doctor(
    log: Annotated[Path, typer.Argument(help="A log: .csv, .parquet or .jsonl.")],
    problem: Annotated[Path | None, typer.Argument(help="The TOML file of a problem; none: one is proposed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the proposed problem.")] = None,
    rest: Annotated[
        Path | None, typer.Option(help="Where to write the rows that are left to learn from: .csv, .parquet or .jsonl.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Where to draw the log, as .png or .svg.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    names: Names = None,
    action: Annotated[str | None, typer.Option(help="For a proposal: the column of the actions.")] = None,
    reward: Annotated[str | None, typer.Option(help="For a proposal: the column of the reward.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="For a proposal: a column with a limit, and the limit: opt_out=0.02.")
    ] = None,
    safe: Annotated[str | None, typer.Option(help="For a proposal: the action that is done today.")] = None,
    delta: Annotated[float, typer.Option(help="For a proposal: the chance of failure, in all.")] = 0.05,
    split: Annotated[float, typer.Option(help="For a proposal: the share of rows that it is chosen from.")] = 0.5,
    no_split: Annotated[
        bool, typer.Option("--no-split", help="Choose from all rows, and pay for it out of delta.")
    ] = False,
    alpha: Annotated[float, typer.Option(help="The chance that a log without a fault raises any alarm.")] = 0.001,
    accept: Annotated[list[str] | None, typer.Option(help="A check whose contradiction is noted only.")] = None,
) -> None:
    """Say whether a log and a problem agree, a line for each check: leaves with 0 only if nothing contradicts.

    Example: stagewise doctor log.csv --limit opt_out=0.02 --out problem.toml
    """
    with in_a_sentence():
        from stagewise.files.written_tables import WRITERS
        from stagewise.launch.doctor.doctor import doctor as diagnosed
        from stagewise.problem.errors import InvalidFile
        from stagewise.reports.files import write_bytes, write_text
        from stagewise.reports.style import write_picture

        if problem is not None and out is not None:
            raise InvalidFile("--out is for a proposal; here the problem is given, and is not written again")
        for path, ends in ((picture, (".png", ".svg")), (rest, tuple(WRITERS))):
            if path is not None and path.suffix.lower() not in ends:
                raise InvalidFile(f"{path} ends in {path.suffix!r}; it must end in {' or '.join(ends)}")
        told: dict[str, Any] = {"alpha": alpha, "accept": accept or [], "names": pairs_of(names, "--names")}
        if problem is None:
            limits = None if not limit else {name: value for one in limit for name, value in [limit_of(one)]}
            told |= {"action": action, "reward": reward, "limits": limits, "safe": safe}
            told |= {"delta": delta, "share": None if no_split else split}
        elif action or reward or limit or safe:
            raise InvalidFile("--action, --reward, --limit and --safe are for a proposal; here the problem says them")
        found = diagnosed(log, problem, **told)
        if out is not None:
            write_text(out, found.toml())
        if rest is not None:
            write_bytes(rest, found.rest_as(rest.suffix))
        if picture is not None:
            write_picture(found.draw(), picture)
    shown = found.toml() if found.proposal is not None and out is None else ""
    typer.echo(found.json() if json else f"{found}\n\n{shown}".strip())
    if found.contradicted:
        raise typer.Exit(1)


def limit_of(text: str) -> tuple[str, float | None]:
    """Return a column and its limit, where that is said."""
    from stagewise.problem.errors import InvalidFile

    name, equal, value = text.rpartition("=")
    if not equal:
        return text, None
    try:
        return name, float(value)
    except ValueError:
        raise InvalidFile(f"--limit is {text!r}; it must be a column, or column=number: two percent are 0.02") from None
