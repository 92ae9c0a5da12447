"""The regret that safety costs, and how much tighter radii reduce it."""

from stagewise_reproduction.beyond.price_of_safety import claims, figure, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="price-of-safety",
        title="The price of safety",
        words="The rays of the authors' code (Figure 1, preset authors), noise N(0, 1), δ = .01, ridge 1. Whiskers: "
        "one standard deviation over runs. A negative regret is reward taken beyond the threshold.",
        errata=(59, 62),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
