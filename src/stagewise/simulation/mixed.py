"""What a mixture is really worth: the true means of its actions, added up in the order of the list."""

from stagewise.kernels.blend import Odds
from stagewise.kernels.compile import Floats, kernel

NOBODY = 2**62


@kernel
def next_mixed(odds: Odds, home: int, after: int) -> int:
    """Return the lowest index in the mixture beyond `after`, or a very large one; the safe action counts as `home`."""
    lowest = NOBODY
    for place in range(odds.support.size):
        index = odds.support[place] if odds.support[place] >= 0 else home
        if odds.shares[place] > 0.0 and after < index < lowest:
            lowest = index
    return lowest


@kernel
def share_of(odds: Odds, home: int, index: int) -> float:
    """Return the probability of one action in the mixture."""
    share = 0.0
    for place in range(odds.support.size):
        if index == (odds.support[place] if odds.support[place] >= 0 else home):
            share += odds.shares[place]
    return share


@kernel
def fill_mixed(means: Floats, home: int, odds: Odds, values: Floats) -> None:
    """Write Σ_a π(a) means(a) of columns (1 + m, K); the safe action's is the column `home`."""
    values[:] = 0.0
    index = next_mixed(odds, home, -1)
    while index != NOBODY:
        share = share_of(odds, home, index)
        for signal in range(values.size):
            values[signal] += share * means[signal, index]
        index = next_mixed(odds, home, index)
