"""OPB on random arms."""

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_3 import claims, figure, plan

BY_THE_TEXT = "Safe arm r = c = 0, other means uniform on [0, 1], Bernoulli outcomes, the same instances for every τ."
EXPERIMENTS = [
    Experiment(
        name="figure-3",
        title="Figure 3: OPB on random arms",
        words=f"One instance a run. {BANDS}",
        preset_words={
            "text": f"{BY_THE_TEXT} The paper's radius with the horizon T and δ = .01.",
            "authors": f"No public commit plays the text's setting; this is the public code's: K = {plan.PUBLIC_ARMS}, "
            "means uniform on [0, 1], outcomes N(mean, .1) cut to [0, 1], the cheapest arm safe and its cost known, τ "
            "uniform between the smallest and the largest cost, but at least a bound; the bounds of Figure 4.",
            "ours": f"{BY_THE_TEXT} Our defaults at δ = .01.",
        },
        errata=(33, 63),
        presets=PRESETS,
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
