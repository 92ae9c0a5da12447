"""`stagewise show`: describe a folder or file that stagewise wrote.

Each kind has a function that describes a path, or returns None if the path is something else. They are tried in the
order of `DESCRIBERS`.
"""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.error_handling import handle_errors
from stagewise.problem.errors import ErrorCode

DESCRIBERS = (  # MODULE:FUNCTION, imported when needed
    "stagewise.cli.show_folders:describe_result",
    "stagewise.cli.show_folders:describe_certificate",
    "stagewise.cli.show_folders:describe_reproduction",
    "stagewise.cli.show_folders:describe_comparison",
    "stagewise.cli.show_folders:describe_sweep",
    "stagewise.cli.show_folders:describe_unfinished",
    "stagewise.cli.show_folders:describe_certificates",
    "stagewise.cli.show_files:describe_agent",
    "stagewise.cli.show_files:describe_snapshot",
    "stagewise.cli.show_files:describe_store",
    "stagewise.cli.show_files:describe_result_file",
    "stagewise.cli.show_files:describe_json",
    "stagewise.cli.show_files:describe_log",
    "stagewise.cli.show_files:describe_toml",
)
KNOWN_KINDS = "results, comparisons, sweeps, certificates, reproductions, saved agents, server stores and logs"


def show(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A folder or file that a command, a server or an agent wrote.")
    ],
) -> None:
    """Describe a folder or file that stagewise wrote, and redraw the pictures of results.

    Example: stagewise show results
    """
    with handle_errors():
        typer.echo(describe_path(path))


def describe_path(path: Path) -> str:
    """Return the description of a path."""
    from stagewise.files.paths import get_irregular_kind, get_os_reason, parse_path
    from stagewise.problem.errors import InvalidFile
    from stagewise.problem.formatting import format_path

    path = parse_path(path)
    try:
        kind = get_irregular_kind(path)
        if not path.exists():
            raise InvalidFile(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(path))
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_UNREADABLE,
            "{path} cannot be read: {error}",
            path=format_path(path),
            error=get_os_reason(error),
        ) from None
    if kind not in (None, "a folder"):
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{path} is {type}, which cannot be shown; it must be a folder or a regular file",
            path=format_path(path),
            type=kind,
        )
    for name in DESCRIBERS:
        description = load_describer(name)(path)
        if description is not None:
            return str(description).rstrip("\n")
    raise InvalidFile(
        ErrorCode.FILE_WRONG_KIND,
        "{path} is a {type} that stagewise did not write; `show` reads {known_kinds}",
        path=format_path(path),
        type="folder" if kind else "file",
        known_kinds=KNOWN_KINDS,
    )


def load_describer(name: str) -> Any:
    """Return the function of this name."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def write_result_plot(result: Any, folder: Path) -> None:
    """Write result.png."""
    from stagewise.reports.plot_style import write_figure

    write_figure(result.plot(), folder / "result.png")
