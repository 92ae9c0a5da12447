"""What a kernel policy's memory says of points, read through its own kernels."""

from typing import NamedTuple

import numpy as np
from stagewise.kernels.blend import odds_size
from stagewise.kernels.shape import named_shape
from stagewise.kernels.sight import named_sight, sheet_size

from stagewise import KernelOPLB, State
from stagewise.kernels import kernel_look, kernel_oplb
from stagewise.kernels.compile import Floats, named
from stagewise.problem.actions import ALL, Finite


class Seen(NamedTuple):
    """Estimates (1 + m, K), widths (1 + m, K) and radii (1 + m,), and the same at the safe action."""

    estimates: Floats
    widths: Floats
    radii: Floats
    start: Floats
    start_widths: Floats


def read_bounds(policy: KernelOPLB, state: State, points: Floats) -> Seen:
    """Return what is believed of points."""
    m, count = policy.thresholds.values.size, len(points)
    sheet = np.zeros(sheet_size(policy.dimension, m, count))
    work = np.zeros(kernel_look.look_size(int(state.memory[2])))
    flat, support = np.zeros(odds_size(m, count)), np.zeros(m + 2, dtype=np.int64)
    features = Finite.borrowed(points).features
    kernel_oplb.decide(features, ALL, policy.flags, policy.numbers, state.memory, sheet, work, flat, support, 0.5)
    sight = named(named_sight)(named(named_shape)(policy.flags), sheet, count)
    estimates = np.vstack([sight.rewards, sight.costs])
    widths = np.vstack([sight.reward_widths, *[sight.cost_widths] * m])
    start_widths = np.array([sight.start[1 + m], *[sight.start[2 + m]] * m])
    return Seen(estimates, widths, sight.radii.copy(), sight.start[: 1 + m].copy(), start_widths)
