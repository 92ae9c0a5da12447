"""The witness for CAPS: every number of docs/theory/caps.md recomputed with numpy from what was played and seen."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import log_ndtr

from stagewise.engine.compile import Floats
from stagewise.engine.random import POSTERIOR, fill_normal
from stagewise.records.random_key import RandomKey

SCALE = 100.0  # ℓ/R²


class Play(NamedTuple):
    """What was played and seen; `ray`: which candidate's, −1 the safe action's, None: not among those followed."""

    action: Floats
    ray: int | None
    step: float
    values: Floats  # (1 + m,) costs signed


class Stated(NamedTuple):
    """What CAPS was told; costs signed so that less is better."""

    safe: Floats  # (d,)
    known: list[float | None]  # reward and costs at the safe action
    noise: Floats  # (1 + m,)
    bound: Floats  # (1 + m,) S
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    delta: float
    posterior_scale: float
    max_regret_ratio: float
    mean_reward_bound: float
    ridge: float

    @property
    def costs(self) -> int:
        return self.limits.size

    def coordinates(self, signal: int) -> Floats:
        """Return Z (n, d) with z = Z x: all of x, or Hx without its last entry where the value at x₀ is known."""
        size = np.linalg.norm(self.safe)
        if self.known[signal] is None or size == 0.0:
            return np.eye(self.safe.size)
        mirror = self.safe / size
        mirror[-1] += math.copysign(1.0, mirror[-1])
        mirror /= np.linalg.norm(mirror)
        return (np.eye(self.safe.size) - 2.0 * np.outer(mirror, mirror))[:-1]

    def carried(self, signal: int) -> Floats:
        """Return the vector whose product with an action is what is known of its value."""
        square, known = self.safe @ self.safe, self.known[signal]
        return np.zeros(self.safe.size) if known is None or square == 0.0 else known / square * self.safe

    def learned_bound(self, signal: int) -> float:
        return math.sqrt(self.bound[signal] ** 2 - float(np.sum(self.carried(signal) ** 2)))


class Interval(NamedTuple):
    low: Floats  # (K + 1,) the safe action's last
    high: Floats


def half_of_own(noise: float, weight: Floats, delta: float, sets: Floats) -> Floats:
    """Return h(n): one of `sets` that share δ, whose own A is taken 2 log M larger than that of all of δ."""
    delta = min(delta, 0.5)
    start, scale = math.sqrt(2.0 * math.log(1.0 / (2.0 * delta))), SCALE * noise**2
    edge = start**2 - 2.0 * float(log_ndtr(start)) + 2.0 * np.log(sets)
    return np.asarray(noise * np.sqrt((weight + scale) * (np.log(1.0 + weight / scale) + edge)) / weight)


def shares(told: Stated, signal: int) -> tuple[float, float, float]:
    """Return δ of a signal's ellipsoid, of its lower own ends and of its upper ones."""
    m = told.costs
    other = told.delta * 0.15 / (m + 2)
    if signal == 0:
        return told.delta * 0.1, other, other
    return told.delta * 0.1 / m, other, told.delta * 0.65 / m


class Fit(NamedTuple):
    """What was fitted after some plays, or (n, ...) after each number of them."""

    gram: Floats  # V
    estimate: Floats  # θ̂
    radius: Floats  # β


def after_each(rows: Floats, first: int) -> Floats:
    """Return the sum of the first rows: of `first`, of one more, and so on to all of them."""
    return np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0)])[first:]


def fitted(told: Stated, signal: int, plays: list[Play], first: int) -> Fit:
    """Return what was fitted after `first` plays and after each one since."""
    turn = told.coordinates(signal)
    played = np.array([play.action for play in plays]).reshape(len(plays), told.safe.size)
    z, rest = played @ turn.T, np.array([play.values[signal] for play in plays]) - played @ told.carried(signal)
    gram = told.ridge * np.eye(len(turn)) + after_each(z[:, :, np.newaxis] * z[:, np.newaxis], first)
    spread = np.linalg.slogdet(gram / told.ridge)[1] + 2.0 * math.log(1.0 / shares(told, signal)[0])
    radius = np.sqrt(told.noise[signal] ** 2 * spread + told.ridge * told.learned_bound(signal) ** 2)
    sums = after_each(z * rest[:, np.newaxis], first)
    return Fit(gram, np.linalg.solve(gram, sums[:, :, np.newaxis])[:, :, 0], radius)


