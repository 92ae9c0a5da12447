"""`stagewise serve` and `stagewise keys`: a desk on a port, and who may ask it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagewise.cli.auditing import Address, reading
from stagewise.cli.evaluating import time_of
from stagewise.cli.pairs import Names, pairs_of
from stagewise.cli.saying import in_a_sentence

if TYPE_CHECKING:
    from stagewise.service.keys import Keys

keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys of a desk's store.")
KeyName = Annotated[str, typer.Argument(help="The key's name.")]


def serve(
    problems: Annotated[
        list[Path] | None,
        typer.Argument(help="TOML files, each a problem: an experiment of the file's name. None: what the store has."),
    ] = None,
    store: Annotated[str, typer.Option(help="A file, or postgresql://… for several machines.")] = "desk.db",
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: any that is free.")] = 8000,
    mode: Annotated[
        str | None, typer.Option(help="off, shadow, canary or live; default: live, or as it was last.")
    ] = None,
    share: Annotated[float | None, typer.Option(help="canary: the share of decisions that are the policy's.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of the experiment, where there is one file.")] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="A log of another policy (.csv, .parquet, .jsonl), learned before the first decision."),
    ] = None,
    names: Names = None,
    accept: Annotated[
        list[str] | None, typer.Option(help="Of --log: a check of the doctor whose contradiction is noted only.")
    ] = None,
    now: Annotated[
        str | None, typer.Option(help="Of --log: when it was read, where that is later than its last row.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Simulated users ask and answer, to look at the page.")] = False,
    key_file: Annotated[
        Path | None, typer.Option("--keys", help="Write the keys of the first start here, and do not show them.")
    ] = None,
    dry_after: Annotated[
        float | None, typer.Option(help="Seconds without an outcome after which an experiment stops by itself.")
    ] = None,
    max_age: Annotated[
        float, typer.Option(help="Seconds after which what was learned counts as stale, on the page and in metrics.")
    ] = 60.0,
    public_url: Annotated[
        str | None, typer.Option(help="Where browsers see the page behind TLS: https://desk.example.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Calls a second that a key may make; default: 20000.")] = None,
    personalizer: Annotated[
        str | None, typer.Option(help="The experiment of Azure Personalizer's routes, where there are several.")
    ] = None,
    revert: Annotated[
        bool, typer.Option("--revert", help="Serve a file as it was once, although a tighter version is played since.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request; failures are said.")] = False,
) -> None:
    """Serve decisions by HTTP, with a page to watch them, until Ctrl+C.

    Example: stagewise serve notifications.toml --demo
    """
    with in_a_sentence():
        from stagewise.cli.desk import Offline, Start, run

        told = Start(problems or [], store, host, port, mode, share, name, demo, key_file, quiet, dry_after, max_age)
        offline = Offline(log, pairs_of(names, "--names"), accept or [], time_of(now))
        told = told._replace(public_url=public_url, rate=rate, personalizer=personalizer, revert=revert)
        run(told._replace(offline=offline))


@keys.command("list")
def list_keys(store: Address) -> None:
    """List the keys: names, roles, when they were made and revoked; the secrets are nowhere.

    Example: stagewise keys list desk.db
    """
    with reading(store) as opened:
        from stagewise.cli.desk import day
        from stagewise.service.keys import Keys

        for key in Keys(opened).listed():
            revoked = "" if key.revoked is None else f", revoked {day(key.revoked)}"
            note = f"  {key.note}" if key.note else ""
            typer.echo(f"{key.name:<20} {key.role:<7} made {day(key.made)}{revoked}{note}")


@keys.command("add")
def add_key(
    store: Address,
    name: KeyName,
    role: Annotated[str, typer.Option(help="reader, writer or admin; each may what those before it may.")] = "writer",
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Make a key and show it, this once.

    Example: stagewise keys add desk.db dashboard --role reader
    """
    with changing(store) as kept:
        typer.echo(kept.add(name, role, note))


@keys.command("revoke")
def revoke_key(store: Address, name: KeyName) -> None:
    """Revoke a key: refused from now on, by a desk that runs within a second.

    Example: stagewise keys revoke desk.db dashboard
    """
    with changing(store) as kept:
        kept.revoke(name)
        typer.echo(f"the key {name!r} is revoked")


@contextmanager
def changing(address: str) -> "Iterator[Keys]":
    """Open the keys of a store that is there, to change them."""
    with reading(address, read_only=False) as store:
        from stagewise.service.keys import Keys

        yield Keys(store)
