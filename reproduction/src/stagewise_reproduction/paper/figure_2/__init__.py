"""LC-LUCB and Safe-LTS on the unit sphere."""

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_2 import claims, figure, plan

EXPERIMENTS = [
    Experiment(
        name="figure-2",
        title="Figure 2: the unit sphere",
        words=f"θ*, μ* and {plan.RAYS} rays uniform on the unit sphere, τ uniform on [0, 1], one instance a run. Both "
        f"policies play the same instances; the authors' code drew different ones. {BANDS}",
        preset_words={
            "text": "λ = 1 and the paper's radius; the text states no noise, so it is N(0, 1), as in Figure 1.",
            "authors": "Noise of standard deviation .1, λ = .1, the radii of their code.",
            "ours": "Noise of standard deviation .1, our defaults at δ = .01.",
        },
        errata=(60, 62, 64),
        presets=PRESETS,
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