def fits_now(told: Stated, plays: list[Play]) -> list[Fit]:
    """Return what all plays say, signal by signal."""
    return [Fit(*(of[-1] for of in fitted(told, k, plays, len(plays)))) for k in range(1 + told.costs)]


def ellipsoid(told: Stated, signal: int, fit: Fit, actions: Floats) -> Interval:
    """Return what an ellipsoid, or each of several, says of these actions (K, d)."""
    z = actions @ told.coordinates(signal).T
    centre = actions @ told.carried(signal) + fit.estimate @ z.T
    half = fit.radius[..., np.newaxis] * np.sqrt(np.einsum("ij,...jk,ik->...i", z, np.linalg.inv(fit.gram), z))
    return Interval(centre - half, centre + half)


def certain(told: Stated, signal: int, actions: Floats) -> Interval:
    """Return what ‖θ‖ ≤ S says of listed actions; nothing of the safe one, the last."""
    centre = actions @ told.carried(signal)
    reach = told.learned_bound(signal) * np.linalg.norm(actions @ told.coordinates(signal).T, axis=1)
    if told.known[signal] is None:
        reach[-1] = math.inf
    return Interval(centre - reach, centre + reach)


def own_sets(told: Stated, signal: int, plays: list[Play], count: int, first: int) -> Interval:
    """Return the ends of own sets (n, K + 1) after `first` plays and after each one since, the safe action's last.

    A candidate is counted since `first`, the safe action all the time.
    """
    known, steps = told.known[signal], np.array([play.step for play in plays])[:, np.newaxis]
    pulls = np.zeros((len(plays), count + 1))
    pulls[:, :-1] = steps * np.array([play.ray == ray for play in plays for ray in range(count)]).reshape(-1, count)
    if known is None:
        pulls[:, :-1] *= steps == 1.0
        pulls[:, -1] = [np.array_equal(play.action, told.safe) for play in plays]
    pulls[:first, :-1] = 0.0
    seen = np.array([play.values[signal] for play in plays]) - (known or 0.0)
    weight, sums = after_each(pulls**2, first), after_each(pulls * seen[:, np.newaxis], first)
    sets = np.array([count if known is not None else 2 * count] * count + [2])
    _, low, high = shares(told, signal)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (known or 0.0) + sums / weight
        halves = [half_of_own(told.noise[signal], weight, share, sets) for share in (low, high)]
    never = weight == 0.0
    return Interval(np.where(never, -math.inf, mean - halves[0]), np.where(never, math.inf, mean + halves[1]))


def intervals(
    told: Stated, plays: list[Play], targets: Floats, first: int, followed: bool, rays: bool, kept: bool | None = None
) -> list[Interval]:
    """Return what is known of every signal; followed candidates since play `first`: the tightest ends since then.

    The safe action's own set counts all of its plays; `kept`: its tightest ends are still there. On rays whose start is
    uncertain it is the ellipsoid alone, which bends, but for the safe action itself: that is known to so much around
    its estimate as holds its own set.
    """
    actions, found = np.vstack([targets, told.safe]), []
    for signal in range(1 + told.costs):
        fits, (low, high) = fitted(told, signal, plays, first), certain(told, signal, actions)
        now, own = ellipsoid(told, signal, fits, actions), own_sets(told, signal, plays, len(targets), first)
        use = np.zeros(now.low.shape, dtype=bool)
        use[:, :-1], use[:, -1], use[-1] = followed, followed if kept is None else kept, True
        for ends, used in ((now, use), (own, use & ([followed] * len(targets) + [True]))):
            low = np.maximum(low, np.max(np.where(used, ends.low, -math.inf), axis=0))
            high = np.minimum(high, np.min(np.where(used, ends.high, math.inf), axis=0))
        if rays and told.known[signal] is None:
            centre, half = 0.5 * (now.low[-1] + now.high[-1]), 0.5 * (now.high[-1] - now.low[-1])
            half[-1] = min(half[-1], max(high[-1] - centre[-1], centre[-1] - low[-1]))
            low, high = centre - half, centre + half
        found.append(Interval(np.minimum(low, high), np.maximum(low, high)))
    return found


