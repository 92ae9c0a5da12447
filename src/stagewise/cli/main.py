"""The command line `stagewise`."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from stagewise import __version__
from stagewise.cli.console import CommandApp, handle_errors
from stagewise.cli.help_command import show_help
from stagewise.cli.log_commands import doctor, evaluate, forecast
from stagewise.cli.serve_command import serve
from stagewise.cli.simulation_commands import certify, compare, simulate
from stagewise.cli.store_commands import audit_app, keys_app, store_app
from stagewise.cli.table_commands import decide, learn

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
