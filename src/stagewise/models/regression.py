"""What ridge regressions believe, as functions of an action: linear estimates, and the norms of their widths."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import FEATURES, Part
from stagewise.kernels.signals.radius import radius
from stagewise.kernels.signals.ridge import declared_of_ridge, frame_of, summed
from stagewise.models.part import parts_in

STATED, FRAME, SUMMED = named(declared_of_ridge), named(frame_of), named(summed)


class Regression(NamedTuple):
    """One regression of k signals: mean of x within <x, e> ± β ‖W x‖."""

    estimates: Floats  # (k, d) e of every signal
    norm: Floats  # (n, d) W
    radii: Floats  # (k,) β


class Belief(NamedTuple):
    """What is believed of the reward and of the costs; one regression may serve both."""

    reward: Floats  # (d,)
    costs: Floats  # (m, d)
    reward_norm: Floats  # (n, d)
    cost_norm: Floats  # (n, d) the same array where one regression serves both
    reward_radius: float
    cost_radii: Floats  # (m,)


def believed(layout: Ints, settings: Floats, memory: Floats) -> Belief:
    """Return what settings and memory of a linear policy say of an action."""
    found = [regression(part, settings, int(layout[FEATURES])) for part in parts_in(layout, memory)]
    first, last = found[0], found[-1]
    if first is last:
        return Belief(
            first.estimates[0], first.estimates[1:], first.norm, first.norm, float(first.radii[0]), first.radii[1:]
        )
    return Belief(first.estimates[0], last.estimates, first.norm, last.norm, float(first.radii[0]), last.radii)


def regression(part: Part, settings: Floats, d: int) -> Regression:
    """Return one part; with z = Z x the coordinates that are learned, e = Zᵀθ̂ + the known share, and W = T Z."""
    declared, frame, n, seen = STATED(part, settings), FRAME(part, settings), part.size, SUMMED(part)
    root, fits = np.tril(seen.root), seen.fits
    energy = seen.taken * frame.action_bound**2
    rows = zip(declared.noise, declared.bound, declared.confidence, strict=True)
    radii = [radius(part.radius, r, s, frame.ridge, c, seen.log_det, n, energy) for r, s, c in rows]
    if not part.reflected:
        return Regression(fits.copy(), root, np.array(radii))
    reflection = np.eye(d) - 2.0 * np.outer(frame.reflector, frame.reflector)
    coordinates, share = reflection[:n], reflection[n] * frame.unit
    return Regression(fits @ coordinates + np.outer(declared.known, share), root @ coordinates, np.array(radii))
