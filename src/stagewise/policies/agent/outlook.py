"""What a decision's bounds say beyond the decision: what it is worth, whether it explores, what is certified."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.bounds import CENTRE, HALF, per_limit_size
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import HOME, LIMITS
from stagewise.kernels.loop.best import best_mixture_of
from stagewise.kernels.promise import COST_SCALE, terms_of
from stagewise.kernels.rules.ray import safe_step
from stagewise.models.answers import answers_of
from stagewise.models.part import parts_in
from stagewise.policies.compiled import Chosen
from stagewise.records.decision import Decision

TERMS, BEST_MIXTURE, SAFE_STEP = named(terms_of), named(best_mixture_of), named(safe_step)


class Outlook(NamedTuple):
    """One decision, candidate by candidate; the safe action stands last."""

    weights: Floats  # (K + 1,) what is played of each: probabilities, or 1 − step and step
    fit: Floats  # (1 + m, K + 1) estimates, signed
    centre: Floats  # (1 + m, K + 1) of the intervals
    half: Floats  # (1 + m, K + 1)
    dearest: Floats  # (m, K + 1) pessimistic costs
    limits: Floats  # (m,)
    best: Floats  # (K + 1,) the same weights if estimates were the truth and costs at their worst
    mixes: bool


def outlook(decision: Decision, memory: Floats) -> Outlook:
    """Return a decision's outlook, with the estimates of this memory."""
    seen: Chosen = decision._seen
    m, home = int(seen.layout[LIMITS]), int(seen.layout[HOME])
    bounds, terms = seen.workspace.bounds, TERMS(seen.layout, seen.settings)
    centre, half = bounds[:, CENTRE].copy(), bounds[:, HALF].copy()
    scaled = centre[1:] + seen.settings[COST_SCALE] * half[1:]
    dearest = np.maximum(np.minimum(scaled, terms.ceilings[:, None]), centre[1:] - half[1:]) if m else scaled
    mixes = decision[3] is not None
    weights = np.zeros(centre.shape[1])
    if mixes:
        weights[:] = decision[3]
        if home >= 0:
            weights[-1], weights[home] = weights[home], 0.0
    elif decision.index >= 0:
        weights[decision.index], weights[-1] = decision.step, 1.0 - decision.step
    else:
        weights[-1] = 1.0
    open_ = np.append(seen.eligible if seen.eligible.size else np.ones(len(weights) - 1, dtype=np.bool_), True)
    if home >= 0:
        open_[home] = False
    choose = best_mixture if mixes else best_ray
    fit = fitted(seen, memory, centre, half)
    best = choose(np.where(open_, fit[0], -np.inf), dearest, terms.limits)
    return Outlook(weights, fit, centre, half, dearest, terms.limits.copy(), best, mixes)


def fitted(seen: Chosen, memory: Floats, centre: Floats, half: Floats) -> Floats:
    """Return the estimates: the middles of intervals, but where those were cut at a range or lean to one side.

    What was never seen has none of its own, and keeps the middle.
    """
    fit, home = centre.copy(), int(seen.layout[HOME])
    for part in parts_in(seen.layout, memory):
        told = np.full(fit.shape[1] - 1, np.nan)
        answers_of(part).fill_fits(part, seen.features, seen.settings, memory, told)
        row = np.append(told, told[home] if home >= 0 else np.nan)
        fit[part.first] = np.where(np.isnan(row), fit[part.first], row)
    return np.clip(fit, centre - half, centre + half)


def best_ray(reward: Floats, dearest: Floats, limits: Floats) -> Floats:
    """Return the weights of the ray that is worth most at its longest safe step."""
    weights, slacks, most = only(reward.size, -1), limits - dearest[:, -1], 0.0
    if (slacks < 0.0).any():
        return weights
    for ray in np.flatnonzero(np.isfinite(reward[:-1])).tolist():
        rises = dearest[:, ray] - dearest[:, -1]
        step = min([1.0, *(SAFE_STEP(rise, slack) for rise, slack in zip(rises, slacks, strict=True))])
        if step * (reward[ray] - reward[-1]) > most:
            most = step * (reward[ray] - reward[-1])
            weights[:] = 0.0
            weights[ray], weights[-1] = step, 1.0 - step
    return weights


def best_mixture(reward: Floats, dearest: Floats, limits: Floats) -> Floats:
    """Maximise <p, reward> subject to <p, dearest> ≤ limits, by the rule of the policies that mix."""
    m, count = limits.size, reward.size
    if m == 0:
        return only(count, int(np.argmax(reward)))
    shares, places = only(m + 2, 0), np.full(m + 2, -1)  # the safe action alone, where it is itself above a limit
    rule, basis = np.empty((3 + 2 * m, count)), np.empty(per_limit_size(m) - m) if m > 1 else None
    BEST_MIXTURE(np.vstack([reward, dearest]), limits, rule, basis, shares, places)
    weights = np.zeros(count)
    np.add.at(weights, np.where(places < 0, count - 1, places), shares)
    return weights


def only(count: int, place: int) -> Floats:
    """Return weights that are all in one place."""
    weights = np.zeros(count)
    weights[place] = 1.0
    return weights


def kinds(view: Outlook, played: int) -> tuple[float, float, float]:
    """Return how much of a round explored, exploited and was the safe action."""
    if not view.mixes:
        if view.weights[-1] == 1.0:
            return 0.0, 0.0, 1.0
        return (0.0, 1.0, 0.0) if view.best[played] > 0.0 else (1.0, 0.0, 0.0)
    safe, known = float(view.weights[-1]), float(view.weights[:-1][view.best[:-1] > 1e-9].sum())
    return max(1.0 - safe - known, 0.0), known, safe


def pulls_needed(seen: Chosen, memory: Floats, arm: int, limits: Floats) -> float | None:
    """Return how often an arm must still be pulled until its costs are certified, if their means stay as they are.

    None: the model does not go arm by arm. An infinite need: an estimate is above its limit.
    """
    pulls, most = 0.0, 0.0
    for part in parts_in(seen.layout, memory):
        for signal in range(part.signals):
            j = part.first + signal - 1
            limit = float(limits[j]) if j >= 0 else math.inf
            told = answers_of(part).pulls_until(part, seen.settings, memory, arm, signal, limit)
            if told is None:
                return None
            pulls, until = told
            most = max(most, until) if j >= 0 else most
    return most - pulls


def learned_of(seen: Chosen, memory: Floats, index: int) -> Floats | None:
    """Return how many outcomes of each cost (m,) were learned of a candidate, wherever they came from.

    None: the model does not tell candidates apart.
    """
    counts = np.zeros(int(seen.layout[LIMITS]))
    for part in parts_in(seen.layout, memory):
        learned = answers_of(part).learned(part, seen.features, memory, index)
        if learned is None:
            return None
        if part.first > 0:
            counts[part.first - 1] = learned
    return counts


def needed_of(view: Outlook, counts: Floats, index: int) -> float:
    """Return about how many more plays a candidate needs: half-widths shrink with the root of what was learned."""
    gap, most = view.limits - view.fit[1:, index], 0.0
    for j in range(gap.size):
        if view.dearest[j, index] <= view.limits[j]:
            continue
        if gap[j] <= 0.0:
            return math.inf
        excess: Any = (view.dearest[j, index] - view.fit[1 + j, index]) / gap[j]
        most = max(most, max(float(counts[j]), 1.0) * (float(excess) ** 2 - 1.0))
    return most
