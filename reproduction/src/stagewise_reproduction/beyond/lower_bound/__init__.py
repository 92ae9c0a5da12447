"""The two instances that the proof of the lower bound plays against each other."""

from stagewise_reproduction.beyond.lower_bound import claims, figure, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="lower-bound",
        title="The lower bound's instances",
        words="r₀ = .5, c₀ = .2, four arms, unit Gaussian noise; rewards and costs as in the proof, corrected. "
        "Every algorithm regrets at least B on one of the two instances.",
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
