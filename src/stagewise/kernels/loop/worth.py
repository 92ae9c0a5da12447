"""What a mixture is really worth: the true means of its actions, added up in the order of the list."""

from stagewise.kernels.compile import Floats, Ints, kernel

NOBODY = 2**62


@kernel
def next_mixed(shares: Floats, places: Ints, home: int, after: int) -> int:
    """Return the lowest index in the mixture beyond `after`, or a very large one; the safe action counts as `home`."""
    lowest = NOBODY
    for place in range(places.size):
        index = places[place] if places[place] >= 0 else home
        if shares[place] > 0.0 and after < index < lowest:
            lowest = index
    return lowest


@kernel
def share_of(shares: Floats, places: Ints, home: int, index: int) -> float:
    """Return the probability of one action in the mixture."""
    share = 0.0
    for place in range(places.size):
        if index == (places[place] if places[place] >= 0 else home):
            share += shares[place]
    return share


@kernel
def fill_mixed(truths: Floats, home: int, shares: Floats, places: Ints, values: Floats) -> None:
    """Write Σ_a π(a) means(a) of the true means (1 + m, K + 1); the safe action's stand in the column `home`."""
    values[:] = 0.0
    index = next_mixed(shares, places, home, -1)
    while index != NOBODY:
        share = share_of(shares, places, home, index)
        for signal in range(values.size):
            values[signal] += share * truths[signal, index]
        index = next_mixed(shares, places, home, index)
