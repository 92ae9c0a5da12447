"""A certificate: what was promised, what was found in how many runs, and what that says; as JSON and as a page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.files.paths import path_of
from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.errors import InvalidFile
from stagewise.reports.evidence import REFUTED, SUPPORTED, UNDECIDED, Evidence, evidence
from stagewise.reports.files import made, write_text
from stagewise.reports.findings import Findings

FORMAT, VERSION = "stagewise-certificate", 1
QUANTILES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
BARS = 40  # of the histogram
VERIFY = "stagewise certify --verify certificate.json"  # what anybody types to check one


class Terms(NamedTuple):
    """What is claimed, and how sure one wants to be."""

    delta: float  # a run may break a limit with this probability at most
    confidence: float
    names: tuple[str, ...]  # the reward, then every cost
    shares: tuple[float | None, ...]  # the probability that each signal's intervals may fail with; None: it has none


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


def weighed(findings: Findings, terms: Terms, complete: bool) -> Weighed:
    """Weigh the runs; `complete`: all that were planned."""
    runs = len(findings.runs)
    violating, missing = int((findings.violations > 0).sum()), (findings.missed > 0).sum(axis=0).tolist()
    return reweighed(runs, violating, missing, terms, complete)


def reweighed(runs: int, violating: int, missing: list[int], terms: Terms, complete: bool) -> Weighed:
    """Weigh runs by their totals."""
    coverage = tuple(
        None if share is None else evidence(count, runs, share, terms.confidence, complete)
        for share, count in zip(terms.shares, missing, strict=True)
    )
    return Weighed(evidence(violating, runs, terms.delta, terms.confidence, complete), coverage)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Plain JSON values, and what people ask of them first."""

    content: dict[str, Any]

    @property
    def verdict(self) -> str:
        """Say "supported", "refuted" or "undecided"."""
        return str(self.content["verdict"])

    @property
    def holds(self) -> bool:
        """Whether the claim is supported, and nothing that it rests on is refuted."""
        return self.verdict == SUPPORTED and self.content["grounds"] != REFUTED

    def __repr__(self) -> str:
        found = self.content["violations"]
        share = f"{found['happened']:,} of {found['runs']:,} runs broke a limit"
        high = min(found["anytime"][1], (found["exact"] or [0.0, 1.0])[1])
        kind = self.content["policy"]["kind"]
        return f"Certificate({kind}: {self.verdict}; {share}, at most {high:.4%} do; allowed {found['allowed']:.4%})"

    def save(self, folder: str | Path) -> None:
        """Write certificate.json and certificate.html."""
        from stagewise.reports.certificate_page import page

        place = made(folder)
        write_text(place / "certificate.json", json.dumps(self.content, indent=1, allow_nan=False) + "\n")
        write_text(place / "certificate.html", page(self.content))

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Return what `save` wrote; `path` is the file, or its folder. That it is true, only `verify` can tell."""
        from stagewise.reports.certificate_shape import parsed

        place = path_of(path)
        try:
            place = place / "certificate.json" if place.is_dir() else place
            text = place.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidFile(f"{place} is no certificate that can be read: {error.strerror}") from None
        except ValueError as error:
            raise InvalidFile(f"{place} is no certificate, since it is no text: {error}") from None
        return cls(parsed(text, place))


def told(one: Evidence) -> dict[str, Any]:
    """Return evidence as plain values."""
    return {**one._asdict(), "anytime": list(one.anytime), "exact": None if one.exact is None else list(one.exact)}


def weights(terms: Terms, rounds: int, result: Weighed) -> dict[str, Any]:
    """Return what a certificate says by its totals: the verdict, and the evidence it comes from."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": result.verdict,
        "grounds": result.grounds,
        "claim": {"delta": terms.delta, "confidence": terms.confidence, "rounds": rounds},
        "violations": told(result.violations),
        "coverage": [
            {"signal": name, **told(one)}
            for name, one in zip(terms.names, result.coverage, strict=True)
            if one is not None
        ],
        "verify": VERIFY,
    }


def spread(findings: Findings, rounds: Ints, terms: Terms) -> dict[str, Any]:
    """Return what a certificate says of all runs together beyond that: how they spread."""
    broken = findings.first_violation[findings.first_violation > 0]
    return {
        "first_violation": None if broken.size == 0 else quantiles(broken),
        "optimism": None
        if findings.hopeless.min() < 0
        else {"runs": int((findings.hopeless > 0).sum()), "rounds": int(findings.hopeless.sum())},
        "regret": regrets(findings, rounds),
        "margins": {
            name: margins(findings.margin[:, j]) for j, name in enumerate(terms.names[1 : 1 + findings.margin.shape[1]])
        },
        "settled": settled(findings.settled),
    }


def quantiles(values: Any) -> dict[str, float]:
    """Return the quantiles that are shown."""
    cuts = np.quantile(values, QUANTILES)
    return {f"{level:g}": float(cut) for level, cut in zip(QUANTILES, cuts, strict=True)}


def regrets(findings: Findings, rounds: Ints) -> dict[str, Any]:
    """Return quantiles of regret at every recorded round, and how often it was above what a theorem allows."""
    cuts = np.quantile(findings.regret, QUANTILES, axis=0)
    bounded = not np.isnan(findings.bound).any()
    return {
        "rounds": rounds.tolist(),
        "quantiles": {f"{level:g}": row.tolist() for level, row in zip(QUANTILES, cuts, strict=True)},
        "bound": np.median(findings.bound, axis=0).tolist() if bounded else None,
        "above": int((findings.regret > findings.bound).any(axis=1).sum()) if bounded else None,
    }


def margins(values: Floats) -> dict[str, Any]:
    """Return quantiles and a histogram of what was left to a threshold."""
    low, high = float(values.min()), float(values.max())
    room = max(0.02 * (high - low), 1e-3)  # a margin of exactly nothing is common, and would have no width
    counts, edges = np.histogram(values, bins=BARS, range=(min(low, 0.0) - room, max(high, 0.0) + room))
    return {"quantiles": quantiles(values), "counts": counts.tolist(), "edges": edges.tolist()}


def settled(values: Ints) -> dict[str, Any]:
    """Return when runs first gained nine tenths of what was possible, and how many never did."""
    reached = values[values > 0]
    return {"never": int((values == 0).sum()), "quantiles": None if reached.size == 0 else quantiles(reached)}
