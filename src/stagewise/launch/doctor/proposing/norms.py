"""How long parameters may be, for linear signals: 1 where means stay between their ends wherever users can be."""

import math

import numpy as np

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.bounds import length_of
from stagewise.launch.doctor.finding import said
from stagewise.launch.doctor.fits import Fits


def norm_bound_of(chart: Chart, chance: float) -> tuple[float, str]:
    """Return a bound on the length of all linear signals' parameters, and why; 1 where no fit is longer.

    A mean that is linear in numbers of [−1, 1] and stays in [0, 1] for all of them has none longer than 1. Ranges are
    rounded outward, and what is linear where users are may leave [0, 1] where there are none: then it is longer.
    """
    problem, found = chart.log.problem, dict[tuple[str, str], float]()
    linear = [signal for signal, name in enumerate(chart.names) if problem.choices[name].model == "linear"]
    everyone = np.ones(chart.log.rows, dtype=bool)
    spent = math.log(2.0 * max(len(linear), 1) * len(problem.actions) / chance)
    for signal in linear:
        fits = Fits(chart, signal)
        for action, name in enumerate(problem.actions):
            told = length_of(fits, fits.of(action, everyone), spent)
            if told is not None and max(told.fitted, told.least) > 1.0:
                found[chart.names[signal], name] = told.most
    if not found:
        return 1.0, ""
    (signal_name, action_name), most = max(found.items(), key=lambda one: one[1])
    return most, (
        f"the mean of {signal_name!r} of {action_name!r} leaves its range somewhere in [context], where few users are: "
        f"its parameter may be as long as {said(most)}; a narrower range makes it shorter"
    )
