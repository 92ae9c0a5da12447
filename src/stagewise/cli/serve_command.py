"""`stagewise serve` and `stagewise keys`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagewise.cli.audit_command import StoreArgument, open_existing_store
from stagewise.cli.error_handling import handle_errors
from stagewise.cli.evaluate_command import parse_time
from stagewise.cli.key_values import ColumnsOption, parse_pairs

if TYPE_CHECKING:
    from stagewise.server.access_keys import AccessKeys

keys_app = typer.Typer(no_args_is_help=True, help="List, add or revoke the keys of a server.")
KeyNameArgument = Annotated[str, typer.Argument(help="Name of the key.")]


def serve(
    problems: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="TOML files, one experiment each, named after the file. Default: the experiments in the store.",
        ),
    ] = None,
    store: Annotated[str, typer.Option(help="Store: a file, or postgresql://… for several machines.")] = "server.db",
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free port.")] = 8000,
    mode: Annotated[
        str | None, typer.Option(help="off, shadow, canary or live; default: the last mode, else live.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="With --mode canary: share of decisions that the policy makes.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the experiment, if there is one file.")] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Log of another policy (.csv, .parquet, .jsonl) to learn before the first decision."),
    ] = None,
    columns: ColumnsOption = None,
    ignore_checks: Annotated[
        list[str] | None,
        typer.Option(help="With --log: a check whose failure does not prevent the start; repeatable."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            help="With --log: time it was read, 2026-03-01T12:00Z or seconds since 1970; default: time of its last row."
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Simulate users, to try the web page.")] = False,
    key_file: Annotated[
        Path | None,
        typer.Option("--keys", help="File for the keys that the first start creates; default: print them."),
    ] = None,
    feedback_timeout: Annotated[
        float | None, typer.Option(help="Seconds without outcomes after which an experiment stops; default: off.")
    ] = None,
    max_age: Annotated[float, typer.Option(help="Age in seconds at which the policy snapshot counts as stale.")] = 60.0,
    public_url: Annotated[
        str | None, typer.Option(help="Address of the web page behind TLS, such as https://stagewise.example.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Maximum calls per second for each key; default: 20000.")] = None,
    revert: Annotated[
        bool, typer.Option("--revert", help="Allow a file that returns to an earlier, less strict version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only failed requests.")] = False,
) -> None:
    """Serve decisions over HTTP, with a web page and an audit log, until Ctrl+C.

    Example: stagewise serve notifications.toml --demo
    """
    with handle_errors():
        from stagewise.cli.server_startup import LogOptions, ServeOptions, run_server

        options = ServeOptions(
            problems or [], store, host, port, mode, share, name, demo, key_file, quiet, feedback_timeout, max_age
        )
        offline = LogOptions(log, parse_pairs(columns, "--columns"), ignore_checks or [], parse_time(as_of))
        run_server(options._replace(public_url=public_url, rate=rate, revert=revert, offline=offline))


@keys_app.command("list")
def list_keys(store: StoreArgument) -> None:
    """List the keys: names, roles, times of creation and revocation. Secrets are not stored.

    Example: stagewise keys list server.db
    """
    with open_existing_store(store) as opened:
        from stagewise.cli.server_startup import format_time
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
    with open_keys(store) as keys:
        typer.echo(keys.add(name, role, note))


@keys_app.command("revoke")
def revoke_key(store: StoreArgument, name: KeyNameArgument) -> None:
    """Revoke a key. Servers on PostgreSQL reject it within a second; with SQLite, stop the server first.

    Example: stagewise keys revoke server.db dashboard
    """
    with open_keys(store) as keys:
        keys.revoke(name)
        typer.echo(f"the key {name!r} is revoked")


@contextmanager
def open_keys(address: str) -> "Iterator[AccessKeys]":
    """Open the keys of an existing store, to change them."""
    with open_existing_store(address, read_only=False) as store:
        from stagewise.server.access_keys import AccessKeys

        yield AccessKeys(store)
