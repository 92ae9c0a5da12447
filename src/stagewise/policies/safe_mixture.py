"""From plausible functions to one safe mixture: by bounds for every action, or by a rule that asks every function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import UNFOLLOWED, answer_size
from stagewise.kernels.bounds import CENTRE, HALF, HOPED, per_limit_in, workspace_size
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import NOT_FINITE, PREFERRED, UNEXPLAINED, UNSOLVED, WARMING, terms_of, weigh
from stagewise.kernels.rules.mixture import choose_mixture
from stagewise.models.functions import Believed
from stagewise.policies.compiled import WORKSPACE_IN, Chosen
from stagewise.policies.mixtures import WRITTEN_IN, Blend, decision_from, drawn
from stagewise.policies.rays import own
from stagewise.policies.settings import CAUSES
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause
from stagewise.rules.rows import Vertex, dearest_of

WEIGH, TERMS, PER_LIMIT_IN = named(weigh), named(terms_of), named(per_limit_in)
# The worth of every action, the plausible functions of each signal, and what a unit of each cost's width adds.
Solve = Callable[[Floats, tuple[Floats, ...], Floats], Vertex]


class Offer(NamedTuple):
    """What a round offers."""

    size: int  # n actions
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
    """What the mixture must keep to."""

    layout: Ints
    settings: Floats
    thresholds: Thresholds

    @property
    def limits(self) -> Floats:
        """What costs are kept under (m,)."""
        return TERMS(self.layout, self.settings).limits


def decided(offer: Offer, believed: Believed | None, rule: Rule, solve: Solve | None, draw: Draw) -> Decision:
    """Return the decision for a round; None is believed where a class has no plausible function left.

    Without `solve` the bounds for every action decide.
    """
    if believed is None:
        return staying(offer, rule.thresholds, draw.round, CAUSES[UNEXPLAINED])
    seen, blend = bounded(offer, believed, rule, draw), None
    if solve is not None and seen.code not in (-WARMING, -NOT_FINITE):
        lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
        code, blend = by_solver(seen, believed, offer, solve, lottery)
        seen = seen._replace(code=code)
    return decision_from(seen, offer.action(seen.code), rule.thresholds, draw.round, blend=blend)


def bounded(offer: Offer, believed: Believed, rule: Rule, draw: Draw) -> Chosen:
    """Return the best safe mixture by bounds for every action: between the lowest and the highest plausible value.

    A unit of a cost's whole width adds (1 − r₀)/(τ − c₀) to the hoped reward, with the least plausible r₀ and the
    largest plausible c₀; x₀ may be left when the width of c₀ is at most the slack that is certain
    (docs/theory/unknown-baseline.md, patience 2).
    """
    m, count = rule.thresholds.values.size, offer.size
    features = np.empty((count, 0)) if offer.features is None else offer.features
    answer, scratch = np.empty(answer_size(m, features.shape[1])), np.empty(workspace_size(m, count))
    area, written = WORKSPACE_IN(rule.layout, count, scratch), WRITTEN_IN(rule.layout, answer)
    area.bounds[:, CENTRE] = 0.5 * (believed.highest + believed.lowest)
    area.bounds[:, HALF] = 0.5 * (believed.highest - believed.lowest)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    each = PER_LIMIT_IN(rule.layout, area.per_limit)
    told = (rule.layout, rule.settings, area.bounds, offer.eligible, 0, area.rule, each.factors)
    code = choose_mixture(*told, each.basis if m > 1 else None, written.shares, written.places, lottery, answer)
    answer[UNFOLLOWED] = 0.0
    return Chosen(int(code), answer, scratch, rule.layout, rule.settings, features, offer.eligible)


def scales_of(seen: Chosen) -> Floats:
    """Return what a unit of each cost's whole width adds to the hoped reward."""
    area = seen.workspace
    factors = np.empty(len(area.bounds) - 1)
    WEIGH(seen.layout, seen.settings, area.bounds, factors)
    return 0.5 * factors


def by_solver(seen: Chosen, believed: Believed, offer: Offer, solve: Solve, lottery: float) -> tuple[int, Blend]:
    """Return what is played, as a kernel's code would say it, by a rule that bounds costs function by function."""
    hoped = seen.workspace.rule[HOPED]
    columns = np.flatnonzero(hoped[:-1] > -np.inf)
    tables = tuple(signal[:, [*columns, -1]] for signal in believed.tables)
    worth = np.append(hoped[columns], hoped[-1])
    mixed = staying_put(worth, True)
    if columns.size:
        mixed = solve(worth, tables, scales_of(seen))
        mixed = mixed if np.isfinite(mixed.value) else staying_put(worth, False)
    if mixed.shares[-1] == 1.0:  # nothing but rounding stands beside it
        mixed.shares[:-1] = 0.0
    code = drawn(mixed.shares, lottery)
    if code >= 0:
        code = int(columns[code])
    elif code == -PREFERRED and not mixed.solved:
        code = -UNSOLVED
    probabilities = np.zeros(offer.size + 1)
    probabilities[columns] = mixed.shares[:-1]
    probabilities[offer.home] += mixed.shares[-1]
    gap = max(0.0, mixed.bound - mixed.value)
    return code, Blend(probabilities, mixed.value, dearest_of(mixed.shares, tables[1:]), gap)


def staying_put(worth: Floats, solved: bool) -> Vertex:
    """Return the safe action alone."""
    return Vertex(np.eye(worth.size)[-1], float(worth[-1]), float(worth[-1]), solved, 0)


def staying(offer: Offer, thresholds: Thresholds, round_: int, cause: Cause) -> Decision:
    """Return the safe action alone: there are no bounds, or none that hold."""
    probabilities = np.zeros(offer.size + 1)
    probabilities[offer.home] = 1.0
    told = (probabilities, 1.0, thresholds.at_safe, thresholds.values, cause, round_)
    return Decision(offer.action(-1), offer.home, 1.0, *told)
