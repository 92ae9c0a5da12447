"""What a kernel policy's memory says of points, read through its own kernels."""

from typing import NamedTuple

from stagewise import KernelOPLB, PolicyState
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.kernel_ridge import get_basis_points, view_kernel_ridge
from stagewise.problem.actions import ALL, FiniteSet
from stagewise.records.random_key import FIRST


class Seen(NamedTuple):
    """Estimates and half-widths (1 + m, K) of points, and the same (1 + m,) at the safe action."""

    estimates: Floats
    halves: Floats
    start: Floats
    start_halves: Floats


def read_bounds(policy: KernelOPLB, state: PolicyState, points: Floats) -> Seen:
    """Return what is believed of points."""
    bounds = policy.rounds.play(state.memory, FiniteSet.from_view(points).features, ALL, FIRST).workspace.bounds
    centre, half = bounds[:, CENTRE], bounds[:, HALF]
    return Seen(centre[:, :-1], half[:, :-1], centre[:, -1], half[:, -1])


def read_sums(policy: KernelOPLB, state: PolicyState, part: int = 0) -> Floats:
    """Return u and Σρ of one regression, as a view of the memory: its basis points, and what it neglected."""
    return as_python(get_basis_points)(
        policy.layout, as_python(view_kernel_ridge)(policy.layout, state.memory, part), state.memory
    ).sums