def held(told: Stated, signal: int, fit: Fit, points: Floats, reach: float) -> Interval:
    """Return the largest and the least <x, θ> within the ellipsoid where <x₀, θ> is known to ± reach, by duality:

    max <x, v> = min_κ β‖x − κ x₀‖ + |κ| reach, convex in κ, whose range is halved where its slope says.
    """
    turn = told.coordinates(signal)
    x, safe = points @ turn.T, turn @ told.safe
    forms = np.einsum("ij,ji->i", x, np.linalg.solve(fit.gram, x.T))
    crosses, square = x @ np.linalg.solve(fit.gram, safe), float(safe @ np.linalg.solve(fit.gram, safe))

    def dual(kappa: Floats) -> Floats:
        inside = np.maximum(forms - 2.0 * kappa * crosses + kappa**2 * square, 0.0)
        return np.asarray(fit.radius * np.sqrt(inside) + np.abs(kappa) * reach)

    def falls(kappa: Floats) -> Any:
        inside = np.maximum(forms - 2.0 * kappa * crosses + kappa**2 * square, 1e-300)
        return fit.radius * (kappa * square - crosses) / np.sqrt(inside) + np.sign(kappa) * reach < 0.0

    low, high = np.minimum(crosses / square, 0.0), np.maximum(crosses / square, 0.0)  # where one part or other is least
    for _ in range(36):
        middle = 0.5 * (low + high)
        right = falls(middle)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    centre, half = points @ told.carried(signal) + x @ fit.estimate, dual(0.5 * (low + high))
    return Interval(centre - half, centre + half)


def drawn(told: Stated, plays: list[Play], targets: Floats, found: list[Interval], draw: RandomKey) -> Floats:
    """Return a draw (1 + m, K + 1) from N(θ̂, ν² R² V⁻¹), within what is known."""
    actions, values = np.vstack([targets, told.safe]), np.empty((1 + told.costs, len(targets) + 1))
    parts = [range(1 + told.costs)]
    if (told.known[0] is None) != (told.known[1] is None):
        parts = [range(1), range(1, 1 + told.costs)]
    fits = fits_now(told, plays)
    for part in parts:
        n = len(told.coordinates(part[0]))
        normals = np.empty(len(part) * n)
        fill_normal(normals, draw.seed, draw.run, draw.round, POSTERIOR + part[0])
        for place, signal in enumerate(part):
            fit, z = fits[signal], actions @ told.coordinates(signal).T
            root = np.linalg.inv(np.linalg.cholesky(fit.gram))
            moved = told.posterior_scale * told.noise[signal] * (z @ root.T @ normals[place * n : (place + 1) * n])
            values[signal] = actions @ told.carried(signal) + z @ fit.estimate + moved
            top = told.mean_reward_bound if signal == 0 else told.ceilings[signal - 1]
            values[signal] = np.minimum(np.clip(values[signal], *found[signal]), top)
    return values


