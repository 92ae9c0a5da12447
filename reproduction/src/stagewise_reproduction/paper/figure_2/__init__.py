"""LC-LUCB and Safe-LTS on the unit sphere."""

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_2 import claims, figure, plan

EXPERIMENTS = [
    Experiment(
        name="figure-2",
        title="Figure 2: the unit sphere",
        words="θ*, μ* and a hundred rays uniform on the unit sphere, τ uniform on [0, 1], one instance a run, noise of "
        "standard deviation .1. Text: the paper's radius. Authors: the radii of their code. Both policies play the "
        f"same instances; the published code drew different ones. {BANDS}",
        errata=(60, 64),
        presets=PRESETS,
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
