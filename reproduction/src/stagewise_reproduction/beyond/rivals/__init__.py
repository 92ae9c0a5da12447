"""Methods of others beside the library."""

from functools import partial

from stagewise_reproduction.beyond.comparison.table import build_tables, describe_families
from stagewise_reproduction.beyond.rivals import claims, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="rivals",
        title="Rivals: methods of others, reconstructed",
        words=describe_families("rivals", plan.FAMILIES),
        cells=plan.cells,
        draw=plan.draw,
        check=claims.check,
        table=partial(build_tables, families=plan.FAMILIES),
    )
]
