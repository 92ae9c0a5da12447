"""A safe action of which reward and cost are not known."""

from stagewise_reproduction.beyond.unknown_baseline.claims import check
from stagewise_reproduction.beyond.unknown_baseline.figure import draw
from stagewise_reproduction.beyond.unknown_baseline.plan import cells
from stagewise_reproduction.experiment import BANDS, Experiment

EXPERIMENTS = [
    Experiment(
        name="unknown-baseline",
        title="A safe action whose values are unknown",
        words="Ten rays in d = 5 from a safe action that is not zero, τ = .5, noise .1; four Bernoulli arms for "
        "OPB. Certified in "
        f"every round, without a horizon (docs/theory/unknown-baseline.md). {BANDS}",
        cells=cells,
        draw=draw,
        check=check,
    )
]
