"""OPB on four arms: Figure 4, and its figure in the appendix."""

from functools import partial

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_4 import claims, figure, plan

WORDS = f"r = (.1, .2, .4, .7), c = (0, .4, .5, .2), arm 1 safe. {BANDS}"
PRESET_WORDS = {
    "text": "Bernoulli outcomes, arm 1 known, the paper's radius with the horizon T and δ = .01.",
    "authors": "N(mean, .1) cut to [0, 1], α_r = 1 + 1/τ, δ' = 1/T², both bounds cut at 1, arm 1's cost known and its "
    "reward estimated.",
    "ours": "Bernoulli outcomes, arm 1 known, our defaults at δ = .01.",
}
EXPERIMENTS = [
    Experiment(
        name=name,
        title=f"{where}: OPB on four arms, τ = {words}",
        words=WORDS,
        preset_words=PRESET_WORDS,
        errata=(33, 63),
        presets=PRESETS,
        cells=partial(plan.cells, thresholds),
        draw=figure.draw,
        check=claims.check,
    )
    for name, where, words, thresholds in (
        ("figure-4", "Figure 4", ".8 and .2", (0.8, 0.2)),
        ("figure-4-appendix", "Appendix H", ".5 and .6", (0.5, 0.6)),
    )
]
