"""Everything that can go wrong, said in one line."""

import errno
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

EXTRAS = dict.fromkeys(("msgspec", "starlette", "uvicorn", "httptools", "uvloop", "jinja2"), "serve")
EXTRAS |= {"psycopg": "postgres", "psycopg_binary": "postgres"}
REFUSED, INTERRUPTED = 2, 130  # exit codes; the second is what a shell expects of Ctrl+C
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def in_a_sentence(out: Path | None = None) -> Iterator[None]:
    """Say what is wrong in one line, and leave with 2; with 130 after Ctrl+C. `out`: where runs are kept."""
    from stagewise.problem.errors import StagewiseError

    code = REFUSED
    try:
        yield
        return
    except StagewiseError as error:
        words = str(error)
    except BrokenPipeError:  # who reads has seen enough
        raise
    except OSError as error:
        words = refused_by_the_system(error)
    except MemoryError as error:
        words = (
            f"there is not enough memory: {error or 'the system gives no more'}; use fewer runs, actions or features"
        )
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        words = (
            f"the desk needs {error.name}, which is not installed; install it with: pip install 'stagewise[{extra}]'"
        )
    except BrokenExecutor:
        words = "a worker process died again and again, for want of memory perhaps; try --executor processes:1"
    except KeyboardInterrupt as error:
        words, code = interrupted(error, out), INTERRUPTED
    with suppress(OSError):  # where even that cannot be said, the exit code tells
        typer.echo(f"stagewise: {words}", err=True)
    hush()
    raise typer.Exit(code)


def refused_by_the_system(error: OSError) -> str:
    """Return what the system refused, and what helps."""
    what = error.filename or "the output"
    helps = "; make room or choose another place" if error.errno in NO_ROOM else ""
    return f"{what}: {error.strerror}{helps}" if error.strerror else str(error)


def interrupted(error: KeyboardInterrupt, out: Path | None) -> str:
    """Return how to go on after Ctrl+C."""
    kept, runs = getattr(error, "kept", None), getattr(error, "runs", None)
    if out is None:
        return "interrupted"
    if kept is None:
        return "interrupted; run the same command again to continue"
    return f"run the same command again to continue; {kept:,} of {runs:,} runs are kept in {out}"


def hush() -> None:
    """Let nothing be said at the end of the program of an output that could not be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                stream.close()
