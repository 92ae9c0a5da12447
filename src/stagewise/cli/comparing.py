"""What `stagewise compare` plays: every policy of a file in its one world, all of them together."""

from pathlib import Path
from typing import Any

from stagewise.cli.spec import Spec
from stagewise.reports.result import Result
from stagewise.simulation.jobs import on_cuda
from stagewise.simulation.simulate import asked, collected


def compared(spec: Spec, out: Path, executor: Any, progress: bool) -> dict[str, Result]:
    """Return the result of every policy by its name; whatever one of them refuses is refused before any is played."""
    settings = spec.simulation.model_dump()
    runs, backend = settings.pop("runs"), settings.pop("backend")
    backend, executor = on_cuda(backend, executor)
    simulations = {
        name: asked(policy, spec.world, runs, out=out / name, backend=backend, **settings)
        for name, policy in spec.policies.items()
    }
    return collected(simulations, executor, progress)
