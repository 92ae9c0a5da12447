"""`stagewise show`: what a folder or file that stagewise wrote holds, and which command reads it.

One function for each kind: it is given a path and returns words, or None where the path is something else. They are
asked in order. A new kind is a function in a file of its own, and one line in `LOOKS`.
"""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.saying import in_a_sentence

LOOKS = (  # MODULE:FUNCTION, loaded when it is asked
    "stagewise.cli.shown_folders:result",
    "stagewise.cli.shown_folders:certificate",
    "stagewise.cli.shown_folders:reproduction",
    "stagewise.cli.shown_folders:comparison",
    "stagewise.cli.shown_folders:sweep",
    "stagewise.cli.shown_folders:unfinished",
    "stagewise.cli.shown_folders:certificates",
    "stagewise.cli.shown_files:agent",
    "stagewise.cli.shown_files:snapshot",
    "stagewise.cli.shown_files:store",
    "stagewise.cli.shown_files:part",
    "stagewise.cli.shown_files:written",
    "stagewise.cli.shown_files:log",
    "stagewise.cli.shown_files:toml",
)
KNOWN = "results, comparisons, sweeps, certificates, reproductions, saved agents, desk stores and logs"


def show(
    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder or file that a command, a desk or an agent wrote.")
    ],
) -> None:
    """Say what a folder or file holds, and draw results again.

    Example: stagewise show results
    """
    with in_a_sentence():
        typer.echo(look(path))


def look(path: Path) -> str:
    """Return what a path holds, in words, or refuse it."""
    from stagewise.files.paths import irregular, named, path_of, reason
    from stagewise.problem.errors import InvalidFile

    place = path_of(path)
    try:
        kind = irregular(place)
        if not place.exists():
            raise InvalidFile(f"{named(place)} does not exist")
    except OSError as error:
        raise InvalidFile(f"{named(place)} cannot be read: {reason(error)}") from None
    if kind not in (None, "a folder"):
        raise InvalidFile(f"{named(place)} cannot be shown, since it is {kind}; it must be a folder or a plain file")
    for name in LOOKS:
        words = look_by(name)(place)
        if words is not None:
            return str(words).rstrip("\n")
    what = "folder" if kind else "file"
    raise InvalidFile(f"{named(place)} is a {what} that stagewise did not write: `show` knows {KNOWN}")


def look_by(name: str) -> Any:
    """Return the function of this name."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def picture(result: Any, folder: Path) -> None:
    """Write result.png."""
    from stagewise.reports.style import write_picture

    write_picture(result.plot(), folder / "result.png")
