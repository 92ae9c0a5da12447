"""What safety costs, and what tighter radii give back."""

from stagewise_reproduction.beyond.price_of_safety import claims, figure, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="price-of-safety",
        title="The price of safety",
        words="The rays of Figure 1, noise N(0, 1), δ = .01. Whiskers: one standard deviation over runs. A "
        "negative regret is reward taken beyond the threshold.",
        errata=(62,),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
