"""`stagewise serve`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from stagewise.cli.console import handle_errors
from stagewise.cli.log_commands import ColumnsOption, parse_pairs, parse_time


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
            help="When the --log was read: 2026-03-01T12:00Z or seconds since 1970; default: at its last row."
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
    webhooks: Annotated[
        Path | None, typer.Option(help="TOML file that declares receivers of stops, alerts and changes.")
    ] = None,
    retention: Annotated[
        str | None, typer.Option(help="Age at which rows are removed, such as 400d; default: rows stay.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only failed requests.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that share the port; more than one needs PostgreSQL.")
    ] = 1,
) -> None:
    """Serve decisions over HTTP, with a web page and an audit log, until Ctrl+C.

    Example: stagewise serve notifications.toml --demo
    """
    start = SimpleNamespace(**locals())
    with handle_errors():
        from stagewise.cli.server_startup import run_server

        start.problems, start.ignore_checks = problems or [], ignore_checks or []
        start.columns, start.as_of = parse_pairs(columns, "--columns"), parse_time(as_of)
        run_server(start)
