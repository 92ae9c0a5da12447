"""`stagewise decide` and `stagewise learn`: tables of users and of outcomes, with a saved agent."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.console import announce_compilation, handle_errors
from stagewise.cli.log_commands import parse_pairs, parse_time

AgentOption = Annotated[Path, typer.Option(help="The saved agent, which is updated at the end.")]
NowOption = Annotated[
    str | None, typer.Option(help="The time, 2026-03-01T12:00Z or seconds since 1970; default: the clock's.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress.")]
EXIT_NOTHING_USED = 1  # exit code


def decide(
    users: Annotated[Path, typer.Argument(help="The users: .parquet or .csv.")],
    agent: AgentOption,
    out: Annotated[Path, typer.Option(help="File for the decisions: .parquet or .csv.")],
    id: Annotated[str, typer.Option(help="Column of the users' ids.")] = "user_id",
    run: Annotated[
        str | None,
        typer.Option(help="Name of this table, such as its date; default: the agent's number of decisions."),
    ] = None,
    now: NowOption = None,
    propose: Annotated[
        list[str] | None,
        typer.Option(help="Column of proposed actions, or of their probabilities: action=column; repeatable."),
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="Column of an action's score, action=column; repeatable.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Decide for a table of users. Exit code 1 if no row could be decided.

    If the command is interrupted, run it again: it writes the same bytes and registers each decision once.
    If a limit has a drift or the reward a half-life, repeat it with the same --now.

    Example: stagewise decide users.parquet --agent agent.json --out decisions.parquet --run 2026-11-19
    """
    from stagewise.agent.agent import Agent
    from stagewise.agent.table_file import decide_file

    with handle_errors(), announce_compilation(), show_progress("users decided", quiet) as progress:
        loaded = Agent.load(agent)
        is_column = propose is not None and len(propose) == 1 and "=" not in propose[0]
        result = decide_file(
            loaded, users, out, id_column=id, run=run, now=to_seconds(now), progress=progress,
            propose=propose[0] if propose and is_column else parse_pairs(propose, "--propose") or None,
            scores=parse_pairs(scores, "--scores") or None,
        )  # fmt: skip
        if not result.is_repeat:
            loaded.save(agent)
    typer.echo(str(result))
    if result.rows and result.errors == result.rows:
        raise typer.Exit(EXIT_NOTHING_USED)


def learn(
    outcomes: Annotated[Path, typer.Argument(help="The outcomes, by decision id: .parquet or .csv.")],
    agent: AgentOption,
    id: Annotated[str, typer.Option(help="Column of the decision ids.")] = "decision_id",
    out: Annotated[Path | None, typer.Option(help="File for the status of each row: .parquet or .csv.")] = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Learn a table of outcomes. Exit code 1 if no row was accepted or a duplicate.

    The agent is saved at the end. The same command can be run again: an outcome that is already known counts once.

    Example: stagewise learn outcomes.parquet --agent agent.json
    """
    from stagewise.agent.agent import Agent
    from stagewise.agent.table_file import learn_file

    with handle_errors(), announce_compilation(), show_progress("outcomes read", quiet) as progress:
        loaded = Agent.load(agent)
        result = learn_file(loaded, outcomes, id_column=id, out=out, now=to_seconds(now), progress=progress)
        loaded.save(agent)
    typer.echo(str(result))
    if result.counts and not {"accepted", "duplicate"} & result.counts.keys():
        raise typer.Exit(EXIT_NOTHING_USED)


def to_seconds(text: str | None) -> float | None:
    """Return a time as seconds since 1970."""
    time = parse_time(text, "--now")
    return time.timestamp() if isinstance(time, datetime) else time


@contextmanager
def show_progress(what: str, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Show the number of rows so far on standard error, if it is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        yield lambda rows: typer.echo(f"\r{rows:,} {what}", err=True, nl=False)
    finally:
        typer.echo("", err=True)
