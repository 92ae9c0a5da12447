"""From plausible functions to one safe mixture: by bounds for every action, row by row, or over triples."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.blend import Odds, choose, stay
from stagewise.kernels.compile import Flags, Floats
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import PREFERRED, WARMING, Promise
from stagewise.models.functions import Believed
from stagewise.policies.mixtures import Blend, Written, decision_from, drawn
from stagewise.policies.rays import own
from stagewise.policies.settings import FALLBACKS, UNEXPLAINED, UNSOLVED
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.rules.rows import best_under_rows, dearest_of
from stagewise.rules.triples import best_of_triples


class Offer(NamedTuple):
    """What a round offers."""

    listed: int  # n actions
    eligible: Flags
    safe: Any  # the safe action's arm or features
    home: int  # the safe arm's own place in the list; −1: it stands beside it
    features: Floats | None  # (n, d)

    def action(self, code: int) -> Any:
        """Return the arm or the features of what is played."""
        if self.features is None:
            return code if code >= 0 else self.home
        return own(self.features[code] if code >= 0 else self.safe)


class Rule(NamedTuple):
    """How the mixture is chosen."""

    method: str
    reward_scale: float | None
    search: int
    promise: Promise
    thresholds: Thresholds


class Mixed(NamedTuple):
    """A safe mixture of some of the listed actions, and the safe one last."""

    shares: Floats
    hoped: float
    bound: float
    solved: bool


def decided(offer: Offer, believed: Believed | None, rule: Rule, draw: Draw) -> Decision:
    """Return the decision for a round; None is believed where a class has no plausible function left."""
    if believed is None:
        return staying(offer, rule.thresholds, draw.round, FALLBACKS[UNEXPLAINED])
    m = rule.thresholds.values.size
    written, scales = Written.room(m, offer.listed, offer.home), scales_of(believed, rule)
    odds, lottery = written.odds, uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    fill(odds, believed, np.zeros(m) if scales is None or rule.promise.directional else scales, offer)
    blend = None
    if scales is None:
        stay(odds)
        code = -WARMING
    elif rule.method == "pointwise":
        code = choose(odds, rule.promise, offer.eligible, lottery)
    else:
        code, blend = by_solver(odds, believed, scales, offer, rule, lottery)
    told = (code, offer.action(code), written, offer.eligible, rule.thresholds, draw.round)
    return decision_from(*told, blend=blend, offered=offer.features)


def scales_of(believed: Believed, rule: Rule) -> Floats | None:
    """Return what a unit of each cost's width adds to the hoped reward, or None where x₀ is too uncertain to leave.

    α_j = (1 − r₀)/(τ_j − c₀_j), with the least plausible r₀ and the largest plausible c₀_j; x₀ may be left when the
    width of c₀_j is at most the slack that is certain (docs/theory/unknown-baseline.md, patience 2).
    """
    slack = rule.promise.limits - believed.highest[1:, -1]
    width = believed.highest[1:, -1] - believed.lowest[1:, -1]
    if not np.all((slack > 0.0) & (width <= slack)):
        return None
    if rule.reward_scale is not None:
        return np.full(slack.size, float(rule.reward_scale))
    scales: Floats = max(0.0, 1.0 - float(believed.lowest[0, -1])) / slack
    return scales


def fill(odds: Odds, believed: Believed, scales: Floats, offer: Offer) -> None:
    """Write, action by action, hoped = max θ + max_j α_j (max μ_j − min μ_j), dearest = max μ_j, cheapest = min μ_j."""
    widths = believed.highest[1:] - believed.lowest[1:]
    hoped = believed.highest[0] + np.max(scales[:, None] * widths, axis=0)
    odds.hoped[:], odds.safe_hoped[0] = hoped[:-1], hoped[-1]
    odds.dearest[:], odds.safe_dearest[:] = believed.highest[1:, :-1], believed.highest[1:, -1]
    odds.cheapest[:], odds.safe_cheapest[:] = believed.lowest[1:, :-1], believed.lowest[1:, -1]
    if offer.eligible.size:
        odds.hoped[~offer.eligible] = -np.inf
    if offer.home >= 0:
        odds.hoped[offer.home] = -np.inf  # it stands beside the list, as every safe action does


def by_solver(
    odds: Odds, believed: Believed, scales: Floats, offer: Offer, rule: Rule, lottery: float
) -> tuple[int, Blend]:
    """Return what is played, as a kernel's code would say it, by a rule that bounds costs function by function."""
    columns = np.flatnonzero(odds.hoped > -np.inf)
    tables = tuple(signal[:, [*columns, -1]] for signal in believed.tables)
    worth = np.append(odds.hoped[columns], odds.safe_hoped)
    mixed = best_mixed(worth, tables, scales, rule) if columns.size else Mixed(np.ones(1), worth[-1], worth[-1], True)
    code = drawn(mixed.shares, lottery)
    if code >= 0:
        code = int(columns[code])
    elif code == -PREFERRED and not mixed.solved:
        code = -UNSOLVED
    probabilities = np.zeros(offer.listed + 1)
    probabilities[columns] = mixed.shares[:-1]
    probabilities[offer.home] += mixed.shares[-1]
    gap = max(0.0, mixed.bound - mixed.hoped)
    return code, Blend(probabilities, mixed.hoped, dearest_of(mixed.shares, tables[1:]), gap)


def best_mixed(worth: Floats, tables: tuple[Floats, ...], scales: Floats, rule: Rule) -> Mixed:
    """Return the best mixture of the columns, the safe action last; every plausible cost function keeps its limit."""
    if rule.method == "exact":
        found = best_of_triples(tables[0], tables[1:], rule.promise.limits, scales, rule.search)
        mixed = Mixed(found.shares, found.value, found.bound, found.solved)
    else:
        vertex = best_under_rows(worth, tables[1:], rule.promise.limits)
        mixed = Mixed(vertex.shares, vertex.value, vertex.bound, vertex.solved)
    if not np.isfinite(mixed.hoped):
        mixed = Mixed(np.eye(worth.size)[-1], float(worth[-1]), float(worth[-1]), False)
    if mixed.shares[-1] == 1.0:  # nothing but rounding stands beside it
        mixed.shares[:-1] = 0.0
    return mixed


def staying(offer: Offer, thresholds: Thresholds, round_: int, why: str) -> Decision:
    """Return the safe action: without a plausible function, or with one that was mistold, there are no bounds."""
    probabilities = np.zeros(offer.listed + 1)
    probabilities[offer.home] = 1.0
    dearest = thresholds.values if thresholds.safe is None else thresholds.safe
    told = (probabilities, 1.0, dearest, thresholds.values, why, round_, None, offer.features)
    return Decision(offer.action(-1), offer.home, 1.0, *told)
