"""The safe action of a round, whose cost has a declared bound: u₀ = min(c₀, high), and data that say otherwise.

Both bounds hold, so the limit is never judged worse than what was declared, and better where the data say so
(docs/theory/context.md). A declared bound that the data contradict is noted for good: in later rounds another safe
action may be too little known to show it, and the declaration is no truer for that.
"""

import math

from stagewise.kernels.bounds import CENTRE, CROSS, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import LIMITS, Part, roving_action
from stagewise.kernels.promise import ALARM, BASELINE, ceiling_of, disputed
from stagewise.kernels.signals.look import radius_of
from stagewise.kernels.signals.ridge import SAFE_TAKEN, SQUARES, declared_of_ridge, fill_image
from stagewise.kernels.signals.watch import farthest

CONTRADICTED = 1e300  # in the place of a sum of outcomes beyond what was declared: no noise explains it, ever


@kernel
def cut(centre: Floats, half: Floats, candidate: int, low: float, high: float) -> None:
    """Write an interval from its ends; where they have passed each other the lower one counts."""
    high = max(low, high)
    centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * (high - low)


@kernel
def declare_round(layout: Ints, settings: Floats, bounds: Floats, rewards: bool) -> int:
    """Cut the bounds at what is declared: at the safe action, and all costs at their ceilings; make them straight.

    Return the contradiction, if a lower bound at the safe action is above what it costs at most, or 0. CROSS is then
    half · half₀: along a ray bounds go straight from end to end. `rewards`: those of the safe action are cut too.
    """
    safe, roving, dispute = bounds.shape[2] - 1, roving_action(layout, settings), 0
    if rewards:
        centre, half = bounds[0, CENTRE], bounds[0, HALF]
        high = centre[safe] + half[safe]
        cut(centre, half, safe, min(max(centre[safe] - half[safe], roving.reward[0]), high), high)
    for j in range(layout[LIMITS]):
        centre, half, ceiling = bounds[1 + j, CENTRE], bounds[1 + j, HALF], ceiling_of(layout, settings, j)
        if dispute == 0 and centre[safe] - half[safe] > roving.costs[j]:
            dispute = disputed(BASELINE, j)
        for candidate in range(safe):
            if centre[candidate] + half[candidate] > ceiling:
                cut(centre, half, candidate, centre[candidate] - half[candidate], ceiling)
        if centre[safe] - half[safe] <= roving.costs[j]:  # else the declaration is false, and the data's own ends stay
            cut(centre, half, safe, centre[safe] - half[safe], min(centre[safe] + half[safe], roving.costs[j]))
    for signal in range(bounds.shape[0]):
        half, cross = bounds[signal, HALF], bounds[signal, CROSS]
        for candidate in range(safe + 1):
            cross[candidate] = half[candidate] * half[safe]
    return dispute


@kernel
def mistold_safe_of_round(part: Part, settings: Floats) -> int:
    """Return which cost's outcomes at the safe actions of all rounds add up to more than was declared; 0: none."""
    tally, declared, k, alarm = part.tally, declared_of_ridge(part, settings), part.signals, settings[ALARM]
    for signal in range(k):
        above = tally[SQUARES + k + signal]
        if part.first + signal > 0 and above > farthest(tally[SAFE_TAKEN], declared.noise[signal], alarm):
            return disputed(BASELINE, part.first + signal - 1)
    return 0


@kernel
def note_safe_of_round(layout: Ints, part: Part, at_safe: bool, settings: Floats, values: Floats, work: Floats) -> None:
    """Take down what was seen (k,) at the safe action, beside what it costs at most, and whether that is contradicted.

    `work` is (n,). The safe action of the round is NaN where it is not known, as in a log: nothing is noted then.
    """
    tally, k, n, roving = part.tally, part.signals, part.size, roving_action(layout, settings)
    image, form = work[:n], 0.0
    fill_image(part.learned, roving.features, image)
    for i in range(n):
        form += image[i] * image[i]
    width = math.sqrt(form)
    if at_safe:
        tally[SAFE_TAKEN] += 1.0
    for signal in range(k):
        if part.first + signal > 0:
            most, fit, mean = roving.costs[part.first + signal - 1], part.learned[n + signal], 0.0
            if at_safe:
                tally[SQUARES + k + signal] += values[signal] - most
            for i in range(n):
                mean += fit[i] * roving.features[i]
            if mean - radius_of(part, settings, 0.0, signal) * width > most:
                tally[SQUARES + k + signal] = CONTRADICTED
