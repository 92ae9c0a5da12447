"""True means of a mixture, summed in the order of the action list."""

from stagewise.kernels.compile import Floats, Ints, kernel

NO_INDEX = 2**62


@kernel
def find_next_action(shares: Floats, indices: Ints, safe_index: int, after: int) -> int:
    """Return the lowest index in the mixture above `after`, or NO_INDEX; the safe action has index `safe_index`."""
    lowest = NO_INDEX
    for position in range(indices.size):
        index = indices[position] if indices[position] >= 0 else safe_index
        if shares[position] > 0.0 and after < index < lowest:
            lowest = index
    return lowest


@kernel
def get_share(shares: Floats, indices: Ints, safe_index: int, index: int) -> float:
    """Return the probability of one action in the mixture."""
    share = 0.0
    for position in range(indices.size):
        if index == (indices[position] if indices[position] >= 0 else safe_index):
            share += shares[position]
    return share


@kernel
def fill_mixture_means(truths: Floats, safe_index: int, shares: Floats, indices: Ints, values: Floats) -> None:
    """Write Σ_a π(a) means(a) of the true means (1 + m, K + 1); the safe action is the column `safe_index`."""
    values[:] = 0.0
    index = find_next_action(shares, indices, safe_index, -1)
    while index != NO_INDEX:
        share = get_share(shares, indices, safe_index, index)
        for signal in range(values.size):
            values[signal] += share * truths[signal, index]
        index = find_next_action(shares, indices, safe_index, index)
