"""Several constraints at once."""

from stagewise_reproduction.beyond.multi_constraint import claims, figure, plan
from stagewise_reproduction.experiment import BANDS, Experiment

EXPERIMENTS = [
    Experiment(
        name="multi-constraint",
        title="Several constraints",
        words="The rays of the authors' code in d = 10 with one to three costs (the reversed reward and two shifts of "
        "it; τ = .5, .45, .4), noise .1, ridge 1; four Bernoulli arms with one to three costs for OPB. δ = .01. "
        f"{BANDS}",
        errata=(14, 59),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
