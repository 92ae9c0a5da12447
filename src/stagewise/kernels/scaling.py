"""Check numeric context values against their ranges and scale them to [−1, 1], in one pass."""

from stagewise.kernels.compile import Floats, kernel


@kernel
def scale_to_range(values: Floats, ends: Floats, scaled: Floats) -> int:
    """Write each value scaled from its range (n, 2) to [−1, 1]; return the first index that is out of range, or −1.

    scaled = (2 value − (low + high)) / (high − low)        NaN is out of range
    """
    for i in range(values.size):
        low, high, value = ends[i, 0], ends[i, 1], values[i]
        if not low <= value <= high:
            return i
        position = (2.0 * value - (low + high)) / (high - low)
        scaled[i] = min(max(position, -1.0), 1.0)  # rounding may exceed the ends
    return -1
