"""The command line `stagewise`."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise import __version__
from stagewise.cli.audit_command import audit_app
from stagewise.cli.command_order import CommandApp, OrderedGroup
from stagewise.cli.compile_notice import announce_compilation
from stagewise.cli.doctor_command import doctor
from stagewise.cli.error_handling import handle_errors as handle_errors
from stagewise.cli.evaluate_command import evaluate
from stagewise.cli.forecast_command import forecast
from stagewise.cli.help_command import show_help
from stagewise.cli.serve_command import keys_app, serve
from stagewise.cli.show_command import show, write_result_plot
from stagewise.problem.errors import ErrorCode

app = CommandApp(cls=OrderedGroup, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(serve)
app.command()(doctor)
app.command()(evaluate)
app.command()(forecast)
app.command()(show)
app.command(name="help")(show_help)
app.add_typer(audit_app, name="audit")
app.add_typer(keys_app, name="keys")
SpecArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The simulation, a TOML file; `stagewise help cli` lists its keys.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for the results; an interrupted run continues there.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ExecutorOption = Annotated[
    str | None,
    typer.Option(help="processes:N, dask:ADDRESS, dask:local or cuda; default: one process per core if faster."),
]

NOT_INSTALLED_MESSAGE = (
    "the paper's experiments are a separate package in the repository of stagewise; "
    "`make reproduce` in a clone installs and runs it"
)


def print_version(is_given: bool) -> None:
    """Print the version and exit."""
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


@app.command()
def simulate(spec: SpecArgument, out: OutOption, executor: ExecutorOption = None, quiet: QuietOption = False) -> None:
    """Simulate one policy in one world and store the result.

    Example: stagewise simulate campaign.toml --out results
    """
    with handle_errors(out), announce_compilation():
        from stagewise.cli.spec import read_spec
        from stagewise.simulation.simulate import simulate as run_simulation

        content = read_spec(spec)
        settings = content.simulation.model_dump() | {"executor": executor, "progress": not quiet, "out": out}
        result = run_simulation(content.policy, content.world, **settings)
        write_result_plot(result, out)
        typer.echo(repr(result))


@app.command()
def compare(
    spec: SpecArgument, out: OutOption = Path("comparison"), executor: ExecutorOption = None, quiet: QuietOption = False
) -> None:
    """Simulate several policies with the same random numbers, and write a table and a picture.

    Example: stagewise compare dose.toml --out comparison
    """
    with handle_errors(out), announce_compilation():
        from stagewise.cli.compare_command import run_compare
        from stagewise.cli.spec import read_spec
        from stagewise.files.atomic_write import write_text
        from stagewise.reports.plot_style import write_figure
        from stagewise.reports.result_plot import format_table, plot_results

        results = run_compare(read_spec(spec), out, executor, not quiet)
        write_figure(plot_results(results), out / "comparison.png")
        write_text(out / "comparison.md", format_table(results))
        typer.echo(format_table(results))


@app.command()
def sweep(
    spec: SpecArgument, out: OutOption = Path("sweep"), executor: ExecutorOption = None, quiet: QuietOption = False
) -> None:
    """Simulate every policy in every world, with every limit and every seed, and write a table.

    Example: stagewise sweep limits.toml --out sweep --executor processes:2
    """
    with handle_errors(out), announce_compilation():
        from stagewise.cli.spec import read_spec
        from stagewise.files.atomic_write import write_text
        from stagewise.reports.result_plot import format_table
        from stagewise.simulation.sweep import sweep as run_sweep

        content = read_spec(spec)
        settings = content.simulation.model_dump(exclude={"seed"})
        settings |= {"executor": executor, "out": out, "progress": not quiet}
        settings["seeds"] = [content.simulation.seed] if content.sweep.seeds is None else content.sweep.seeds
        settings |= {"thresholds": content.sweep.thresholds, "limits": content.sweep.limits}
        results = run_sweep(policies=content.policies, worlds=content.worlds, **settings)
        table = format_table({str(cell): result for cell, result in results.items()})
        write_text(out / "sweep.md", table)
        typer.echo(table)


@app.command()
def certify(
    spec: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The simulation, a TOML file with one policy.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for certificate.json and certificate.html.")] = Path("certificate"),
    runs: Annotated[int, typer.Option(help="Maximum number of runs.")] = 100_000,
    delta: Annotated[float | None, typer.Option(help="Claimed probability of failure; default: the policy's.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of every statement.")] = 0.999,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Make all runs, even if the answer is clear early.")
    ] = False,
    executor: ExecutorOption = None,
    verify: Annotated[Path | None, typer.Option(help="Certificate to verify by repeating its runs.")] = None,
    fraction: Annotated[float, typer.Option(help="With --verify: fraction of the runs to repeat.")] = 0.05,
    seed: Annotated[
        int | None, typer.Option(help="With --verify: seed that selects the runs; default: random.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Test by simulation whether a policy keeps its limits. Exit code 1 unless the claim is supported.

    Example: stagewise certify certificate.toml --runs 20000 --out certificate
    """
    with handle_errors(out if verify is None else None), announce_compilation():
        from stagewise.cli.certify_command import run_certify, run_verify
        from stagewise.problem.errors import InvalidFile

        if (spec is None) == (verify is None):
            raise InvalidFile(
                ErrorCode.CONFLICTING_OPTIONS, "give either a TOML file or --verify FILE, and only one of them"
            )
        if verify is not None:
            holds, text = run_verify(verify, fraction, seed, executor)
        elif spec is not None:
            claim: dict[str, Any] = {"delta": delta, "confidence": confidence, "stop_early": not exhaustive}
            holds, text = run_certify(spec, out, runs=runs, executor=executor, progress=not quiet, **claim)
        typer.echo(text)
    if not holds:
        raise typer.Exit(1)


@app.command()
def problem(spec: Annotated[Path, typer.Argument(metavar="FILE", help="The problem, a TOML file.")]) -> None:
    """Print the model of every signal of a problem, and why it was chosen.

    Example: stagewise problem templates.toml
    """
    with handle_errors():
        from stagewise.cli.problem_file import load_problem_file

        typer.echo(str(load_problem_file(spec)))


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def reproduce(context: typer.Context) -> None:
    """Run the paper's experiments, if their package is installed.

    Example: stagewise reproduce --preset text --size quick
    """
    for plugin in entry_points(group="stagewise.commands", name="reproduce"):
        plugin.load()(context.args, prog_name="stagewise reproduce")
    typer.echo(f"stagewise: {NOT_INSTALLED_MESSAGE}", err=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
