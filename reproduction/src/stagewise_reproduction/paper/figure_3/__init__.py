"""OPB on random arms."""

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_3.claims import check
from stagewise_reproduction.paper.figure_3.figure import draw
from stagewise_reproduction.paper.figure_3.plan import cells

EXPERIMENTS = [
    Experiment(
        name="figure-3",
        title="Figure 3: OPB on random arms",
        words="Safe arm r = c = 0, other means uniform on [0, 1], Bernoulli outcomes, one instance a run, the same "
        "for every τ. "
        f"Text: the paper's radius with the horizon T and δ = .01. Authors: the bounds of Figure 4. {BANDS}",
        errata=(33, 63),
        presets=PRESETS,
        cells=cells,
        draw=draw,
        check=check,
    )
]
