"""Every experiment by name: its curves, its picture, its claims and its words."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stagewise.experiments.cell import Cell
from stagewise.experiments.claim import Claim
from stagewise.experiments.comparison import claims as comparison_claims
from stagewise.experiments.comparison import figure as comparison_figure
from stagewise.experiments.comparison import plan as comparison_plan
from stagewise.experiments.comparison.table import tabled
from stagewise.experiments.four_arms import claims as four_claims
from stagewise.experiments.four_arms import figure as four_figure
from stagewise.experiments.four_arms import plan as four_plan
from stagewise.experiments.linear import claims as linear_claims
from stagewise.experiments.linear import figure as linear_figure
from stagewise.experiments.linear import plan as linear_plan
from stagewise.experiments.lower_bound import claims as lower_claims
from stagewise.experiments.lower_bound import figure as lower_figure
from stagewise.experiments.lower_bound import plan as lower_plan
from stagewise.experiments.multi_constraint import claims as multi_claims
from stagewise.experiments.multi_constraint import figure as multi_figure
from stagewise.experiments.multi_constraint import plan as multi_plan
from stagewise.experiments.price_of_safety import claims as price_claims
from stagewise.experiments.price_of_safety import figure as price_figure
from stagewise.experiments.price_of_safety import plan as price_plan
from stagewise.experiments.random_arms import claims as random_claims
from stagewise.experiments.random_arms import figure as random_figure
from stagewise.experiments.random_arms import plan as random_plan
from stagewise.experiments.sphere import claims as sphere_claims
from stagewise.experiments.sphere import figure as sphere_figure
from stagewise.experiments.sphere import plan as sphere_plan
from stagewise.experiments.unknown_baseline import claims as unknown_claims
from stagewise.experiments.unknown_baseline import figure as unknown_figure
from stagewise.experiments.unknown_baseline import plan as unknown_plan
from stagewise.reports.result import Result

PRESETS = ("text", "authors", "ours")
Results = dict[str, Result]
BANDS = "Bands: one standard deviation over runs."
LINEAR = (
    "θ* = (0, 1, …, d−1)/‖·‖, μ* its reverse, d rays from the zero vector to the shifts of μ*. "
    "Text: λ = 1, the paper's radius at δ = .01 split in two, noise N(0, 1), α_r = 1 + 2/τ, Safe-LTS "
    "inflated by 1 + 2/τ; "
    "the paper states neither its noise nor its δ. Authors: λ = .1, the radii and the schedule δ_t of their code. "
)


@dataclass(frozen=True)
class Experiment:
    """One section of the report."""

    name: str
    title: str
    words: str  # what is played, under the figure
    errata: tuple[int, ...]  # that matter here
    presets: tuple[str, ...]  # those it distinguishes; one: it is the same for all
    cells: Callable[[str, str], list[Cell]]  # preset, size
    draw: Callable[[Results, str], Any]  # results, preset
    check: Callable[[str, Results], list[Claim]]  # preset, results
    table: Callable[[Results], str] | None = None  # a table of its own, in Markdown


def linear(name: str, title: str, dimension: int, in_rows: bool) -> Experiment:
    """Return an experiment on the shifted vectors."""
    extra = " The bottom row of the paper's figure shows the files of d = 3 (errata, E65)." if dimension == 5 else ""
    return Experiment(
        name,
        title,
        f"d = {dimension}. {LINEAR}{BANDS}{extra}",
        (59, 60, 61, 62, 67),
        PRESETS,
        partial(linear_plan.cells, dimension),
        linear_figure.draw_in_rows if in_rows else linear_figure.draw_in_columns,
        lambda preset, results: linear_claims.check(name, dimension, preset, results),
    )


def four_arms(name: str, title: str, thresholds: tuple[float, ...]) -> Experiment:
    """Return an experiment on the four arms."""
    return Experiment(
        name,
        title,
        "r = (.1, .2, .4, .7), c = (0, .4, .5, .2), arm 1 safe and known. Text: Bernoulli outcomes, the "
        "paper's radius with "
        "the horizon T and δ = .01. Authors: N(mean, .1) cut to [0, 1], α_r = 1 + 1/τ, δ' = 1/T², both "
        "bounds cut at 1, the "
        f"safe arm's reward estimated. {BANDS}",
        (33, 63),
        PRESETS,
        partial(four_plan.cells, thresholds),
        lambda results, preset: four_figure.draw(results, preset, thresholds),
        lambda preset, results: four_claims.check(name, preset, results, thresholds),
    )


def ours(
    name: str,
    title: str,
    words: str,
    errata: tuple[int, ...],
    plan: Any,
    figure: Any,
    claims: Any,
    table: Callable[[Results], str] | None = None,
) -> Experiment:
    """Return an experiment that is not in the paper, and the same for every preset."""
    return Experiment(
        name,
        title,
        words,
        errata,
        ("ours",),
        lambda _, size: list(plan.cells(size)),
        lambda results, _: figure.draw(results),
        lambda _, results: list(claims.check(name, results)),
        table,
    )


CATALOGUE = {
    experiment.name: experiment
    for experiment in [
        linear("figure-1", "Figure 1: LC-LUCB and Safe-LTS, d = 10", 10, False),
        linear("figure-linear-d3", "Appendix: LC-LUCB and Safe-LTS, d = 3", 3, True),
        linear("figure-linear-d5", "Appendix: LC-LUCB and Safe-LTS, d = 5", 5, True),
        linear("figure-linear-d10", "Appendix: LC-LUCB and Safe-LTS, d = 10", 10, True),
        Experiment(
            "figure-2",
            "Figure 2: the unit sphere",
            "θ*, μ* and a hundred rays uniform on the unit sphere, τ uniform on [0, 1], one instance a run, noise of "
            "standard deviation .1. Text: the paper's radius. Authors: the radii of their code. Both policies play the "
            f"same instances; the published code drew different ones. {BANDS}",
            (60, 64),
            PRESETS,
            sphere_plan.cells,
            sphere_figure.draw,
            lambda preset, results: sphere_claims.check("figure-2", preset, results),
        ),
        Experiment(
            "figure-3",
            "Figure 3: OPB on random arms",
            "Safe arm r = c = 0, other means uniform on [0, 1], Bernoulli outcomes, one instance a run, the same "
            "for every τ. "
            f"Text: the paper's radius with the horizon T and δ = .01. Authors: the bounds of Figure 4. {BANDS}",
            (33, 63),
            PRESETS,
            random_plan.cells,
            random_figure.draw,
            lambda preset, results: random_claims.check("figure-3", preset, results),
        ),
        four_arms("figure-4", "Figure 4: OPB on four arms, τ = .8 and .2", (0.8, 0.2)),
        four_arms("figure-4-appendix", "Appendix: OPB on four arms, τ = .5 and .6", (0.5, 0.6)),
        ours(
            "lower-bound",
            "The lower bound's instances",
            "r₀ = .5, c₀ = .2, four arms, unit Gaussian noise; rewards and costs as in the proof, corrected. "
            "Every algorithm "
            "regrets at least B on one of the two instances.",
            (),
            lower_plan,
            lower_figure,
            lower_claims,
        ),
        ours(
            "multi-constraint",
            "Several constraints",
            "The paper's rays in d = 10 with one to three costs (the reversed reward and two shifts of it; τ = "
            ".5, .45, .4), noise "
            f".1; four Bernoulli arms with one to three costs for OPB. Our defaults at δ = .01. {BANDS}",
            (14,),
            multi_plan,
            multi_figure,
            multi_claims,
        ),
        ours(
            "unknown-baseline",
            "A safe action whose values are unknown",
            "Ten rays in d = 5 from a safe action that is not zero, τ = .5, noise .1; four Bernoulli arms for "
            "OPB. Certified in "
            f"every round, without a horizon (docs/theory/unknown-baseline.md). {BANDS}",
            (),
            unknown_plan,
            unknown_figure,
            unknown_claims,
        ),
        ours(
            "price-of-safety",
            "The price of safety",
            "The rays of Figure 1, noise N(0, 1), δ = .01. Whiskers: one standard deviation over runs. A "
            "negative regret is reward "
            "taken beyond the threshold.",
            (62,),
            price_plan,
            price_figure,
            price_claims,
        ),
        ours(
            "comparison",
            "Where the paper stops: all policies side by side",
            "Six families of problems, δ = .01: "
            + "; ".join(f"{name}: {family.words}" for name, family in comparison_plan.FAMILIES.items())
            + ". Whiskers: one standard error over runs. comparison.md has the microseconds a round.",
            (),
            comparison_plan,
            comparison_figure,
            comparison_claims,
            tabled,
        ),
    ]
}
