"""LC-LUCB and Safe-LTS on the shifted vectors: Figure 1, and the three figures of the first appendix."""

from functools import partial

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.paper.figure_1 import claims, figure, plan

WORDS = (
    "θ* = (0, 1, …, d−1)/‖·‖, μ* its reverse, d rays from the zero vector to the shifts of μ*. Text: λ = 1, "
    "the paper's radius at δ = .01 split in two, noise N(0, 1), α_r = 1 + 2/τ, Safe-LTS inflated by 1 + 2/τ; the paper "
    "states neither its noise nor its δ. Authors: λ = .1, the radii and the schedule δ_t of their code. "
)
MIXED_UP = " The bottom row of the paper's figure shows the files of d = 3 (errata, E65)."


def linear(name: str, where: str, dimension: int) -> Experiment:
    """Return the experiment in so many dimensions; Figure 1 has a column a threshold, the appendix a row."""
    return Experiment(
        name=name,
        title=f"{where}: LC-LUCB and Safe-LTS, d = {dimension}",
        words=f"d = {dimension}. {WORDS}{BANDS}{MIXED_UP if dimension == 5 else ''}",
        errata=(59, 60, 61, 62, 67),
        presets=PRESETS,
        cells=partial(plan.cells, dimension),
        draw=figure.draw_in_columns if name == "figure-1" else figure.draw_in_rows,
        check=claims.check,
    )


EXPERIMENTS = [
    linear("figure-1", "Figure 1", 10),
    *(linear(f"figure-linear-d{dimension}", "Appendix", dimension) for dimension in (3, 5, 10)),
]
