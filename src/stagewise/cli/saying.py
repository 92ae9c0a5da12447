"""Everything that can go wrong, said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

EXTRAS = dict.fromkeys(("msgspec", "starlette", "uvicorn", "httptools", "uvloop", "jinja2"), "serve")
EXTRAS |= {"psycopg": "postgres", "psycopg_binary": "postgres"}


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Say what is wrong in one line, and leave with 2."""
    from stagewise.problem.errors import StagewiseError

    try:
        yield
    except (StagewiseError, OSError) as error:
        words = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        words = (
            f"the desk needs {error.name}, which is not installed; install it with: pip install 'stagewise[{extra}]'"
        )
    else:
        return
    typer.echo(f"stagewise: {words}", err=True)
    raise typer.Exit(2)
