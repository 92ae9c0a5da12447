"""The order of commands in `stagewise --help`, and errors outside of commands."""

import sys
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from stagewise.cli.error_handling import EXIT_ERROR, EXIT_INTERRUPTED, close_broken_streams, format_os_error

COMMAND_ORDER = (
    *("problem", "doctor", "forecast", "simulate", "compare", "sweep", "certify"),
    *("serve", "keys", "audit", "evaluate", "show", "help", "reproduce"),
)


class CommandApp(typer.Typer):
    """The command line; Ctrl+C and output errors outside of commands print no traceback."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command."""
        try:
            return super().__call__(*args, **kwargs)
        except KeyboardInterrupt:
            sys.exit(EXIT_INTERRUPTED)
        except OSError as error:  # of output outside of commands, such as help
            with suppress(OSError):
                typer.echo(f"stagewise: {format_os_error(error)}", err=True)
            close_broken_streams()
            sys.exit(EXIT_ERROR)


class OrderedGroup(TyperGroup):
    """The commands in the order of COMMAND_ORDER; others come last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        names = super().list_commands(ctx)
        return sorted(
            names, key=lambda name: COMMAND_ORDER.index(name) if name in COMMAND_ORDER else len(COMMAND_ORDER)
        )
