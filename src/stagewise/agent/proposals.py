"""What becomes of proposals: the share of each proposed action that is played, and how long until it is whole."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.decision_analysis import MOST_PULLS, RoundArrays, forecast_costs
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import SAFE_INDEX
from stagewise.engine.limits import get_limit_terms
from stagewise.models.diagnostics import UpperForecast
from stagewise.records.proposal_status import ROUNDING

TERMS = as_python(get_limit_terms)
RATIO, HALVINGS = 1.25, 6  # from one number of plays to the next, and how often the last interval is halved
MAX_CELLS = 12  # cells of an action that are forecast: those that are proposed most
WHOLE, ABOVE_LIMIT = "whole", "its estimate is beyond a limit"
NO_FORECAST, FORECAST = "no forecast for this model", "at the recent rate, with means as they are"


class Proposed(NamedTuple):
    """One recent decision on a proposal."""

    features: Floats  # (K, d)
    weights: Floats  # (K,) as proposed
    probabilities: Floats  # (K,) as played


class ProposalSummary(NamedTuple):
    """What became of one action in the recent proposals, and when it is played whole.

    Attributes:
        action: The name of the action.
        proposed: Its mean proposed probability in the recent decisions on a proposal.
        overlap: The share of it that was played.
        plays_until_whole: The outcomes that it needs until its pessimistic costs are within the limits, if its means
            stay as they are, over all cells in which it was proposed; None: see the note.
        decisions_until_whole: The decisions until then at the recent rate, in the slowest cell; None: see the note.
        note: What the numbers assume, or why there are none.
    """

    action: str
    proposed: float
    overlap: float
    plays_until_whole: float | None
    decisions_until_whole: float | None
    note: str


class Wait(NamedTuple):
    """The plays and the decisions until an action is certain in a cell, or in all of several cells."""

    plays: float
    decisions: float
    cells: int = 1
    beyond: int = 0  # cells in which its estimate is not below a limit

    @property
    def note(self) -> str:
        """What the numbers assume, or why there are none."""
        if not math.isinf(self.plays):
            return FORECAST
        return f"{ABOVE_LIMIT} in {self.beyond} of {self.cells} groups" if self.beyond < self.cells else ABOVE_LIMIT


NEVER = Wait(math.inf, math.inf, beyond=1)


def forecast_wait(costs: Sequence[UpperForecast], limits: Floats, safe_costs: Floats) -> Wait:
    """Return the plays until all upper ends U are within the limits, and the decisions, were it always proposed.

        decisions = Σ_n max(1, max_j (U_j(n) − c₀_j) / (τ_j − c₀_j))        over the plays (docs/theory/guard.md)

    Infinite: a mean is not below its limit.
    """
    if any(cost.mean >= limit for cost, limit in zip(costs, limits.tolist(), strict=True)):
        return NEVER

    def wait(more: float) -> float:
        """Return the expected decisions until the next play; 1: the action is whole."""
        rises = (
            (cost.upper(cost.pulls + more) - safe) / (limit - safe)
            for cost, limit, safe in zip(costs, limits.tolist(), safe_costs.tolist(), strict=True)
        )
        return float(max(1.0, *rises))

    plays, decisions, start = 0.0, 0.0, max(min(cost.pulls for cost in costs), 4.0)
    while wait(plays) > 1.0:
        step = (RATIO - 1.0) * (start + plays)
        if plays > MOST_PULLS:
            return NEVER
        for _ in range(HALVINGS):
            if wait(plays + step) > 1.0:
                break
            step /= 2.0
        decisions += step * wait(plays + 0.5 * step)
        plays += step
        if step < 1.0:
            break
    return Wait(plays, decisions)


def summarize_proposals(
    policy: Any, memory: Floats, proposed: Iterable[Proposed], decisions: int
) -> tuple[ProposalSummary, ...]:
    """Return what became of each proposed action in recent decisions; `decisions` is the number of all of them."""
    rows = list(proposed)
    if not rows:
        return ()
    safe = int(policy.layout[SAFE_INDEX])
    weights, played = (np.array([row[at] for row in rows]) for at in (1, 2))
    summaries = []
    for action in np.flatnonzero(weights.any(axis=0)).tolist():
        if action == safe:
            continue
        kept = np.minimum(weights[:, action], played[:, action]).sum() / weights[:, action].sum()
        asked = [(row, float(weight)) for row, weight in zip(rows, weights[:, action], strict=True) if weight > 0.0]
        wait = forecast_action(policy, memory, action, asked, decisions)
        note = NO_FORECAST if wait is None else wait.note
        note = WHOLE if kept >= 1.0 - ROUNDING or (wait is not None and wait.plays == 0.0) else note
        wait = Wait(0.0, 0.0) if note == WHOLE else wait
        plays, rounds = (None if math.isinf(one) else math.ceil(one) for one in (wait or NEVER)[:2])
        name = str(policy.names[action])
        summaries.append(ProposalSummary(name, float(weights[:, action].mean()), float(kept), plays, rounds, note))
    return tuple(summaries)


def forecast_action(
    policy: Any, memory: Floats, action: int, asked: Sequence[tuple[Proposed, float]], decisions: int
) -> Wait | None:
    """Return the plays until an action is whole in the cells of these decisions, and the decisions until the last is.

    None: a model does not count plays.
    """
    layout, settings, declared = policy.layout, policy.settings, np.array(policy.declared_costs)
    limits, cells = TERMS(layout, settings).limits, dict[tuple[int, ...], tuple[float, Proposed]]()
    for row, weight in asked:
        costs = forecast_costs(RoundArrays(policy.rounds.spec.models, layout, settings, row.features), memory, action)
        if any(cost is None for cost in costs):
            return None
        key = tuple(cost.cell for cost in costs if cost is not None)
        cells[key] = cells.get(key, (0.0, row))[0] + weight, row
    plays, rounds, beyond = 0.0, 0.0, 0
    chosen = sorted(cells.values(), key=lambda one: -one[0])[:MAX_CELLS]
    for weight, row in chosen:
        arrays = RoundArrays(policy.rounds.spec.models, layout, settings, row.features)
        costs, safe = (forecast_costs(arrays, memory, at) for at in (action, int(layout[SAFE_INDEX])))
        ends = [math.inf if one is None else one.upper(one.pulls) for one in safe]
        safe_costs = np.minimum(declared, ends)
        if not (safe_costs < limits).all():
            return NEVER
        wait = forecast_wait([cost for cost in costs if cost is not None], limits, safe_costs)
        plays, rounds = plays + wait.plays, max(rounds, wait.decisions * decisions / weight)
        beyond += math.isinf(wait.plays)
    return Wait(plays, rounds, len(chosen), beyond)
