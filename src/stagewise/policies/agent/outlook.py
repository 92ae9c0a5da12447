"""What a decision's bounds say beyond the decision: what it is worth, whether it explores, what is certified."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import APIECE, ARMS, CELLS, HOME, LIMITS
from stagewise.kernels.promise import COST_SCALE, terms_of
from stagewise.kernels.signals.apiece import fill_fits, piece_of
from stagewise.kernels.signals.arms import KL, confidence_in, declared_of_arms, interval, means_of, unit_radius
from stagewise.kernels.signals.cells import fill_pulls, fill_rates
from stagewise.kernels.signals.ridge import summed
from stagewise.models.part import parts_in
from stagewise.policies.compiled import Chosen
from stagewise.records.decision import Decision

TERMS, MEANS_OF, STATED = named(terms_of), named(means_of), named(declared_of_arms)
FITS, RATES, PULLS, PIECE = named(fill_fits), named(fill_rates), named(fill_pulls), named(piece_of)
INTERVAL, RADIUS, SURE, SUMMED = named(interval), named(unit_radius), named(confidence_in), named(summed)
MOST_PULLS = 1e12


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
    fit = centre.copy()
    for part in parts_in(seen.layout, memory):
        if part.kind in (APIECE, CELLS):
            told = np.full(fit.shape[1] - 1, np.nan)
            (FITS if part.kind == APIECE else RATES)(part, seen.features, seen.settings, memory, told)
            row = np.append(told, told[int(seen.layout[HOME])])
            fit[part.first] = np.where(np.isnan(row), fit[part.first], row)
    return np.clip(fit, centre - half, centre + half)


def best_ray(reward: Floats, dearest: Floats, limits: Floats) -> Floats:
    """Return the weights of the ray that is worth most at its longest safe step."""
    slack, rise = limits - dearest[:, -1], dearest - dearest[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.clip(np.where(rise > 0.0, slack[:, None] / rise, 1.0).min(axis=0, initial=1.0), 0.0, 1.0)
        gain = np.where(np.isfinite(reward), steps * (reward - reward[-1]), -np.inf)
    best, weights = int(np.argmax(gain[:-1])), np.zeros(reward.size)
    step = steps[best] if gain[best] > 0.0 else 0.0
    weights[best], weights[-1] = step, 1.0 - step
    return weights


def best_mixture(reward: Floats, dearest: Floats, limits: Floats) -> Floats:
    """Maximise <p, reward> subject to <p, dearest> ≤ limits, p a mixture; where there is none, the safe action."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    open_, weights = np.flatnonzero(np.isfinite(reward)), np.zeros(reward.size)
    told = {"A_ub": dearest[:, open_], "b_ub": limits} if limits.size else {}
    solved = linprog(-reward[open_], **told, A_eq=np.ones((1, open_.size)), b_eq=[1.0], method="highs")
    if solved.status == 0:
        weights[open_] = solved.x
    else:
        weights[-1] = 1.0
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
    parts = list(parts_in(seen.layout, memory))
    if any(part.kind != ARMS for part in parts):
        return None
    pulls, most = 0.0, 0.0
    for part in parts:
        held, declared, confidence = MEANS_OF(part, memory), STATED(part, seen.settings), SURE(part, seen.settings)
        pulls = float(held.pulls[arm])
        for signal in range(part.signals):
            j = part.first + signal - 1
            if j < 0:
                continue
            mean, low = float(held.means[signal, arm]), float(declared.low[signal])
            noise = float(declared.noise[signal])
            count = max(pulls, 1.0)
            while count < MOST_PULLS:
                if part.radius >= KL:
                    squares = count * (mean - low) * (1.0 - mean + low)
                    high = INTERVAL(part.radius, count, mean, squares, low, confidence).high
                else:
                    high = mean + noise * RADIUS(part.radius, count, confidence)
                if high <= limits[j]:
                    break
                count *= 1.05
            most = max(most, count if count < MOST_PULLS else math.inf)
    return most - pulls


def learned_of(seen: Chosen, memory: Floats, index: int) -> Floats | None:
    """Return how many outcomes of each cost (m,) were learned of a candidate, wherever they came from.

    None: the model does not tell candidates apart.
    """
    counts = np.zeros(int(seen.layout[LIMITS]))
    for part in parts_in(seen.layout, memory):
        if part.kind == CELLS and part.first > 0:
            pulls = np.zeros(part.size)
            PULLS(part, seen.features, memory, pulls)
            counts[part.first - 1] = pulls[index]
        elif part.kind == APIECE and part.first > 0:
            counts[part.first - 1] = SUMMED(PIECE(part, memory, index)).taken
        elif part.kind not in (CELLS, APIECE):
            return None
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
