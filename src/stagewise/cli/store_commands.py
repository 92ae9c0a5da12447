"""`stagewise audit`, `keys` and `store`: the log, the keys and the rows of a server's store."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagewise.cli.console import get_actor, handle_errors

if TYPE_CHECKING:
    from stagewise.server.store.base import Store

audit_app = typer.Typer(no_args_is_help=True, help="Verify, explain, replay, export or copy the log of a server.")
StoreArgument = Annotated[
    str, typer.Argument(metavar="STORE", help="The server's store: a file such as server.db, or postgresql://…")
]
keys_app = typer.Typer(
    no_args_is_help=True, help="List, add or revoke the keys of a server, or rotate its log's secret."
)
KeyNameArgument = Annotated[str, typer.Argument(help="Name of the key.")]
ExperimentArgument = Annotated[str, typer.Argument(help="The name of an experiment.")]
DecisionArgument = Annotated[str, typer.Argument(help="The decision's id.")]

store_app = typer.Typer(no_args_is_help=True, help="Remove old rows, erase users, or prepare a restored store.")
ReasonOption = Annotated[str, typer.Option(help="The reason, for the log.")]


@contextmanager
def open_existing_store(address: str, read_only: bool = True) -> "Iterator[Store]":
    """Open an existing store; print an error and exit if that fails."""
    with handle_errors():
        from stagewise.server.store.migrate import open_store

        store = open_store(address, read_only=True)  # fails if the store does not exist
        if not read_only:
            store.close()
            store = open_store(address)
        try:
            yield store
        finally:
            store.close()


@audit_app.command()
def verify(
    store: StoreArgument,
    receipt: Annotated[
        list[str] | None,
        typer.Option(
            help="A receipt of an earlier verify, or of an answer; the log must still contain it. Repeatable."
        ),
    ] = None,
) -> None:
    """Check seals and writers' chains: no row was changed, removed or moved. Exit code 1 if one was.

    Example: stagewise audit verify server.db
    """
    with open_existing_store(store) as opened:
        from stagewise.server.audit.verify import Receipt, verify_store

        result = verify_store(opened, [Receipt.of(text) for text in receipt or []])
    for found in result.logs:
        name = format_experiment(found.experiment)
        if found.fault is not None:
            typer.echo(f"{name} is not intact: {found.fault}")
        elif result.fault is None and (found.rows or found.experiment):
            typer.echo(f"{name} is intact: {found.rows:,} rows, {found.decisions:,} decisions")
    if result.fault is not None:
        typer.echo(f"the seals are not intact: {result.fault}")
    if result.faults:
        raise typer.Exit(1)
    if not any(found.rows for found in result.logs):
        typer.echo("the store has no rows: nothing was verified")
        return
    typer.echo(f"{result.seals:,} seals are intact; {result.unsealed:,} rows are not sealed yet; {result.receipt}")
    if result.removed:
        typer.echo(
            f"The rows up to seal {result.removed:,} were removed. Verified: the chain of their seals, and that no "
            "change of controls, problems, keys or secrets among them was altered. Not verifiable any more: the "
            "content of the other rows, and that the checkpoint follows from them; a backup from before the removal "
            "shows both."
        )
    typer.echo(
        "Keep this receipt elsewhere: who can write everything can seal everything anew. Not evident: the last "
        "unsealed rows of a writer were removed (a client's receipt shows it); a row was added with the store's "
        "secret before it was sealed; an outcome was never reported."
    )


def format_experiment(name: str) -> str:
    return repr(name) if name else "the log of global controls"


@audit_app.command()
def prove(
    store: StoreArgument,
    experiment: ExperimentArgument,
    decision: DecisionArgument,
    until: Annotated[int, typer.Option(min=0, help="Prove up to this seal, of which you have a receipt.")] = 0,
) -> None:
    """Print a proof that a decision is in the log, as JSON: its Merkle path and the seals up to a receipt.

    Example: stagewise audit prove server.db notifications DECISION
    """
    with open_existing_store(store) as opened:
        from stagewise.server.audit.export import prove_decision

        typer.echo(prove_decision(opened, experiment, decision, until).to_json())


@audit_app.command()
def check(
    proof: Annotated[Path, typer.Argument(help="A file with the output of `stagewise audit prove`.")],
    receipt: Annotated[str, typer.Option(help="The receipt of the last seal of the proof, kept elsewhere.")],
) -> None:
    """Check a proof against a receipt, without the store. Exit code 1 if it does not hold.

    Example: stagewise audit check proof.json --receipt seal:17:HASH
    """
    with handle_errors():
        from stagewise.files.paths import read_file
        from stagewise.server.audit.export import check_proof

        found = check_proof(read_file(proof), receipt)
    typer.echo(f"row {found.number} of {found.experiment!r} is sealed: {found.row}")


@audit_app.command()
def explain(
    store: StoreArgument,
    experiment: ExperimentArgument,
    decision: DecisionArgument,
) -> None:
    """Print the request, bounds and outcome of a decision.

    Example: stagewise audit explain server.db notifications DECISION
    """
    with open_existing_store(store) as opened:
        from stagewise.server.audit.replay import explain_logged_decision

        typer.echo(explain_logged_decision(opened, experiment, decision))


@audit_app.command()
def replay(
    store: StoreArgument,
    experiment: ExperimentArgument,
    after: Annotated[int, typer.Option(min=0, help="Only decisions after this row.")] = 0,
    until: Annotated[int | None, typer.Option(min=1, help="Only decisions up to this row.")] = None,
) -> None:
    """Repeat every decision from the log and compare it bit for bit. Exit code 1 if one differs.

    Example: stagewise audit replay server.db notifications
    """
    with open_existing_store(store) as opened:
        from stagewise.server.audit.replay import Replay

        result = Replay(opened, experiment).run(after, until)
    failed = f"; {result.failed:,} failed inside the server and were the safe action" if result.failed else ""
    typer.echo(
        f"{result.matching:,} of {result.decisions:,} decisions of {experiment!r} are reproduced from the log, "
        f"bit for bit, with {result.states:,} policy snapshots{failed}"
    )
    if result.missing:
        typer.echo(f"{result.missing:,} cannot be repeated: they follow from rows that were removed or erased")
    if result.erased:
        typer.echo(f"{result.erased:,} are of users who were erased")
    if result.first_difference is not None:
        typer.echo(f"the first difference: {result.first_difference}")
        raise typer.Exit(1)


@audit_app.command()
def export(
    store: StoreArgument,
    experiment: ExperimentArgument,
    out: Annotated[Path, typer.Argument(help="The Parquet file to write; its name ends in .parquet.")],
) -> None:
    """Write the log to a file: one row per decision, with its propensity and its outcomes.

    Example: stagewise audit export server.db notifications log.parquet
    """
    with open_existing_store(store) as opened:
        from stagewise.server.audit.export import export_log
        from stagewise.server.audit.log_reader import count_offline_rows

        count, rows = export_log(opened, experiment, out), count_offline_rows(opened, experiment)
        excluded = f"; without the {rows:,} rows of its offline log" if rows else ""
        typer.echo(f"{count:,} decisions of {experiment!r} are in {out}{excluded}")


@audit_app.command()
def copy(
    store: StoreArgument,
    to: Annotated[str, typer.Argument(metavar="STORE2", help="An empty store: a new file, or postgresql://…")],
) -> None:
    """Copy a store with its keys, for example from SQLite to PostgreSQL, and verify the copy. Stop the server first.

    Example: stagewise audit copy server.db postgresql://user@host/database
    """
    with handle_errors():
        from stagewise.server.audit.export import copy_and_verify

        result = copy_and_verify(store, to)
        for found in result.logs:
            if found.rows:
                name = format_experiment(found.experiment)
                typer.echo(f"{name} is copied: {found.rows:,} rows, {found.decisions:,} decisions")
        typer.echo(str(result.receipt))


@keys_app.command("list")
def list_keys(store: StoreArgument) -> None:
    """List the keys: names, roles, times of creation and revocation. Secrets are not stored.

    Example: stagewise keys list server.db
    """
    with open_existing_store(store) as opened:
        from stagewise.server.access_keys import AccessKeys

        for key in AccessKeys(opened).list_keys():
            revoked = "" if key.revoked is None else f", revoked {format_time(key.revoked)}"
            note = f"  {key.note}" if key.note else ""
            typer.echo(f"{key.name:<20} {key.role:<7} created {format_time(key.made)}{revoked}{note}")


@keys_app.command("add")
def add_key(
    store: StoreArgument,
    name: KeyNameArgument,
    role: Annotated[str, typer.Option(help="reader, writer or admin; each includes the previous ones.")] = "writer",
    note: Annotated[str, typer.Option(help="Purpose of the key.")] = "",
) -> None:
    """Create a key and print it. It cannot be printed again.

    Example: stagewise keys add server.db dashboard --role reader
    """
    with open_existing_store(store, read_only=False) as opened:
        from stagewise.server.access_keys import AccessKeys

        typer.echo(AccessKeys(opened).add(name, role, note))


@keys_app.command("rotate")
def rotate_keys(store: StoreArgument) -> None:
    """Make a new secret for the rows' authentication codes. Servers on PostgreSQL use it at once.

    With SQLite, stop the server first.

    Example: stagewise keys rotate server.db
    """
    with open_existing_store(store, read_only=False) as opened:
        typer.echo(f"from now on, authentication codes of rows use secret {opened.rotate_writers_secret() + 1}")


@keys_app.command("revoke")
def revoke_key(store: StoreArgument, name: KeyNameArgument) -> None:
    """Revoke a key. Servers on PostgreSQL reject it within a second; with SQLite, stop the server first.

    Example: stagewise keys revoke server.db dashboard
    """
    with open_existing_store(store, read_only=False) as opened:
        from stagewise.server.access_keys import AccessKeys

        AccessKeys(opened).revoke(name)
        typer.echo(f"the key {name!r} is revoked")


@store_app.command()
def retain(
    store: StoreArgument,
    older_than: Annotated[str, typer.Option(help="Minimum age of the rows to remove, such as 400d.")],
    reason: ReasonOption = "retention",
) -> None:
    """Remove old rows; what was learned from them is kept. With SQLite, stop the server first.

    Example: stagewise store retain server.db --older-than 400d
    """
    with open_existing_store(store, read_only=False) as opened:
        from stagewise.problem.timing import parse_seconds
        from stagewise.server.retention import remove_old_rows

        seconds = parse_seconds(older_than, "--older-than")
        removal = remove_old_rows(opened, opened.now() - round(seconds * 1e6), get_actor(), reason)
        if removal is None:
            typer.echo("no sealed rows are older: nothing was removed")
            return
        typer.echo(f"the rows up to seal {removal.seal:,} are removed; checkpoints keep what was learned")


@store_app.command()
def erase(
    store: StoreArgument,
    user: Annotated[str, typer.Argument(help="The user's name, as given with each decision.")],
    reason: ReasonOption = "request of the user",
) -> None:
    """Erase the contexts of a user. Exit code 1 if outcomes are pending; then run it again later.

    With SQLite, stop the server first.

    Example: stagewise store erase server.db user-4711
    """
    with open_existing_store(store, read_only=False) as opened:
        from stagewise.server.retention import erase_user

        result = erase_user(opened, user, get_actor(), reason)
        if result.decisions:
            end = f"their windows close on {format_time(result.until)}" if result.until else "a signal has no window"
            typer.echo(f"{result.decisions:,} decisions of {user!r} wait for outcomes; {end}. Run this again then")
            raise typer.Exit(1)
        typer.echo(f"the contexts of {user!r} are erased")


@store_app.command()
def restored(store: StoreArgument, reason: ReasonOption = "restored from a backup") -> None:
    """Begin a new term in a store that was restored from a backup, before its servers start.

    Example: stagewise store restored copy.db
    """
    with open_existing_store(store, read_only=False) as opened:
        from stagewise.server.store.migrate import begin_after_restore

        number = begin_after_restore(opened, get_actor(), reason)
        typer.echo(f"a new term begins with row {number:,}: start the servers")


def format_time(at: int) -> str:
    """Return a time in microseconds as text."""
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M}"
