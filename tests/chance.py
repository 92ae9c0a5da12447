"""What chance allows: the one bound that all counted failures are held against."""

from scipy.stats import binom


def allowed(runs: int, delta: float) -> int:
    """Return the number of failing runs that a probability of δ exceeds with a chance of 1 in 1000."""
    return int(binom.ppf(0.999, runs, delta))
