"""Commands in the order of a user's life: say it, check it, try it, prove it, run it, look back."""

import sys
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from stagewise.cli.saying import INTERRUPTED, REFUSED, hush, refused_by_the_system

LIFE = (
    *("problem", "doctor", "forecast", "simulate", "compare", "sweep", "certify"),
    *("serve", "keys", "audit", "evaluate", "show", "help", "reproduce"),
)


class Commands(typer.Typer):
    """All commands; Ctrl+C before one of them has begun ends without a word, and no output is worth a traceback."""

    def __call__(self, *words: Any, **settings: Any) -> Any:
        """Do what was typed."""
        try:
            return super().__call__(*words, **settings)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except OSError as error:  # of what was printed outside of every command, such as help
            with suppress(OSError):
                typer.echo(f"stagewise: {refused_by_the_system(error)}", err=True)
            hush()
            sys.exit(REFUSED)


class InOrder(TyperGroup):
    """The commands, as `--help` lists them; one that is not known here comes last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: LIFE.index(name) if name in LIFE else len(LIFE))
