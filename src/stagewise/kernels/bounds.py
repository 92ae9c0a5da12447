"""Bounds: what a model says of every candidate, and last of the safe action, in one table (1 + m, 4, K + 1).

    bounds[signal, CENTRE, candidate] ± bounds[signal, HALF, candidate]        holds the true mean

CROSS bends them along a ray whose start is uncertain: β² <x, V⁻¹x₀>. Of x₀ itself it is β² ‖x₀‖²,
more than the square of its half where it is known better (see `curve.held_along`). A half of 0 means that the value is
known. Rules read this table and never ask where it came from. No rule reads FIT, the estimate that people are shown.
APIECE and CELLS write it, whose intervals are cut or lean to one side; of other models the centre is the estimate.
"""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import APIECE, CELLS, FIELDS, FIRST_PART, LIMITS, PARTS, padded

CENTRE, HALF, CROSS, FIT = 0, 1, 2, 3
SAMPLED = CROSS  # where a draw from what is believed stands; rules that read it take bounds as straight
HOPED, STEPS, PLAUSIBLE, COSTS = 0, 1, 2, 3  # rows of what a rule makes of them, see `Workspace`


class Workspace(NamedTuple):
    """Where a round is worked out: all in one array that the caller owns."""

    bounds: Floats  # (1 + m, 4, K + 1)
    rule: Floats  # (3 + 2m, K + 1) hoped rewards, steps, longest plausible steps, dearest costs, cheapest costs
    per_limit: Floats  # (2m + (m + 3)(m + 1),) the bonus' factors, the safe costs, the basis of a linear program
    work: Floats  # the rest, for the models


class PerLimit(NamedTuple):
    """What a rule works out for each limit, as views of the workspace."""

    factors: Floats  # (m,) what a cost's width adds to the hoped reward, or its price
    basis: Floats  # the safe costs, and the basis of a linear program


@kernel
def per_limit_size(m: int) -> int:
    """Return how many numbers the rules need besides their rows."""
    return 2 * m + (m + 3) * (m + 1)


@kernel
def workspace_size(m: int, count: int) -> int:
    """Return the length of the array before the models' work, which is aligned where the array is."""
    return padded((4 * (1 + m) + 3 + 2 * m) * (count + 1) + per_limit_size(m))


@kernel
def workspace_in(layout: Ints, count: int, scratch: Floats) -> Workspace:
    """Return the parts of the scratch array for `count` candidates, as views of it."""
    m, row = layout[LIMITS], count + 1
    bounds, rule = 4 * (1 + m) * row, (3 + 2 * m) * row
    per_limit = bounds + rule
    return Workspace(
        scratch[:bounds].reshape(1 + m, 4, row),
        scratch[bounds:per_limit].reshape(3 + 2 * m, row),
        scratch[per_limit : per_limit + per_limit_size(m)],
        scratch[padded(per_limit + per_limit_size(m)) :],
    )


@kernel
def per_limit_in(layout: Ints, per_limit: Floats) -> PerLimit:
    """Return the two parts of what a rule works out for each limit."""
    return PerLimit(per_limit[: layout[LIMITS]], per_limit[layout[LIMITS] :])


@kernel
def dearest_in(layout: Ints, rule: Floats) -> Floats:
    """Return the dearest costs (m, K + 1) among the rows of a rule that mixes."""
    return rule[COSTS : COSTS + layout[LIMITS]]


@kernel
def fill_estimates(layout: Ints, bounds: Floats, estimates: Floats) -> None:
    """Write what every signal is estimated at (1 + m, K + 1): where its model writes FIT that, else the centre."""
    for signal in range(bounds.shape[0]):
        for candidate in range(bounds.shape[2]):
            estimates[signal, candidate] = bounds[signal, CENTRE, candidate]
    for which in range(layout[PARTS]):
        at = FIRST_PART + FIELDS * which
        if layout[at] in (APIECE, CELLS):
            for signal in range(layout[at + 1], layout[at + 1] + layout[at + 2]):
                for candidate in range(bounds.shape[2]):
                    estimates[signal, candidate] = bounds[signal, FIT, candidate]
