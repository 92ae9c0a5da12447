"""All policies side by side."""

from stagewise_reproduction.beyond.comparison import claims, figure, plan, table
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="comparison",
        title="Where the paper stops: all policies side by side",
        words=f"{len(plan.FAMILIES)} families of problems, δ = .01: "
        + "; ".join(f"{name}: {family.words}" for name, family in plan.FAMILIES.items())
        + ". Whiskers: one standard error over runs. comparison.md has the microseconds a round.",
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
        table=table.build_tables,
    )
]
