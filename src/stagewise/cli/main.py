"""The words people type: `stagewise simulate`, `compare`, `sweep`, `certify`, `serve` and the others."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise import __version__
from stagewise.cli.auditing import audit
from stagewise.cli.doctoring import doctor
from stagewise.cli.evaluating import evaluate
from stagewise.cli.forecasting import forecast
from stagewise.cli.order import Commands, InOrder
from stagewise.cli.reading import read_on
from stagewise.cli.saying import in_a_sentence as in_a_sentence
from stagewise.cli.serving import keys, serve
from stagewise.cli.show import picture, show

app = Commands(cls=InOrder, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(serve)
app.command()(doctor)
app.command()(evaluate)
app.command()(forecast)
app.command()(show)
app.command(name="help")(read_on)
app.add_typer(audit, name="audit")
app.add_typer(keys, name="keys")
Spec = Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file: stagewise help cli says what is in it.")]
Out = Annotated[Path, typer.Option(help="The folder for the results; an interrupted run continues there.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
Workers = Annotated[
    str | None,
    typer.Option(help="processes:N, dask:ADDRESS, dask:local or cuda; default: a process a core where it pays."),
]

NOT_INSTALLED = (
    "the paper's experiments are a package of their own in the repository of stagewise; "
    "in a clone of it, `make reproduce` installs and runs them"
)


def tell_version(asked: bool) -> None:
    """Print the version, and leave."""
    if asked:
        typer.echo(f"stagewise {__version__}")
        raise typer.Exit


@app.callback()
def everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learning by doing without breaking a limit. To read on: stagewise help."""


@app.command()
def simulate(spec: Spec, out: Out, executor: Workers = None, quiet: Quiet = False) -> None:
    """Play one policy in one world and keep the result.

    Example: stagewise simulate campaign.toml --out results
    """
    with in_a_sentence(out):
        from stagewise.cli.spec import read
        from stagewise.simulation.simulate import simulate as play

        asked = read(spec)
        settings = asked.simulation.model_dump()
        result = play(asked.policy, asked.world, **settings, executor=executor, progress=not quiet, out=out)
        picture(result, out)
        typer.echo(repr(result))


@app.command()
def compare(spec: Spec, out: Out = Path("comparison"), executor: Workers = None, quiet: Quiet = False) -> None:
    """Play several policies with the same random numbers: one table, one picture.

    Example: stagewise compare dose.toml --out comparison
    """
    with in_a_sentence(out):
        from stagewise.cli.comparing import compared
        from stagewise.cli.spec import read
        from stagewise.reports.comparison import tabled
        from stagewise.reports.files import write_text
        from stagewise.reports.picture import drawn
        from stagewise.reports.style import write_picture

        results = compared(read(spec), out, executor, not quiet)
        write_picture(drawn(results), out / "comparison.png")
        write_text(out / "comparison.md", tabled(results))
        typer.echo(tabled(results))


@app.command()
def sweep(spec: Spec, out: Out = Path("sweep"), executor: Workers = None, quiet: Quiet = False) -> None:
    """Play every policy in every world, under every limit and from every seed: one bar, one table.

    Example: stagewise sweep limits.toml --out sweep --executor processes:2
    """
    with in_a_sentence(out):
        from stagewise.cli.spec import read
        from stagewise.reports.comparison import tabled
        from stagewise.reports.files import write_text
        from stagewise.simulation.sweep import sweep as play

        asked = read(spec)
        settings = asked.simulation.model_dump(exclude={"seed"})
        settings |= {"executor": executor, "out": out, "progress": not quiet}
        settings["seeds"] = [asked.simulation.seed] if asked.sweep.seeds is None else asked.sweep.seeds
        settings |= {"thresholds": asked.sweep.thresholds, "limits": asked.sweep.limits}
        results = play(policies=asked.policies, worlds=asked.worlds, **settings)
        table = tabled({str(cell): result for cell, result in results.items()})
        write_text(out / "sweep.md", table)
        typer.echo(table)


@app.command()
def certify(
    spec: Annotated[Path | None, typer.Argument(metavar="FILE", help="A TOML file with one policy.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for certificate.json and certificate.html.")] = Path(
        "certificate"
    ),
    runs: Annotated[int, typer.Option(help="At most so many runs.")] = 100_000,
    delta: Annotated[float | None, typer.Option(help="What is claimed; default: the policy's own.")] = None,
    confidence: Annotated[float, typer.Option(help="Of every statement.")] = 0.999,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Play all runs, even when the answer is clear.")
    ] = False,
    executor: Workers = None,
    verify: Annotated[Path | None, typer.Option(help="Play part of this certificate's runs again.")] = None,
    part: Annotated[float, typer.Option(help="How large a part.")] = 0.05,
    seed: Annotated[int | None, typer.Option(help="Which part; default: by chance.")] = None,
    quiet: Quiet = False,
) -> None:
    """Test a policy's safety on many runs and say what they prove: leaves with 0 only if the claim is supported.

    Example: stagewise certify certificate.toml --runs 20000 --out certificate
    """
    with in_a_sentence(out if verify is None else None):
        from stagewise.cli.certifying import certified, checked
        from stagewise.problem.errors import InvalidFile

        if (spec is None) == (verify is None):
            raise InvalidFile("give a TOML file, or --verify FILE, and only one of them")
        if verify is not None:
            holds, words = checked(verify, part, seed, executor)
        elif spec is not None:
            told: dict[str, Any] = {"delta": delta, "confidence": confidence, "early": not exhaustive}
            holds, words = certified(spec, out, runs=runs, executor=executor, progress=not quiet, **told)
        typer.echo(words)
    if not holds:
        raise typer.Exit(1)


@app.command()
def problem(spec: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file that declares a problem.")]) -> None:
    """Print a problem as it was understood: which model each signal gets, and why.

    Example: stagewise problem templates.toml
    """
    with in_a_sentence():
        from stagewise.cli.declared import problem_in

        typer.echo(str(problem_in(spec)))


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def reproduce(context: typer.Context) -> None:
    """Run the paper's experiments, where the package that holds them is installed.

    Example: stagewise reproduce --preset text --size quick
    """
    for plugin in entry_points(group="stagewise.commands", name="reproduce"):
        plugin.load()(context.args, prog_name="stagewise reproduce")
    typer.echo(f"stagewise: {NOT_INSTALLED}", err=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
