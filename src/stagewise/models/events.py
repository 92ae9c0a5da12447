"""A linear reward, and costs in [0, 1] that are rarely more than 0, of linear mean (docs/theory/rare.md)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import EVENTS, Part
from stagewise.kernels.signals.events import mistold_events
from stagewise.models.answers import Answers, register
from stagewise.models.linear import LinearModel
from stagewise.models.part import Modelled

MISTOLD = named(mistold_events)
TABLE = 2048  # events of a cost that are kept before they are folded
SCALES = 16  # σ = S, S/2, S/4, … share the weight of the prior
RADII_TRIED = (0.5, 0.7, 0.9)  # how far from the fit, in units of an event's mean, the posterior is followed
NEWTON = 24


class EventsAnswers(Answers):
    """What rare costs answer when they are held against the data: whether a set is empty."""

    def mistold(self, part: Part, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(MISTOLD(part, memory))
        return iter([-code] if code else [])


register(EVENTS, EventsAnswers())


@dataclass(frozen=True, kw_only=True, eq=False)
class EventCosts(LinearModel):
    """What is assumed of a linear reward and of rare costs; `confidence` of a cost is that of one block."""

    blocks: int  # of features, of which an action uses one
    guesses: Floats  # (m,) of the costs' rates
    ceilings: Floats  # (m,)

    def parts(self) -> Iterator[Modelled]:
        """Yield the reward's regression, and a model for every cost."""
        yield self.part(0, 1, self.reward is not None)
        for signal in range(1, len(self.names)):
            known = 0.0 if self.costs is None else float(self.costs[signal - 1])
            size = self.safe.size // self.blocks
            whole = (EVENTS, signal, 1, size, TABLE, int(self.costs is not None), 0, self.blocks, 0)
            declared = (self.norm_bound[signal], self.confidence[signal], self.guesses[signal - 1])
            yield Modelled(whole, np.array([*declared, self.ceilings[signal - 1], known]))

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves to be learned of the reward; what is known of a cost leaves its S as it is."""
        return LinearModel.learned_bounds(replace(self, costs=None), size)


def loss_of_log(features: Floats, seen: Floats, bound: float, guess: float) -> float:
    """Return what stands for Σ (p − y log p) of a log's rows (n, g), whatever their order.

    Forecasts would need an order. A mixture of forecasters needs none: half of it forecasts a rate that is the same for
    every row, half <x, ν> with a Gaussian ν.
    """
    return min(loss_of_rate(seen, guess), loss_of_line(features, seen, bound, guess)) + math.log(2.0)


def loss_of_rate(seen: Floats, guess: float) -> float:
    """Return −log ∫ λ^Σy e^(−nλ) over λ ~ Gamma(½, 1/2q): of a rate that begins at q."""
    total, before = float(seen.sum()), 0.5 / guess
    return (
        math.lgamma(0.5) - math.lgamma(0.5 + total)
        - 0.5 * math.log(before) + (0.5 + total) * math.log(before + seen.size)
    )  # fmt: skip


def loss_of_line(features: Floats, seen: Floats, bound: float, guess: float) -> float:
    """Return a bound on −log ∫ Π p^y e^(−p) over ν ~ N(0, σ² I), p = max(<x, ν>, 0), with the best of the scales σ.

        F(f) + ‖f‖²/2σ² + ½ log det σ²P − log Z + Σ E(<x, ν>)₋/Z,    ν ~ N(f, P⁻¹),  P = cH + I/σ²

    at any f with <x, f> > 0 at all events (docs/theory/rare.md); infinite where none was found.
    """
    hit, sums = seen > 0.0, features.sum(axis=0)
    rows, values = features[hit], seen[hit]
    rate, best, chosen = (float(values.sum()) + 0.5) / (seen.size + 0.5 / guess), math.inf, None
    for scale in bound * 0.5 ** np.arange(SCALES):
        fit = likeliest(rows, values, sums, rate, float(scale))
        means = rows @ fit
        if not np.all(means > 0.0):
            continue
        flat = float(sums @ fit - values @ np.log(means) + fit @ fit / (2.0 * scale**2)) + math.log(SCALES)
        curvature = (rows * (values / means**2)[:, None]).T @ rows
        for radius in RADII_TRIED:
            inside, volume, root = within_radius(rows, means, curvature, float(scale), radius)
            if inside > 0.0 and flat + volume - math.log(inside) < best:
                best, chosen = flat + volume - math.log(inside), (fit, root, inside)
    return math.inf if chosen is None else best + shortfall(features, chosen[0], chosen[1]) / chosen[2]


def likeliest(rows: Floats, values: Floats, sums: Floats, rate: float, scale: float) -> Floats:
    """Return the fit that Newton steps lead to, with means cut to what is near the rate on the way."""
    points, fit = np.full(len(rows), rate), np.zeros(sums.size)
    for _ in range(NEWTON):
        matrix = np.eye(sums.size) / scale**2 + (rows * (values / points**2)[:, None]).T @ rows
        fit = np.linalg.solve(matrix, rows.T @ (2.0 * values / points) - sums)
        points = np.clip(rows @ fit, 0.1 * rate, 10.0 * rate)
    return fit


def within_radius(
    rows: Floats, means: Floats, curvature: Floats, scale: float, radius: float
) -> tuple[float, float, Floats]:
    """Return a bound on Z, the share of N(f, P⁻¹) within a radius of all events; ½ log det σ²P; and P^(−½)."""
    from scipy.special import erfc  # type: ignore[import-untyped]

    widen, g = -math.log1p(-(radius**2)) / radius**2, curvature.shape[0]
    lower = np.linalg.cholesky(widen * curvature + np.eye(g) / scale**2)
    root = np.linalg.inv(lower).T  # ν = f + root η
    apart = np.linalg.norm(rows @ root, axis=1) / means
    inside = 1.0 - float(erfc(radius / (math.sqrt(2.0) * apart)).sum())
    return inside, g * math.log(scale) + float(np.log(np.diag(lower)).sum()), root


def shortfall(features: Floats, fit: Floats, root: Floats) -> float:
    """Return Σ E(<x, ν>)₋, ν ~ N(f, P⁻¹): s φ(z) − s z Φ(−z) with z = <x, f>/s, summed over all rows."""
    from scipy.special import erfc

    spread = np.linalg.norm(features @ root, axis=1)
    z = (features @ fit) / spread
    below = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - 0.5 * z * erfc(z / math.sqrt(2.0))
    return float(spread @ np.maximum(below, 0.0)) + 1e-12 * float(spread.sum())  # and what rounding may hide
