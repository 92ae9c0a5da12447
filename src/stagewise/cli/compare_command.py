"""The work of `stagewise compare`: simulate every policy of a file in its world."""

from pathlib import Path
from typing import Any

from stagewise.cli.spec import Spec
from stagewise.reports.result import Result
from stagewise.simulation.jobs import resolve_cuda
from stagewise.simulation.simulate import build_simulation, run_simulations


def run_compare(spec: Spec, out: Path, executor: Any, progress: bool) -> dict[str, Result]:
    """Return the result of every policy by name; all settings are checked before the first run."""
    settings = spec.simulation.model_dump()
    runs, backend = settings.pop("runs"), settings.pop("backend")
    backend, executor = resolve_cuda(backend, executor)
    simulations = {
        name: build_simulation(policy, spec.world, runs, out=out / name, backend=backend, **settings)
        for name, policy in spec.policies.items()
    }
    return run_simulations(simulations, executor, progress)
