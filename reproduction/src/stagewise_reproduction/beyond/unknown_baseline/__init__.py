"""A safe action with unknown reward and cost."""

from stagewise_reproduction.beyond.unknown_baseline import claims, figure, plan
from stagewise_reproduction.experiment import BANDS, Experiment

EXPERIMENTS = [
    Experiment(
        name="unknown-baseline",
        title="A safe action whose values are unknown",
        words="Ten rays in d = 5 from a safe action that is not zero, τ = .5, noise .1, ridge 1, δ = .01; four "
        "Bernoulli arms for OPB. Certified in every round, without a horizon (docs/theory/unknown-baseline.md). "
        f"{BANDS}",
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
