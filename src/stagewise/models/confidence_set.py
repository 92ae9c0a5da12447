"""Confidence sets of ridge regressions as functions of an action: linear estimates, and the norms of their widths."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints, as_python
from stagewise.kernels.layout import FEATURES, ModelBlock
from stagewise.kernels.models.radius import radius
from stagewise.kernels.models.ridge import get_coordinate_frame, get_ridge_assumptions, get_ridge_statistics
from stagewise.models.model_block import iter_model_blocks

GET_ASSUMPTIONS, FRAME, GET_STATISTICS = (
    as_python(get_ridge_assumptions),
    as_python(get_coordinate_frame),
    as_python(get_ridge_statistics),
)


class RegressionConfidenceSet(NamedTuple):
    """The confidence set of one regression of k signals: the mean of x is within <x, e> ± β ‖W x‖."""

    estimates: Floats  # (k, d) e of every signal
    norm: Floats  # (n, d) W
    radii: Floats  # (k,) β


class LinearConfidenceSet(NamedTuple):
    """The confidence sets of the reward and of the costs; one regression may serve both."""

    reward: Floats  # (d,)
    costs: Floats  # (m, d)
    reward_norm: Floats  # (n, d)
    cost_norm: Floats  # (n, d) the same array where one regression serves both
    reward_radius: float
    cost_radii: Floats  # (m,)


def build_confidence_set(layout: Ints, settings: Floats, memory: Floats) -> LinearConfidenceSet:
    """Return the confidence sets of a linear policy from its settings and memory."""
    found = [
        build_regression_set(block, settings, int(layout[FEATURES])) for block in iter_model_blocks(layout, memory)
    ]
    first, last = found[0], found[-1]
    if first is last:
        return LinearConfidenceSet(
            first.estimates[0], first.estimates[1:], first.norm, first.norm, float(first.radii[0]), first.radii[1:]
        )
    return LinearConfidenceSet(
        first.estimates[0], last.estimates, first.norm, last.norm, float(first.radii[0]), last.radii
    )


def build_regression_set(block: ModelBlock, settings: Floats, d: int) -> RegressionConfidenceSet:
    """Return the confidence set of one block: with z = Z x, e = Zᵀθ̂ + the known share, and W = T Z."""
    declared, frame, n, statistics = (
        GET_ASSUMPTIONS(block, settings),
        FRAME(block, settings),
        block.size,
        GET_STATISTICS(block),
    )
    root, fits = np.tril(statistics.root), statistics.fits
    energy = statistics.observations * frame.action_bound**2
    rows = zip(declared.noise, declared.bound, declared.confidence, strict=True)
    radii = [radius(block.radius, r, s, frame.ridge, c, statistics.log_det, n, energy) for r, s, c in rows]
    if not block.reflected:
        return RegressionConfidenceSet(fits.copy(), root, np.array(radii))
    reflection = np.eye(d) - 2.0 * np.outer(frame.reflector, frame.reflector)
    coordinates, share = reflection[:n], reflection[n] * frame.unit
    return RegressionConfidenceSet(
        fits @ coordinates + np.outer(declared.known, share), root @ coordinates, np.array(radii)
    )
