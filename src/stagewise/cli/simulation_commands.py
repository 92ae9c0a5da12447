"""`stagewise simulate`, `compare` and `certify`: what is run from the TOML file of a simulation."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from stagewise.cli.console import announce_compilation, handle_errors
from stagewise.problem.errors import ErrorCode, InvalidFile

SpecArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The simulation, a TOML file; `stagewise help cli` lists its keys.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for the results; an interrupted run continues there.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ExecutorOption = Annotated[
    str | None,
    typer.Option(help="Where to run: processes:N or cuda; default: one process per core if faster."),
]


def simulate(spec: SpecArgument, out: OutOption, executor: ExecutorOption = None, quiet: QuietOption = False) -> None:
    """Simulate one policy in one world and store the result.

    Example: stagewise simulate campaign.toml --out results
    """
    with handle_errors(out), announce_compilation():
        from stagewise.cli.spec import read_spec
        from stagewise.reports.style import write_figure
        from stagewise.simulation.simulate import simulate as run_simulation

        content = read_spec(spec)
        settings = asdict(content.simulation) | {"executor": executor, "progress": not quiet, "out": out}
        result = run_simulation(content.policy, content.world, **settings)
        write_figure(result.plot(), out / "result.png")
        typer.echo(repr(result))


def compare(
    spec: SpecArgument, out: OutOption = Path("comparison"), executor: ExecutorOption = None, quiet: QuietOption = False
) -> None:
    """Simulate several policies with the same random numbers, and write a table and a picture.

    Example: stagewise compare dose.toml --out comparison
    """
    with handle_errors(out), announce_compilation():
        from stagewise.cli.spec import read_spec
        from stagewise.files.paths import write_text
        from stagewise.reports.result import format_table, plot_results
        from stagewise.reports.style import write_figure
        from stagewise.simulation.simulate import build_simulation, resolve_cuda, run_simulations

        content = read_spec(spec)
        settings = asdict(content.simulation)
        settings["backend"], pool = resolve_cuda(settings["backend"], executor)
        simulations = {  # all settings are checked before the first run
            name: build_simulation(policy, content.world, out=out / name, **settings)
            for name, policy in content.policies.items()
        }
        results = run_simulations(simulations, pool, not quiet)
        write_figure(plot_results(results), out / "comparison.png")
        write_text(out / "comparison.md", format_table(results))
        typer.echo(format_table(results))


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
        if spec is not None and verify is None:
            claim: dict[str, Any] = {"delta": delta, "confidence": confidence, "stop_early": not exhaustive}
            holds = certify_file(spec, out, runs=runs, executor=executor, progress=not quiet, **claim)
        elif verify is not None and spec is None:
            holds = replay_certificate(verify, replay_fraction=fraction, seed=seed, executor=executor)
        else:
            problem = "give either a TOML file or --verify FILE, and only one of them"
            raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, problem)
    if not holds:
        raise typer.Exit(1)


def certify_file(spec: Path, out: Path, **settings: Any) -> bool:
    """Certify the policy of a file; rounds, seed and backend are those of its [simulation]."""
    from stagewise.cli.spec import read_spec
    from stagewise.reports.certificate_page import format_headline
    from stagewise.simulation.certify import certify as run_certify
    from stagewise.worlds.world_families import build_family

    content = read_spec(spec)
    policy, declared = content.policy, content.simulation
    safe = getattr(getattr(policy, "safe_action", None), "arm", None) or 0
    family = build_family(content.certify.family, content.world, safe, declared.seed, content.certify.spread)
    settings |= {"rounds": declared.rounds, "seed": declared.seed, "backend": declared.backend, "out": out}
    certificate = run_certify(policy, family, name=spec.stem.replace("_", " ").replace("-", " "), **settings)
    typer.echo(f"{certificate.verdict}: {format_headline(certificate.content)}")
    typer.echo(f"The certificate: {out / 'certificate.html'}")
    return certificate.holds


def replay_certificate(path: Path, **settings: Any) -> bool:
    """Repeat a fraction of a certificate's runs and compare them."""
    from stagewise.problem.formatting import format_count
    from stagewise.reports.certificate import SimulationCertificate
    from stagewise.reports.certificate_page import format_headline
    from stagewise.simulation.verify import verify_certificate

    found = verify_certificate(path, **settings)
    batches = "1 batch" if found.batches == 1 else f"{found.batches} batches"
    repeated = f"{format_count(found.runs, 'run')} in {batches} were repeated, {found.equal} of them bit for bit"
    made, here = (", ".join(f"{name} {pair[side]}" for name, pair in found.differences.items()) for side in (0, 1))
    other = f" Made with {made}; verified with {here}." if found.differences else ""
    if not found.stands:
        hint = " Verify it with the version that made it: another may play other actions." if other else ""
        typer.echo(f"{path} is not confirmed: {'; '.join(map(str, found.faults))}. {repeated}.{other}{hint}")
        return False
    content, names = SimulationCertificate.load(path).content, ", ".join(found.unconfirmed)
    unconfirmed = f" Consistent, but compared only with --fraction 1: {names}." if names else ""
    verdict = f"Its verdict: {content['verdict']}, {format_headline(content)}"
    within = " Numbers agree within 1e-6." if other and found.equal < found.batches else ""
    typer.echo(f"{path} is confirmed: {repeated}.{other}{within}{unconfirmed} {verdict}")
    return True
