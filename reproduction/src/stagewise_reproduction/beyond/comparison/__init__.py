"""All policies side by side."""

from stagewise_reproduction.beyond.comparison.claims import check
from stagewise_reproduction.beyond.comparison.figure import draw
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, cells
from stagewise_reproduction.beyond.comparison.table import tabled
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="comparison",
        title="Where the paper stops: all policies side by side",
        words="Six families of problems, δ = .01: "
        + "; ".join(f"{name}: {family.words}" for name, family in FAMILIES.items())
        + ". Whiskers: one standard error over runs. comparison.md has the microseconds a round.",
        cells=cells,
        draw=draw,
        check=check,
        table=tabled,
    )
]
