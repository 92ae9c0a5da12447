"""Bounds of running averages against those of one mean: widths, and plays until a limit is certain.

Usage: python benchmarks/averages.py [--time]

The witness is the bound that they replaced: a mixture of coins, w Beta(1/2, 1/2) + (1 - w) Beta(1, 1/e - 1), sharpest
at the limit e. It is proved for outcomes of one mean only.
"""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from stagewise.engine.compile import as_python
from stagewise.models.intervals import compute_average_interval, compute_average_lower, compute_average_upper

LIMIT, REST = 0.02, 0.1
CASES = [
    (0, 5), (0, 20), (0, 50), (0, 200), (1, 100), (5, 500), (20, 2000), (80, 8000), (300, 30_000), (3000, 300_000),
    (300_000, 30_000_000), (40, 20_000), (50, 100), (500, 1000), (5000, 10_000), (50_000, 100_000), (900, 1000),
]  # fmt: skip
UPPER, LOWER = as_python(compute_average_upper), as_python(compute_average_lower)


def compute_old_end(pulls: float, total: float, confidence: float, expected: float, upper: bool) -> float:
    """Return the end at which the mixture is 1/δ' times as likely as a coin, by bisection."""
    others = 1.0 / expected - 1.0
    near = math.log(1.0 - REST) + betaln(total + 1.0, pulls - total + others) - betaln(1.0, others)
    rest = math.log(REST) + betaln(total + 0.5, pulls - total + 0.5) - betaln(0.5, 0.5)
    mixture, inside, outside = np.logaddexp(near, rest), total / pulls, float(upper)
    for _ in range(200):
        p = 0.5 * (inside + outside)
        is_inside = mixture - xlogy(total, p) - xlog1py(pulls - total, -p) <= confidence
        inside, outside = (p, outside) if is_inside else (inside, p)
    return inside


def print_widths(delta: float) -> None:
    """Print the distance of both ends from the mean, relative to the witness'."""
    confidence = math.log(1.0 / delta)
    print(f"share of delta {delta:g}: events of plays, width above and below the mean, relative to the witness")
    for total, pulls in CASES:
        mean, expected = total / pulls, LIMIT if total < 0.1 * pulls else 0.5
        above = UPPER(float(pulls), float(total), confidence) - mean
        old = compute_old_end(pulls, total, confidence, expected, True) - mean
        below, old_below = mean - LOWER(float(pulls), float(total), confidence), mean
        if total:
            old_below = mean - compute_old_end(pulls, total, confidence, expected, False)
        print(f"  {total:>7,} of {pulls:<10,}  {above / old:.2f}  {below / old_below if total else math.nan:.2f}")


def compute_single_end(pulls: float, total: float, confidence: float, eta: float) -> float:
    """Return the bound of one term that has all the weight."""
    return math.expm1(-(confidence + eta * total) / pulls) / math.expm1(-eta)


def count_plays(end: Callable[[float, float], float], rate: float) -> int:
    """Return the plays until the limit is certain, at S = pn."""
    low, high = 1.0, 1e6
    while high - low > 1.0:
        middle = math.floor(0.5 * (low + high))
        low, high = (low, middle) if end(middle, rate * middle) <= LIMIT else (middle, high)
    return int(high)


def print_plays(delta: float) -> None:
    """Print the plays until a limit is certain; one term is what would be best if the rate were known."""
    confidence = math.log(1.0 / delta)
    for rate in (0.005, 0.01, 0.015, 0.0175):
        mixture = count_plays(lambda n, total: UPPER(n, total, confidence), rate)
        witness = count_plays(lambda n, total: compute_old_end(n, total, confidence, LIMIT, True), rate)
        single = count_plays(partial(compute_single_end, confidence=confidence, eta=math.log(LIMIT / rate)), rate)
        print(
            f"  rate {rate:g}: {mixture:,} plays until at most {LIMIT:g} is certain; the witness {witness:,}; one term "
            f"{single:,}"
        )


def print_time() -> None:
    """Print the time of both ends, compiled."""
    random = np.random.default_rng(1)
    pulls = np.floor(10.0 ** random.uniform(0.0, 6.0, 20_000))
    means = np.minimum(random.uniform(0.0, 0.04, pulls.size), 1.0)
    compute_average_interval(10.0, 0.1, 5.0, 5.0)
    started = time.process_time()
    for n, mean in zip(pulls.tolist(), means.tolist(), strict=True):
        compute_average_interval(n, mean, 5.0, 5.0)
    print(f"both ends: {(time.process_time() - started) / pulls.size * 1e6:.1f} us with the call from Python")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", action="store_true", help="only time the compiled kernel")
    if parser.parse_args().time:
        print_time()
    else:
        for share in (0.05, 0.002):
            print_widths(share)
            print_plays(share)
