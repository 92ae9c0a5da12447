"""Model of a linear reward and of rare costs in [0, 1] with linear means (docs/theory/rare.md)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stagewise.kernels.compile import Floats, Ints, as_python
from stagewise.kernels.layout import RARE_EVENTS, ModelBlock
from stagewise.kernels.models.rare_events import check_rare_events
from stagewise.models.diagnostics import ModelDiagnostics, register
from stagewise.models.linear_model import LinearModel
from stagewise.models.model_block import ModelBlockSpec

CHECK_RARE_EVENTS = as_python(check_rare_events)
TABLE = 2048  # capacity of a cost's event table before its events are folded
SCALES = 16  # σ = S, S/2, S/4, … share the weight of the prior
RADII_TRIED = (0.5, 0.7, 0.9)  # radii around the fit, in units of an event's mean
FIT_STEPS = 24


class RareEventsDiagnostics(ModelDiagnostics):
    """Diagnostics of rare costs: whether a confidence set is empty."""

    def find_contradictions(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(CHECK_RARE_EVENTS(block, memory))
        return iter([-code] if code else [])


register(RARE_EVENTS, RareEventsDiagnostics())


@dataclass(frozen=True, kw_only=True, eq=False)
class RareEventsModel(LinearModel):
    """The assumptions about a linear reward and rare costs; `confidence` of a cost is that of one feature block."""

    blocks: int  # of features, of which an action uses one
    guesses: Floats  # (m,) of the costs' rates
    ceilings: Floats  # (m,)

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the reward's regression, and a model for every cost."""
        yield self.build_block(0, 1, self.reward is not None)
        for signal in range(1, len(self.names)):
            known = 0.0 if self.costs is None else float(self.costs[signal - 1])
            size = self.safe.size // self.blocks
            integers = (RARE_EVENTS, signal, 1, size, TABLE, int(self.costs is not None), 0, self.blocks, 0)
            declared = (self.norm_bound[signal], self.confidence[signal], self.guesses[signal - 1])
            yield ModelBlockSpec(integers, np.array([*declared, self.ceilings[signal - 1], known]))

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the learned part of the reward; a known cost leaves its S unchanged."""
        return LinearModel.learned_bounds(replace(self, costs=None), size)


def compute_log_loss(features: Floats, outcomes: Floats, bound: float, guess: float) -> float:
    """Return a bound on Σ (p − y log p) of a log's rows (n, g), whatever their order.

    Forecasts would need an order. A mixture of forecasters needs none: half of it forecasts one rate for every row,
    half <x, ν> with a Gaussian ν.
    """
    return min(compute_rate_loss(outcomes, guess), compute_linear_loss(features, outcomes, bound, guess)) + math.log(
        2.0
    )


def compute_rate_loss(outcomes: Floats, guess: float) -> float:
    """Return −log ∫ λ^Σy e^(−nλ) over λ ~ Gamma(½, 1/2q): the loss of a rate that starts at q."""
    total, before = float(outcomes.sum()), 0.5 / guess
    return (
        math.lgamma(0.5) - math.lgamma(0.5 + total)
        - 0.5 * math.log(before) + (0.5 + total) * math.log(before + outcomes.size)
    )  # fmt: skip


def compute_linear_loss(features: Floats, outcomes: Floats, bound: float, guess: float) -> float:
    """Return a bound on −log ∫ Π p^y e^(−p) over ν ~ N(0, σ² I), p = max(<x, ν>, 0), with the best of the scales σ.

        F(f) + ‖f‖²/2σ² + ½ log det σ²P − log Z + Σ E(<x, ν>)₋/Z,    ν ~ N(f, P⁻¹),  P = cH + I/σ²

    at any f with <x, f> > 0 at all events (docs/theory/rare.md); infinite where none was found.
    """
    hit, sums = outcomes > 0.0, features.sum(axis=0)
    rows, values = features[hit], outcomes[hit]
    rate, best, chosen = (float(values.sum()) + 0.5) / (outcomes.size + 0.5 / guess), math.inf, None
    for scale in bound * 0.5 ** np.arange(SCALES):
        fit = fit_likelihood(rows, values, sums, rate, float(scale))
        means = rows @ fit
        if not np.all(means > 0.0):
            continue
        flat = float(sums @ fit - values @ np.log(means) + fit @ fit / (2.0 * scale**2)) + math.log(SCALES)
        curvature = (rows * (values / means**2)[:, None]).T @ rows
        for radius in RADII_TRIED:
            inside, volume, root = bound_mass_within(rows, means, curvature, float(scale), radius)
            if inside > 0.0 and flat + volume - math.log(inside) < best:
                best, chosen = flat + volume - math.log(inside), (fit, root, inside)
    return math.inf if chosen is None else best + compute_shortfall(features, chosen[0], chosen[1]) / chosen[2]


def fit_likelihood(rows: Floats, values: Floats, sums: Floats, rate: float, scale: float) -> Floats:
    """Return the maximum-likelihood fit by Newton steps, with means clipped to a range around the rate."""
    points, fit = np.full(len(rows), rate), np.zeros(sums.size)
    for _ in range(FIT_STEPS):
        matrix = np.eye(sums.size) / scale**2 + (rows * (values / points**2)[:, None]).T @ rows
        fit = np.linalg.solve(matrix, rows.T @ (2.0 * values / points) - sums)
        points = np.clip(rows @ fit, 0.1 * rate, 10.0 * rate)
    return fit


def bound_mass_within(
    rows: Floats, means: Floats, curvature: Floats, scale: float, radius: float
) -> tuple[float, float, Floats]:
    """Return a lower bound on the mass Z of N(f, P⁻¹) within a radius of all events; ½ log det σ²P; and P^(−½)."""
    from scipy.special import erfc  # type: ignore[import-untyped]

    widen, g = -math.log1p(-(radius**2)) / radius**2, curvature.shape[0]
    lower = np.linalg.cholesky(widen * curvature + np.eye(g) / scale**2)
    root = np.linalg.inv(lower).T  # ν = f + root η
    deviations = np.linalg.norm(rows @ root, axis=1) / means
    inside = 1.0 - float(erfc(radius / (math.sqrt(2.0) * deviations)).sum())
    return inside, g * math.log(scale) + float(np.log(np.diag(lower)).sum()), root


def compute_shortfall(features: Floats, fit: Floats, root: Floats) -> float:
    """Return Σ E(<x, ν>)₋, ν ~ N(f, P⁻¹): s φ(z) − s z Φ(−z) with z = <x, f>/s, summed over all rows."""
    from scipy.special import erfc

    deviations = np.linalg.norm(features @ root, axis=1)
    z = (features @ fit) / deviations
    shortfalls = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - 0.5 * z * erfc(z / math.sqrt(2.0))
    rounding = 1e-12 * float(deviations.sum())
    return float(deviations @ np.maximum(shortfalls, 0.0)) + rounding
