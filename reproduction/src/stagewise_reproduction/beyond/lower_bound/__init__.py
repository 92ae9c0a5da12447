"""The instances of the proof of the lower bound."""

from stagewise_reproduction.beyond.lower_bound import claims, figure, linear, plan
from stagewise_reproduction.experiment import Experiment

EXPERIMENTS = [
    Experiment(
        name="lower-bound",
        title="The lower bound's instances",
        words="r₀ = .5, c₀ = .2, four arms, unit Gaussian noise; rewards and costs as in the proof, corrected. "
        "Each gap at the shortest horizon that the theorem allows, T = 8e/(τ − c₀)². Every algorithm that keeps its "
        "limit regrets at least B on one of the two instances; UCB, which ignores it, regrets less.",
        errata=(51, 52, 53),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    ),
    Experiment(
        name="lower-bound-linear",
        title="The lower bound's other term",
        words="No cost, unit Gaussian noise, θ* one of {−T^(−1/2), T^(−1/2)}^d, rays to the corners of [−1, 1]^d. On "
        "average over θ* every algorithm regrets at least d√T/8e² (Lattimore and Szepesvári, Theorem 24.1).",
        errata=(57,),
        cells=linear.cells,
        draw=linear.draw,
        check=linear.check,
    ),
]
