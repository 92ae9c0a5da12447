"""How long parameters may be, for linear signals: 1 where means stay between their ends wherever users can be."""

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.bounds import lengths
from stagewise.launch.doctor.finding import said


def norm_bound_of(chart: Chart, chance: float) -> tuple[float, str]:
    """Return a bound on the length of all linear signals' parameters, and why; 1 where no fit is longer.

    A mean that is linear in numbers of [−1, 1] and stays in [0, 1] for all of them has none longer than 1. Ranges are
    rounded outward, and what is linear where users are may leave [0, 1] where there are none: then it is longer.
    """
    found = {
        (signal, action): told.most
        for signal, action, told in lengths(chart, chance)
        if max(told.fitted, told.least) > 1.0
    }
    if not found:
        return 1.0, ""
    (signal, action), most = max(found.items(), key=lambda one: one[1])
    return most, (
        f"the mean of {signal!r} of {action!r} leaves its range somewhere in [context], where few users are: "
        f"its parameter may be as long as {said(most)}; a narrower range makes it shorter"
    )
