"""OPB on random arms."""

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_3 import claims, figure, plan

EXPERIMENTS = [
    Experiment(
        name="figure-3",
        title="Figure 3: OPB on random arms",
        words="Safe arm r = c = 0, other means uniform on [0, 1], Bernoulli outcomes, one instance a run, the same for "
        f"every τ. Text: the paper's radius with the horizon T and δ = .01. Authors: the bounds of Figure 4. {BANDS}",
        errata=(33, 63),
        presets=PRESETS,
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
