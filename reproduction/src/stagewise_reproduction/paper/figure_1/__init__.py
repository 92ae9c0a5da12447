"""LC-LUCB and Safe-LTS on d shifted vectors in d dimensions: Figure 1, and the figures of the first appendix."""

from functools import partial

from stagewise_reproduction.experiment import BANDS, PRESETS, Experiment
from stagewise_reproduction.instances import compute_best_end
from stagewise_reproduction.paper.figure_1 import claims, figure, plan

WORDS = "θ* = v/‖v‖, v = (0, 1, …, d−1), μ* its reverse, d rays from the zero vector"
RAYS = {
    "text": "Rays to the cyclic shifts of v/‖v‖, as printed.",
    "authors": "Rays to the cyclic shifts of the flipped vector μ*, as in the authors' code (errata, E59).",
    "ours": "The rays of the authors' code (errata, E59).",
}
SETTINGS = {
    "text": "λ = 1, the paper's radius at δ = .01 split in two, α_r = 1 + 2/τ, Safe-LTS inflated by 1 + 2/τ; noise "
    "N(0, 1) and δ are our choice, since the paper states neither.",
    "authors": "λ = .1, noise N(0, 1), the radii and the schedule δ_t of their code.",
    "ours": "Our defaults at δ = .01, noise N(0, 1), and ROFUL besides.",
}
MIXED_UP = " The bottom row of the paper's figure shows the files of d = 3 (errata, E65)."


def describe_binding(preset: str, dimension: int) -> str:
    """Return which thresholds bind: those below the cost of the best action."""
    reward, cost = compute_best_end(plan.build_world(preset, dimension))
    unbound = [f"{threshold:g}" for threshold in plan.THRESHOLDS if threshold >= cost - 1e-12]
    text = f"τ = {', '.join(unbound)} {'does' if len(unbound) == 1 else 'do'} not bind" if unbound else "every τ binds"
    return f"The best action has reward {reward:.3f} and cost {cost:.3f}: {text}."


def build_experiment(name: str, title: str, dimension: int) -> Experiment:
    """Return the experiment in this many dimensions; Figure 1 has a column per threshold, the appendix a row."""
    return Experiment(
        name=name,
        title=f"{title}: LC-LUCB and Safe-LTS, d = {dimension}",
        words=f"d = {dimension}. {WORDS}. {BANDS}{MIXED_UP if dimension == 5 else ''}",
        preset_words={
            preset: f"{RAYS[preset]} {describe_binding(preset, dimension)} {SETTINGS[preset]}" for preset in PRESETS
        },
        errata=(59, 60, 61, 62, 67),
        presets=PRESETS,
        cells=partial(plan.cells, dimension),
        draw=figure.draw_in_columns if name == "figure-1" else figure.draw_in_rows,
        check=claims.check,
    )


EXPERIMENTS = [
    build_experiment("figure-1", "Figure 1 and Appendix B", 10),
    build_experiment("figure-linear-d3", "Appendix B", 3),
    build_experiment("figure-linear-d5", "Appendix B", 5),
]
