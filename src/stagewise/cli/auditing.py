"""`stagewise audit`: what a desk's log proves, read from its store while the desk runs or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagewise.cli.saying import in_a_sentence

if TYPE_CHECKING:
    from stagewise.service.store.store import Store

audit = typer.Typer(no_args_is_help=True, help="Verify, explain, replay, export and copy the log of a desk.")
Address = Annotated[str, typer.Argument(metavar="STORE", help="A file such as desk.db, or postgresql://…")]
Experiment = Annotated[str, typer.Argument(help="The name of an experiment.")]


@contextmanager
def reading(address: str, read_only: bool = True) -> "Iterator[Store]":
    """Open a store that is there to read it, or to change it; say what is wrong in one line."""
    with in_a_sentence():
        from stagewise.service.store.opened import open_store

        store = open_store(address, read_only=True)  # there must be one: a mistyped name makes none
        if not read_only:
            store.close()
            store = open_store(address)
        try:
            yield store
        finally:
            store.close()


@audit.command()
def verify(
    store: Address,
    receipt: Annotated[
        list[str] | None, typer.Option(help="A line that verify printed before: the log up to there is the same.")
    ] = None,
) -> None:
    """Check that nothing in the logs was changed, removed or moved; leaves with 1 at the first row that is wrong.

    Example: stagewise audit verify desk.db
    """
    sound, rows = True, 0
    with reading(store) as opened:
        from stagewise.service.audit.verifying import Receipt
        from stagewise.service.audit.verifying import verify as verified

        for found in verified(opened, [Receipt.of(text) for text in receipt or []]):
            rows += found.rows
            name = repr(found.experiment) if found.experiment else "what holds everywhere"
            if found.fault is None and (found.rows or found.experiment):
                typer.echo(f"{name} is whole: {found.rows:,} rows, {found.decisions:,} decisions; {found.receipt}")
            elif found.fault is not None:
                sound = False
                typer.echo(f"{name} is not whole: {found.fault}")
    if not sound:
        raise typer.Exit(1)
    if not rows:
        typer.echo("there is no row in this store: nothing was verified")


@audit.command()
def explain(
    store: Address, experiment: Experiment, decision: Annotated[str, typer.Argument(help="The decision's id.")]
) -> None:
    """Say in words how a decision was made, and what came of it.

    Example: stagewise audit explain desk.db notifications DECISION
    """
    with reading(store) as opened:
        from stagewise.service.audit.explaining import explained

        typer.echo(explained(opened, experiment, decision))


@audit.command()
def replay(
    store: Address,
    experiment: Experiment,
    after: Annotated[int, typer.Option(min=0, help="Only decisions after this row.")] = 0,
    until: Annotated[int | None, typer.Option(min=1, help="Only decisions up to this row.")] = None,
) -> None:
    """Make every decision again from the log and compare it to the bit; leaves with 1 if one differs.

    Example: stagewise audit replay desk.db notifications
    """
    with reading(store) as opened:
        from stagewise.service.audit.replaying import Replay

        told = Replay(opened, experiment).run(after, until)
    typer.echo(
        f"{told.agree:,} of {told.decisions:,} decisions of {experiment!r} follow from the log to the bit, "
        f"by {told.states:,} states"
        + (f"; {told.failed:,} failed inside the desk and were the safe action" if told.failed else "")
    )
    if told.first is not None:
        typer.echo(f"the first that does not: {told.first}")
        raise typer.Exit(1)


@audit.command()
def export(
    store: Address,
    experiment: Experiment,
    out: Annotated[Path, typer.Argument(help="A file that ends in .parquet or in .dsjson.")],
) -> None:
    """Write one row for each decision, with its propensity and its outcomes.

    Example: stagewise audit export desk.db notifications log.parquet
    """
    with reading(store) as opened:
        from stagewise.service.audit.exporting import export as exported
        from stagewise.service.audit.reading import log_rows_of

        count, rows = exported(opened, experiment, out), log_rows_of(opened, experiment)
        less = f"; the {rows:,} rows of the log that it began with are not among them" if rows else ""
        typer.echo(f"{count:,} decisions of {experiment!r} are in {out}{less}")


@audit.command()
def copy(
    store: Address,
    to: Annotated[str, typer.Argument(metavar="STORE2", help="An empty store: a new file, or postgresql://…")],
) -> None:
    """Copy a store, keys and all, and verify the copy: the way from SQLite to PostgreSQL. No desk may run meanwhile.

    Example: stagewise audit copy desk.db postgresql://user@host/database
    """
    with in_a_sentence():
        from stagewise.service.audit.copying import copied

        for found in copied(store, to):
            if found.rows:
                name = repr(found.experiment) if found.experiment else "what holds everywhere"
                typer.echo(f"{name} is copied: {found.rows:,} rows, {found.decisions:,} decisions; {found.receipt}")
