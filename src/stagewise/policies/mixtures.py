"""From a kernel's mixture to a Decision, and to the table a person reads."""

from functools import partial
from typing import NamedTuple

import numpy as np

from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.promise import DRAWN, PREFERRED
from stagewise.policies.settings import FALLBACKS
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table

SAFEST = "drawn from the mixture with the largest hoped reward whose pessimistic costs stay within the thresholds"
DARING = "drawn from the mixture with the largest hoped reward whose optimistic costs do, which may break a limit"


class Blend(NamedTuple):
    """A mixture that is safe, with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float
    dearest: Floats  # (m,) signed
    gap: float


def decision_from_mixture(
    code: int,
    action: Floats | int,
    flat: Floats,
    support: Ints,
    count: int,
    home: int,
    eligible: Flags,
    thresholds: Thresholds,
    round_: int,
    offered: Floats | None = None,
    news: bool = False,
    why: str = SAFEST,
) -> Decision:
    """Return the decision that the kernel's code and odds stand for; `home` is the safe action's own place, or −1."""
    blend = solved_blend(flat, support, thresholds.values.size, count, home)
    return decision_from_blend(
        code, action, blend, flat, support, count, home, eligible, thresholds, round_, offered, news, why
    )


def solved_blend(flat: Floats, support: Ints, m: int, count: int, home: int = -1) -> Blend:
    """Return the mixture that stands in the odds."""
    shares, total = mixture(flat, m, count)
    probabilities = np.zeros(count + 1)
    for place in range(m + 2):
        where = int(support[place])
        probabilities[home if where < 0 else where] += shares[place]
    return Blend(probabilities, float(total[0]), total[1:], 0.0)


def decision_from_blend(
    code: int,
    action: Floats | int,
    blend: Blend,
    flat: Floats,
    support: Ints,
    count: int,
    home: int,
    eligible: Flags,
    thresholds: Thresholds,
    round_: int,
    offered: Floats | None,
    news: bool,
    why: str = SAFEST,
) -> Decision:
    """Return the decision to play this action of a mixture."""
    return Decision(
        action,
        code if code >= 0 else home,
        1.0,
        blend.probabilities,
        blend.hoped,
        thresholds.in_units(blend.dearest),
        thresholds.values,
        None if code >= 0 or code == -DRAWN else FALLBACKS[-code],
        round_,
        partial(table, code, flat, support, count, home, blend.probabilities, eligible, thresholds, why),
        offered,
        news,
        blend.gap,
    )


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


def mixture(flat: Floats, m: int, count: int) -> tuple[Floats, Floats]:
    """Return the shares and the totals that stand in the odds."""
    total = (2 + 2 * m) * count + 2 * m + 1
    return flat[total + 1 + m : total + 1 + m + m + 2], flat[total : total + 1 + m]


def table(
    code: int,
    flat: Floats,
    support: Ints,
    count: int,
    home: int,
    probabilities: Floats,
    eligible: Flags,
    thresholds: Thresholds,
    why: str = SAFEST,
) -> Table:
    """Return the leading actions and the safe one with their bounds."""
    odds = named(named_odds)(thresholds.values.size, count, flat, support)
    signs = thresholds.signs
    first = leading(odds.hoped, eligible, code)
    mixed: list[int] = [i for i in range(count) if probabilities[i] > 0.0 and i != home]
    shown = [*mixed, *(i for i in first if i not in mixed and odds.hoped[i] > -np.inf)][: max(5, len(mixed))]
    word = "action" if home < 0 else "arm"
    rows = [
        Row(f"{word} {i}", odds.hoped[i], tuple(signs * odds.dearest[:, i]), probabilities[i], i == code) for i in shown
    ]
    safe = tuple(signs * odds.safe_dearest)
    rows.append(Row("safe action", float(odds.safe_hoped[0]), safe, float(probabilities[home]), code < 0))
    hidden = max(hidden_count(count, eligible, len(shown)) - int(home >= 0), 0)
    return Table(thresholds.names, tuple(signs), tuple(thresholds.values), "probability", tuple(rows), hidden, why)