class Known(NamedTuple):
    """A round as the page has it."""

    r_low: Floats  # (K + 1,)
    r_high: Floats
    c_low: Floats  # (m, K + 1)
    c_high: Floats
    limits: Floats

    @property
    def slack(self) -> Floats:
        return self.limits - self.c_high[:, -1]

    @property
    def warm(self) -> bool:
        return bool(np.all(self.slack > 0.0) and np.all(self.c_high[:, -1] - self.c_low[:, -1] <= self.slack))

    def unknown(self, value: float) -> Floats:
        """Return w (K + 1,)."""
        prices = (value - self.r_low[-1]) / self.slack
        return self.r_high - self.r_low + np.max(prices[:, np.newaxis] * (self.c_high - self.c_low), axis=0)

    def longest(self, costs: Floats) -> Floats:
        """Return the longest steps (K,) on all rays at which these costs (m, K + 1) are within the limits."""
        slope, slack = costs[:, :-1] - costs[:, -1:], self.limits[:, np.newaxis] - costs[:, -1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.min(np.where(slope <= slack, 1.0, slack / slope), axis=0)

    def along(self, values: Floats, steps: Floats) -> Floats:
        return (1.0 - steps) * values[-1] + steps * values[:-1]


def known_of(told: Stated, found: list[Interval]) -> Known:
    low, high = np.array([i.low for i in found]), np.array([i.high for i in found])
    ceilings = told.ceilings[:, np.newaxis]
    return Known(
        low[0], np.minimum(high[0], told.mean_reward_bound), low[1:], np.minimum(high[1:], ceilings), told.limits
    )


class Solved(NamedTuple):
    value: float
    prices: Floats  # (m,)
    shares: Floats  # (K + 1,)


def program(rewards: Floats, costs: Floats, limits: Floats) -> Solved:
    """Maximise Σ p reward subject to Σ p cost ≤ limits, by HiGHS."""
    count = rewards.size
    told = {"A_ub": costs, "b_ub": limits, "A_eq": np.ones((1, count)), "b_eq": [1.0]}
    answer: Any = linprog(-rewards, **told, method="highs")
    assert answer.status == 0
    return Solved(-answer.fun, np.maximum(-answer.ineqlin.marginals, 0.0), answer.x)


class Line(NamedTuple):
    """What is known along one ray."""

    told: Stated
    fits: list[Fit]
    found: list[Interval]
    target: Floats
    ray: int

    def at(self, signal: int, steps: Any) -> Interval:
        """Return the ends at these steps: straight where the start is known, else held at the points."""
        steps, (low, high) = np.atleast_1d(steps), self.found[signal]
        if self.told.known[signal] is not None:
            top = self.told.mean_reward_bound if signal == 0 else self.told.ceilings[signal - 1]
            ends = (low[self.ray], min(high[self.ray], top))
            return Interval(*((1.0 - steps) * low[-1] + steps * end for end in ends))
        points = (1.0 - steps)[:, np.newaxis] * self.told.safe + steps[:, np.newaxis] * self.target
        return held(self.told, signal, self.fits[signal], points, 0.5 * (high[-1] - low[-1]))

    def pessimistic_cost(self, signal: int, steps: Any) -> Floats:
        """Return the largest plausible cost: at the point itself or between the ends, whichever is less."""
        steps, top, high = np.atleast_1d(steps), self.told.ceilings[signal - 1], self.found[signal].high
        first, last = min(high[-1], top), min(high[self.ray], top)
        between: Floats = np.minimum(self.at(signal, steps).high, first + steps * (last - first))
        return between

    def longest(self, safe: bool) -> float:
        """Return the longest step that is safe, or plausible, by a search refined until it cannot be told."""
        low, width = 0.0, 1.0
        for _ in range(4):
            steps = np.linspace(low, min(low + width, 1.0), 201)
            fine = np.ones(steps.size, dtype=bool)
            for j, limit in enumerate(self.told.limits):
                fine &= (self.pessimistic_cost(1 + j, steps) if safe else self.at(1 + j, steps).low) <= limit
            last = len(steps) - 1 if fine.all() else max(int(np.argmin(fine)) - 1, 0)
            low, width = float(steps[last]), float(steps[1] - steps[0])
        return low

    def unknown(self, prices: Floats, step: float) -> float:
        """Return w at a step."""
        widths = [float(high[0] - low[0]) for low, high in (self.at(k, step) for k in range(1 + self.told.costs))]
        return widths[0] + float(np.max(prices * widths[1:]))
