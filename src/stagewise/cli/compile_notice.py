"""A line on the terminal when kernels are compiled."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

COMPILE_NOTICE = "Compiling machine code for these settings; it is cached for later runs."


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Print one line when the first kernel is compiled, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from numba.core import event

    class CompileListener(event.Listener):
        """Prints the notice once."""

        has_printed = False

        def on_start(self, event: Any) -> None:
            """Print the notice at the first compilation."""
            if not self.has_printed:
                self.has_printed = True
                typer.echo(COMPILE_NOTICE, err=True)

        def on_end(self, event: Any) -> None:
            """Do nothing."""

    with event.install_listener("numba:compile", CompileListener()):
        yield
