"""Section 3's comparison with an explore-first algorithm."""

from stagewise_reproduction.beyond.safe_lucb import claims, figure, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="safe-lucb",
        title="Exploring first: Safe-LUCB",
        words="The rays of Figure 1 in d = 3, τ = .5, noise .1; regret at the end of horizons T, each with T^(2/3) "
        "rounds of forced exploration for Safe-LUCB (Amani, Alizadeh, Thrampoulidis 2019). Points: runs; lines: means.",
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
