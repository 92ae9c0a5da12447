"""From a kernel's mixture to a Decision, and to the table a person reads."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import HOPE, UNFOLLOWED, costs_in, fill_odds_of, written_in
from stagewise.kernels.bounds import HOPED, dearest_in
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import HOME, LIMITS
from stagewise.kernels.promise import DRAWN, PREFERRED
from stagewise.policies.compiled import NEW, Chosen
from stagewise.policies.settings import CAUSES
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table

SAFEST = "drawn from the mixture with the largest hoped reward whose pessimistic costs stay within the thresholds"
DARING = "drawn from the mixture with the largest hoped reward whose optimistic costs do, which may break a limit"
PROPOSED = "drawn from the mixture that a draw proposed, its regret being certified, or else from the most hopeful one"

UNIT = 0.0, 1.0  # the span of a reward that is shown as it is learned
WRITTEN_IN, COSTS_IN, DEAREST_IN = named(written_in), named(costs_in), named(dearest_in)


class Blend(NamedTuple):
    """A mixture that is safe, with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float
    dearest: Floats  # (m,) signed
    gap: float


def solved_blend(seen: Chosen) -> Blend:
    """Return the mixture that stands in a kernel's answer."""
    answer, layout, odds = seen.answer, seen.layout, np.empty(len(seen.features) + 1)
    fill_odds_of(layout, answer, odds)
    return NEW(Blend, (odds, answer.item(HOPE), COSTS_IN(answer, layout.item(LIMITS)), 0.0))


def decision_from(
    seen: Chosen,
    action: Any,
    thresholds: Thresholds,
    round_: int,
    *,
    blend: Blend | None = None,
    why: str = SAFEST,
    names: Sequence[str] | None = None,
    kind: type[Decision] = Decision,
    span: tuple[float, float] = UNIT,
) -> Decision:
    """Return the decision that a kernel's answer stands for: of this mixture, or of its own.

    `span` is where the reward's range begins in the user's units, and its length.
    """
    played, code, home = solved_blend(seen) if blend is None else blend, seen.code, seen.layout.item(HOME)
    features = seen.features if seen.features.shape[1] else None
    index, cause = (int(code), None) if code >= 0 else (home, None if code == -DRAWN else CAUSES.get(-code))
    odds, dearest, values = played.probabilities, thresholds.in_units(played.dearest), thresholds.values
    hoped, gap = span[0] + span[1] * played.hoped, span[1] * played.gap
    told = (action, index, 1.0, odds, hoped, dearest, values, cause, round_, gap)
    decision = NEW(kind, told)
    decision._table, decision._offered = partial(table, seen, odds, thresholds, why, names, span), features
    if features is not None and seen.answer.item(UNFOLLOWED) != 0.0:
        decision._unfollowed = True
    return decision


def drawn(probabilities: Floats, lottery: float) -> int:
    """Return what a uniform number in (0, 1) picks from a mixture (K + 1,), as a kernel's code would say it.

    >>> drawn(np.array([0.25, 0.75, 0.0]), 0.3), drawn(np.array([0.25, 0.5, 0.25]), 0.9) == -DRAWN
    (1, True)
    """
    possible, safe = np.flatnonzero(probabilities), probabilities.size - 1
    if probabilities[safe] == 1.0:
        return -PREFERRED
    passed = np.searchsorted(np.cumsum(probabilities[possible]), lottery, side="right")
    index = int(possible[min(int(passed), possible.size - 1)])
    return index if index < safe else -DRAWN


def table(
    seen: Chosen,
    probabilities: Floats,
    thresholds: Thresholds,
    why: str,
    names: Sequence[str] | None = None,
    span: tuple[float, float] = UNIT,
) -> Table:
    """Return the leading actions and the safe one with their bounds."""
    rule, code, home = seen.workspace.rule, seen.code, int(seen.layout[HOME])
    hoped, signs, count = span[0] + span[1] * rule[HOPED], thresholds.signs, len(seen.features)
    dearest = np.array([thresholds.in_units(column) for column in DEAREST_IN(seen.layout, rule).T])  # of every action
    first = leading(hoped[:-1], seen.eligible, code)
    mixed: list[int] = [i for i in range(count) if probabilities[i] > 0.0 and i != home]
    shown = [*mixed, *(i for i in first if i not in mixed and hoped[i] > -np.inf)][: max(5, len(mixed))]
    word = "action" if home < 0 or seen.features.shape[1] else "arm"
    called = [f"{word} {i}" for i in shown] if names is None else [names[i] for i in shown]
    rows = [
        Row(name, hoped[i], tuple(dearest[i]), probabilities[i], i == code)
        for i, name in zip(shown, called, strict=True)
    ]
    safe = "safe action" if names is None else f"{names[home]} (safe)"
    rows.append(Row(safe, float(hoped[-1]), tuple(dearest[-1]), float(probabilities[home]), code < 0))
    hidden = max(hidden_count(count, seen.eligible, len(shown)) - int(home >= 0), 0)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "probability", tuple(rows), hidden, why)
