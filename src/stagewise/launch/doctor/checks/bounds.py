"""Whether parameters can be as short as the problem says."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Ints
from stagewise.launch.doctor.chart import INTERVAL, Chart
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.fits import Fits


def check(chart: Chart, alpha: float) -> Finding:
    """Find linear signals one of whose actions surely has a longer parameter than `norm_bound`.

    With noise of ½, ‖θ̂ − θ‖² ≤ ¼ (tr + 2 √(t tr²) + 2 λ t) but for e⁻ᵗ; tr, tr² and λ of the rows' inverse matrix
    (Hsu, Kakade and Zhang 2012). And whatever θ is, ‖θ‖ ‖x̄‖ is at least the mean outcome.
    """
    bound, found = float(chart.log.problem.settings.get("norm_bound", 1.0)), []
    for signal, action, told in lengths(chart, alpha):
        if told.least > bound:
            words = (
                f"the parameter of {signal!r} of {action!r} is surely longer than {said(told.least)}, "
                f"and norm_bound is {said(bound)}"
            )
            found.append(Finding("bounds", "contradicts", words, f"settings.norm_bound = {said(told.most)}"))
    return gravest("bounds", found, f"no parameter is shown to be longer than norm_bound, {said(bound)}")


class Length(NamedTuple):
    """How long a parameter is: fitted, surely at least, and surely at most, rounded up to a half."""

    fitted: float
    least: float
    most: float


def lengths(chart: Chart, chance: float) -> Iterator[tuple[str, str, Length]]:
    """Give how long the parameter of every linear signal of every action is, all of them but for some chance."""
    problem = chart.log.problem
    linear = [signal for signal, name in enumerate(chart.names) if problem.choices[name].model == "linear"]
    everyone = np.ones(chart.log.rows, dtype=bool)
    spent = math.log(2.0 * max(len(linear), 1) * len(problem.actions) / chance)
    for signal in linear:
        fits = Fits(chart, signal)
        for action, name in enumerate(problem.actions):
            told = length_of(fits, fits.of(action, everyone), spent)
            if told is not None:
                yield chart.names[signal], name, told


def length_of(fits: Fits, places: Ints, spent: float) -> Length | None:
    """Return how long the parameter of some rows is, but for a chance of 2 exp(−spent); None where no one can say."""
    if not places.size:
        return None
    design = fits.design[places]
    centre = float(np.linalg.norm(design.mean(axis=0)))
    mean = INTERVAL(float(places.size), float(fits.outcomes[places].mean()), spent).low / centre
    values = np.linalg.eigvalsh(design.T @ design)
    if values[0] <= 1e-9 * values[-1]:  # numbers that depend on each other have no one parameter
        return None
    inverse = 1.0 / values
    error = 0.25 * (inverse.sum() + 2.0 * math.sqrt(spent * float(inverse @ inverse)) + 2.0 * inverse[0] * spent)
    length = float(np.linalg.norm(fits.fitted(places)))
    least = max(length - math.sqrt(error), mean)
    return Length(length, least, math.ceil(2.0 * (length + math.sqrt(error))) / 2.0)
