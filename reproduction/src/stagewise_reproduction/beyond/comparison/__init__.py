"""All policies side by side."""

from stagewise_reproduction.beyond.comparison import claims, figure, plan, table
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="comparison",
        title="Where the paper stops: all policies side by side",
        words=table.describe_families("comparison"),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
        table=table.build_tables,
    )
]
