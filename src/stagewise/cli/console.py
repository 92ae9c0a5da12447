"""What all commands share: errors as one line and an exit code, and a notice of compilation."""

import errno
import getpass
import os
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

COMPILE_NOTICE = "Compiling machine code for these settings; it is cached for later runs."
EXTRAS = dict.fromkeys(("msgspec", "starlette", "uvicorn", "httptools", "uvloop", "jinja2"), "serve")
EXTRAS |= {"psycopg": "postgres", "psycopg_binary": "postgres"}
EXIT_ERROR, EXIT_INTERRUPTED = 2, 130  # exit codes; shells expect the second after Ctrl+C
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CommandApp(typer.Typer):
    """The command line; Ctrl+C and output errors outside of commands print no traceback."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except KeyboardInterrupt:
            sys.exit(EXIT_INTERRUPTED)
        except OSError as error:  # of output outside of commands, such as help
            print_error(format_os_error(error))
            sys.exit(EXIT_ERROR)


@contextmanager
def handle_errors(out: Path | None = None) -> Iterator[None]:
    """Print an error as one line and exit with 2, or with 130 after Ctrl+C; `out` is the folder of the runs."""
    from stagewise.problem.errors import StagewiseError

    code = EXIT_ERROR
    try:
        yield
        return
    except StagewiseError as error:
        message = str(error)
    except BrokenPipeError:  # the reader of the pipe has stopped
        raise
    except OSError as error:
        message = format_os_error(error)
    except MemoryError as error:
        message = f"not enough memory: {error or 'allocation failed'}; use fewer runs, actions or features"
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        message = f"the server needs {error.name}; install it with: pip install 'stagewise[{extra}]'"
    except BrokenExecutor:
        message = "worker processes died repeatedly, perhaps for lack of memory; try --executor processes:1"
    except KeyboardInterrupt:
        hint = "" if out is None else f"; what is finished is in {out}: run the same command again to continue"
        message, code = f"interrupted{hint}", EXIT_INTERRUPTED
    print_error(message)
    raise typer.Exit(code)


def print_error(message: str) -> None:
    """Print an error, and close output streams that cannot be flushed, so that Python prints none at exit."""
    with suppress(OSError):  # stderr may be closed; the exit code remains
        typer.echo(f"stagewise: {message}", err=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                stream.close()


def format_os_error(error: OSError) -> str:
    """Return the message of an operating system error."""
    file = error.filename or "the output"
    hint = "; free some space or choose another folder" if error.errno in DISK_FULL_ERRNOS else ""
    return f"{file}: {error.strerror}{hint}" if error.strerror else str(error)


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


def get_actor() -> str:
    """Return the actor for the log: the user of the command line."""
    try:
        return f"{getpass.getuser()}, on the command line"
    except (KeyError, OSError, ImportError):  # the user has no name, as in some containers
        return f"user {os.getuid()}, on the command line"
