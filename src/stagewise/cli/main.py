"""The command line `stagewise`."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from stagewise import __version__
from stagewise.cli.console import CommandApp, handle_errors
from stagewise.cli.log_commands import doctor, evaluate, forecast
from stagewise.cli.serve_command import serve
from stagewise.cli.simulation_commands import certify, compare, simulate
from stagewise.cli.store_commands import audit_app, keys_app, store_app
from stagewise.cli.table_commands import decide, learn
from stagewise.problem.errors import ErrorCode

INSTALLED_DOCS = Path(__file__).parents[1] / "docs"  # in a wheel: pyproject.toml says which pages
CHECKOUT_DOCS = Path(__file__).parents[3] / "docs"  # in a clone of the repository
PAGE_FOLDERS = ("tutorials", "how-to", "explanation", "reference", "theory")  # in the order of the list
EXCLUDED_PAGES = ("index", "api", "architecture")  # for the documentation's website, or for developers


def show_help(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="A page or a command. Without it, the pages are listed.")] = None,
) -> None:
    """Print a page of the documentation of this version, or list the pages.

    Example: stagewise help declare-a-problem
    """
    with handle_errors():
        commands = getattr(context.find_root().command, "commands", {})
        if topic is None:
            typer.echo(format_contents())
        elif topic in commands and topic not in list_pages():
            command = commands[topic]
            typer.echo(command.get_help(typer.Context(command, info_name=topic, parent=context.parent)), nl=False)
        else:
            typer.echo(read_page(topic))


def list_pages() -> dict[str, Path]:
    """Return the pages by topic, tutorials first."""
    folder = INSTALLED_DOCS if INSTALLED_DOCS.is_dir() else CHECKOUT_DOCS
    pages = [path for kind in PAGE_FOLDERS for path in sorted((folder / kind).glob("*.md"))]
    return {f"{path.parent.name}/{path.stem}": path for path in pages if path.stem not in EXCLUDED_PAGES}


def read_title(path: Path) -> str:
    """Return the heading of a page."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip("# \n")


def format_contents() -> str:
    pages = list_pages()
    width = max(map(len, pages), default=0)
    rows = [f"  {name:{width}}  {read_title(path)}" for name, path in pages.items()]
    return "\n".join(["stagewise help TOPIC prints a page, stagewise COMMAND --help the options of a command.", *rows])


def read_page(topic: str) -> str:
    from stagewise.files.paths import read_file
    from stagewise.problem.errors import InvalidProblem
    from stagewise.problem.formatting import safe_repr, suggest_name

    name, pages = topic.removeprefix("docs/").removesuffix(".md"), list_pages()
    name = next((page for page in pages if page.endswith(f"/{name}")), name)  # the folder may be left out
    if name not in pages:
        names = [*pages, *(page.partition("/")[2] for page in pages)]
        hint = suggest_name(name, names) or "; `stagewise help` lists the pages"
        raise InvalidProblem(
            ErrorCode.UNKNOWN_NAME, "there is no help page {topic}{hint}", topic=safe_repr(topic), hint=hint
        )
    return read_file(pages[name]).decode()


NOT_INSTALLED_MESSAGE = (
    "the paper's experiments are a separate package in the repository of stagewise; "
    "`make reproduce` in a clone installs and runs it"
)

app = CommandApp(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"stagewise {__version__}")
        raise typer.Exit


@app.callback()
def main_callback(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Bandits that keep limits on costs in every round. `stagewise help` prints the documentation."""


def problem(spec: Annotated[Path, typer.Argument(metavar="FILE", help="The problem, a TOML file.")]) -> None:
    """Print the model of every signal of a problem, and why it was chosen.

    Example: stagewise problem templates.toml
    """
    with handle_errors():
        from stagewise.cli.problem_file import load_problem_file

        typer.echo(str(load_problem_file(spec)))


def reproduce(context: typer.Context) -> None:
    """Run the paper's experiments, if their package is installed.

    Example: stagewise reproduce --preset text --size quick
    """
    for plugin in entry_points(group="stagewise.commands", name="reproduce"):
        plugin.load()(context.args, prog_name="stagewise reproduce")
    typer.echo(f"stagewise: {NOT_INSTALLED_MESSAGE}", err=True)
    raise typer.Exit(2)


for command in (problem, doctor, forecast, simulate, compare, certify, decide, learn, serve, evaluate):
    app.command()(command)
app.command(name="help")(show_help)
unparsed = {"ignore_unknown_options": True, "allow_extra_args": True}
app.command(add_help_option=False, context_settings=unparsed)(reproduce)
app.add_typer(keys_app, name="keys")
app.add_typer(audit_app, name="audit")
app.add_typer(store_app, name="store")

if __name__ == "__main__":
    app()
