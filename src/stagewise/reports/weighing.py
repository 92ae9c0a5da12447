"""What is claimed, and what runs say of it by how many broke a limit and in how many an interval failed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from stagewise.reports.evidence import REFUTED, SUPPORTED, UNDECIDED, Evidence, evidence

FORMAT, VERSION = "stagewise-certificate", 1
VERIFY = "stagewise certify --verify certificate.json"  # what anybody types to check one


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
