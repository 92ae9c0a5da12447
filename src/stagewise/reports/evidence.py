"""What is claimed, and what runs say of it: intervals, one for all times and one for a fixed number, and a verdict."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from stagewise.kernels.signals.interval import Interval, kl_high, kl_interval

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
MOST = 2**50  # runs nobody will play
FORMAT, VERSION = "stagewise-certificate", 1
VERIFY = "stagewise certify --verify certificate.json"  # what anybody types to check one


class Evidence(NamedTuple):
    """How often something happened that may happen with probability `allowed` at most.

    Both intervals hold at once with the confidence asked for, each taking half of what may go wrong.
    """

    happened: int
    runs: int
    allowed: float
    anytime: Interval  # holds at every number of runs at once, so also when the runs were stopped by looking at it
    exact: Interval | None  # Clopper and Pearson's, for the number of runs planned; None: they were not all played
    verdict: str
    needed: int | None  # more or less, until it is supported at the present rate; None: decided, or never


def evidence(happened: int, runs: int, allowed: float, confidence: float, complete: bool) -> Evidence:
    """Weigh so many occurrences in so many runs; `complete`: all runs that were planned have been played."""
    half = (1.0 - confidence) / 2.0
    anytime = kl_interval(float(runs), happened / runs, math.log(1.0 / half))
    exact = clopper_pearson(happened, runs, half) if complete else None
    low = anytime.low if exact is None else max(anytime.low, exact.low)
    high = anytime.high if exact is None else min(anytime.high, exact.high)
    verdict = REFUTED if low > allowed else SUPPORTED if high <= allowed else UNDECIDED
    needed = runs_needed(happened / runs, allowed, confidence) if verdict == UNDECIDED else None
    return Evidence(happened, runs, allowed, Interval(*anytime), exact, verdict, needed)


def clopper_pearson(happened: int, runs: int, error: float) -> Interval:
    """Return the exact two-sided interval for a fixed number of runs: at most `error`/2 lies beyond either end.

    P(Bin(n, low) ≥ k) = error/2,    P(Bin(n, high) ≤ k) = error/2        (Clopper, Pearson 1934)
    """
    from scipy.stats import beta  # type: ignore[import-untyped]

    low = float(beta.ppf(error / 2.0, happened, runs - happened + 1)) if happened > 0 else 0.0
    high = float(beta.ppf(1.0 - error / 2.0, happened + 1, runs - happened)) if happened < runs else 1.0
    return Interval(low, high)


def runs_needed(rate: float, allowed: float, confidence: float) -> int | None:
    """Return after how many runs at this rate the upper end falls to what is allowed; None: it never would."""
    spent = math.log(2.0 / (1.0 - confidence))
    if not rate < allowed:
        return None
    high = 1
    while kl_high(float(high), rate, spent) > allowed:
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kl_high(float(middle), rate, spent) <= allowed else (middle, high)
    return high


class Terms(NamedTuple):
    """What is claimed, and how sure one wants to be."""

    delta: float  # a run may break a limit with this probability at most
    confidence: float
    names: tuple[str, ...]  # the reward, then every cost
    shares: tuple[float | None, ...]  # the probability that each signal's intervals may fail with; None: it has none


class Tally(NamedTuple):
    """How many runs there were, how many broke a limit, and in how many an interval of each signal missed."""

    runs: int
    violating: int
    missing: tuple[int, ...]

    @classmethod
    def of(cls, terms: Terms, batches: Iterable[dict[str, Any]] = ()) -> "Tally":
        """Return the sum of the totals of batches."""
        tally = cls(0, 0, (0,) * len(terms.names))
        for batch in batches:
            tally = tally.plus(batch)
        return tally

    def plus(self, batch: dict[str, Any]) -> "Tally":
        """Return the tally with one batch more."""
        missing = tuple(one + more for one, more in zip(self.missing, batch["missing"], strict=True))
        return Tally(self.runs + batch["runs"], self.violating + batch["violating"], missing)


class Weighed(NamedTuple):
    """What the runs so far say."""

    violations: Evidence
    coverage: tuple[Evidence | None, ...]

    @property
    def verdict(self) -> str:
        """Of the claim itself."""
        return self.violations.verdict

    @property
    def grounds(self) -> str:
        """Of what it rests on, the intervals."""
        verdicts = {one.verdict for one in self.coverage if one is not None}
        return next((word for word in (REFUTED, UNDECIDED) if word in verdicts), SUPPORTED)

    @property
    def clear(self) -> bool:
        """Whether more runs would change nothing: the claim is refuted, or it and all its grounds are decided."""
        return self.verdict == REFUTED or UNDECIDED not in (self.verdict, self.grounds)


def weighed(tally: Tally, terms: Terms, complete: bool) -> Weighed:
    """Weigh runs by their tally; `complete`: they are all that were planned."""

    def one(happened: int, allowed: float) -> Evidence:
        return evidence(happened, tally.runs, allowed, terms.confidence, complete)

    signals = zip(tally.missing, terms.shares, strict=True)
    coverage = tuple(None if share is None else one(missed, share) for missed, share in signals)
    return Weighed(one(tally.violating, terms.delta), coverage)


def weights(terms: Terms, rounds: int, result: Weighed) -> dict[str, Any]:
    """Return what a certificate says by its totals: the verdict, and the evidence it comes from."""
    signals = zip(terms.names, result.coverage, strict=True)
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": result.verdict,
        "grounds": result.grounds,
        "claim": {"delta": terms.delta, "confidence": terms.confidence, "rounds": rounds},
        "violations": told(result.violations),
        "coverage": [{"signal": name, **told(one)} for name, one in signals if one is not None],
        "verify": VERIFY,
    }


def told(one: Evidence) -> dict[str, Any]:
    """Return evidence as plain values."""
    return {**one._asdict(), "anytime": list(one.anytime), "exact": None if one.exact is None else list(one.exact)}
