"""Numbers about a user, checked against their ranges and scaled to [−1, 1], in one pass."""

from stagewise.kernels.compile import Floats, kernel


@kernel
def fill_scaled(values: Floats, ends: Floats, scaled: Floats) -> int:
    """Write how far each value lies between its ends (n, 2), from −1 to 1; return the first that does not, or −1.

    scaled = (2 value − (low + high)) / (high − low)        NaN lies nowhere
    """
    for i in range(values.size):
        low, high, value = ends[i, 0], ends[i, 1], values[i]
        if not low <= value <= high:
            return i
        place = (2.0 * value - (low + high)) / (high - low)
        scaled[i] = min(max(place, -1.0), 1.0)  # the ends may round to beyond them
    return -1
