"""Errors of commands as one line and an exit code."""

import errno
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

EXTRAS = dict.fromkeys(("msgspec", "starlette", "uvicorn", "httptools", "uvloop", "jinja2"), "serve")
EXTRAS |= {"psycopg": "postgres", "psycopg_binary": "postgres"}
EXIT_ERROR, EXIT_INTERRUPTED = 2, 130  # exit codes; shells expect the second after Ctrl+C
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    except KeyboardInterrupt as error:
        message, code = format_interrupt(error, out), EXIT_INTERRUPTED
    with suppress(OSError):  # stderr may be closed; the exit code remains
        typer.echo(f"stagewise: {message}", err=True)
    close_broken_streams()
    raise typer.Exit(code)


def format_os_error(error: OSError) -> str:
    """Return the message of an operating system error."""
    file = error.filename or "the output"
    hint = "; free some space or choose another folder" if error.errno in DISK_FULL_ERRNOS else ""
    return f"{file}: {error.strerror}{hint}" if error.strerror else str(error)


def format_interrupt(error: KeyboardInterrupt, out: Path | None) -> str:
    """Return the message after Ctrl+C, with how to continue."""
    kept, runs = getattr(error, "kept", None), getattr(error, "runs", None)
    if out is None:
        return "interrupted"
    if kept is None:
        return "interrupted; run the same command again to continue"
    return f"interrupted; {kept:,} of {runs:,} runs are stored in {out}; run the same command again to continue"


def close_broken_streams() -> None:
    """Close output streams that cannot be flushed, so that Python prints no error at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                stream.close()
