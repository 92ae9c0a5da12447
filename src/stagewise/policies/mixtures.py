"""From a kernel's mixture to a Decision, and to the table a person reads."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.blend import Odds, named_odds, odds_size
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.promise import DRAWN, PREFERRED
from stagewise.policies.settings import FALLBACKS
from stagewise.policies.tables import hidden_count, leading
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.explanation import Row, Table

SAFEST = "drawn from the mixture with the largest hoped reward whose pessimistic costs stay within the thresholds"
DARING = "drawn from the mixture with the largest hoped reward whose optimistic costs do, which may break a limit"

ODDS = named(named_odds)


class Blend(NamedTuple):
    """A mixture that is safe, with its bounds."""

    probabilities: Floats  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float
    dearest: Floats  # (m,) signed
    gap: float


class Written(NamedTuple):
    """The arrays into which a kernel writes the odds of some actions and the mixture made of them."""

    flat: Floats
    support: Ints  # (m + 2,)
    listed: int  # K
    home: int  # the safe action's own place among them; −1: it stands beside the list

    @classmethod
    def room(cls, m: int, count: int, home: int = -1) -> "Written":
        """Return empty arrays for `count` actions under m constraints."""
        return cls(np.empty(odds_size(m, count)), np.empty(m + 2, dtype=np.int64), count, home)

    @property
    def odds(self) -> Odds:
        """The same, named."""
        return ODDS(self.support.size - 2, self.listed, self.flat, self.support)


def solved_blend(written: Written) -> Blend:
    """Return the mixture that stands in the odds."""
    m, count = written.support.size - 2, written.listed
    total = (2 + 2 * m) * count + 2 * m + 1  # as `named_odds` has it, which takes longer to say it
    shares = written.flat[total + 1 + m : total + 1 + m + m + 2]
    probabilities = np.zeros(count + 1)
    for place in range(m + 2):
        where = int(written.support[place])
        probabilities[written.home if where < 0 else where] += shares[place]
    return Blend(probabilities, float(written.flat[total]), written.flat[total + 1 : total + 1 + m], 0.0)


def decision_from(
    code: int,
    action: Any,
    written: Written,
    eligible: Flags,
    thresholds: Thresholds,
    round_: int,
    *,
    blend: Blend | None = None,
    offered: Floats | None = None,
    news: bool = False,
    why: str = SAFEST,
) -> Decision:
    """Return the decision that a kernel's code stands for: of this mixture, or of the one in its odds."""
    played = solved_blend(written) if blend is None else blend
    return Decision(
        action,
        code if code >= 0 else written.home,
        1.0,
        played.probabilities,
        played.hoped,
        thresholds.in_units(played.dearest),
        thresholds.values,
        None if code >= 0 or code == -DRAWN else FALLBACKS.get(-code),
        round_,
        partial(table, code, written, played.probabilities, eligible, thresholds, why),
        offered,
        news,
        played.gap,
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


def table(
    code: int, written: Written, probabilities: Floats, eligible: Flags, thresholds: Thresholds, why: str
) -> Table:
    """Return the leading actions and the safe one with their bounds."""
    odds, count, home = written.odds, written.listed, written.home
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
