"""Methods of others beside the library."""

from functools import partial

from stagewise_reproduction.beyond.comparison.table import build_tables
from stagewise_reproduction.beyond.rivals import claims, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="rivals",
        title="Rivals: methods of others, reconstructed",
        words=f"{len(plan.FAMILIES)} families of problems, δ = .01: "
        + "; ".join(f"{name}: {family.words}" for name, family in plan.FAMILIES.items())
        + ". Whiskers: one standard error over runs. rivals.md has the microseconds a round.",
        cells=plan.cells,
        draw=plan.draw,
        check=claims.check,
        table=partial(build_tables, families=plan.FAMILIES),
    )
]
