"""From a kernel's mixture to a Decision, and to the table a person reads."""

from functools import partial

import numpy as np

from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.promise import DRAWN
from stagewise.policies.settings import FALLBACKS
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table

SAFEST = "drawn from the mixture with the largest hoped reward whose pessimistic costs stay within the thresholds"
DARING = "drawn from the mixture with the largest hoped reward whose optimistic costs do, which may break a limit"


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
    m = thresholds.values.size
    shares, total = mixture(flat, m, count)
    probabilities = np.zeros(count + 1)
    for place in range(m + 2):
        where = int(support[place])
        probabilities[home if where < 0 else where] += shares[place]
    return Decision(
        action,
        code if code >= 0 else home,
        1.0,
        probabilities,
        float(total[0]),
        thresholds.in_units(total[1:]),
        thresholds.values,
        None if code >= 0 or code == -DRAWN else FALLBACKS[-code],
        round_,
        partial(table, code, flat, support, count, home, probabilities, eligible, thresholds, why),
        offered,
        news,
    )


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
    why: str,
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
