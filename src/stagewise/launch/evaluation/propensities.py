"""How likely the log made every action: from its own columns, as said, or from how often each was played."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.log import NOTHING, Log
from stagewise.problem.checks import number
from stagewise.problem.columns import occurring
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import shown

FREQUENCIES = "frequencies"
ROUNDED = 1e-3  # by how much probabilities may miss a sum of 1: those that were written with three digits
NEEDED = (
    "evaluation needs a log that was drawn with known probabilities: columns 'probability.ACTION' or 'propensity', or "
    "for a randomised trial propensity=0.25 or propensity={'offer': 0.5, ...}; propensity='frequencies' takes how "
    "often each action was played, for a trial whose shares were lost"
)


@dataclass(frozen=True, eq=False)
class Propensities:
    """What the log drew from."""

    done: Floats
    """How likely (n,) what was done was."""
    every: Floats | None
    """How likely (n, K) every action was; None: only what was done is known."""
    source: str
    """Where this comes from, in words."""
    estimated: bool = False
    """Whether it was reckoned from the log itself."""


def propensities_of(log: Log, given: Any = None) -> Propensities:
    """Return what a log drew from, checked."""
    if given is None:
        return of_columns(log)
    if isinstance(given, str) and given == FREQUENCIES:
        counts = np.array([(log.actions == place).sum() for place in range(len(log.problem.actions))])
        known = max(int(counts.sum()), 1)
        return of_design(log, counts / known, "how often the log played each action", estimated=True)
    if isinstance(given, Mapping):
        return of_design(log, log.shares(given, "propensity", InvalidOutcome), "as said, by action")
    if isinstance(given, str):
        raise InvalidOutcome(f"propensity is {shown(given)}; it must be a number, shares by action, or 'frequencies'")
    return of_design(log, even_shares(log, number(given, "propensity", InvalidOutcome)), "as said, for every action")


def of_columns(log: Log) -> Propensities:
    """Return what the log's own columns say."""
    every, done = log.probabilities, log.propensities
    if every is None and done is None:
        raise InvalidOutcome(f"the log says of no row how likely its action was; {NEEDED}")
    known = log.actions != NOTHING
    if every is not None:
        check_range(every, "probability")
        sums = every.sum(axis=1)
        wrong = np.flatnonzero((sums > 1.0 + ROUNDED) | ((sums < 1.0 - ROUNDED) & (not had_others(log))))
        if wrong.size:
            raise InvalidOutcome(
                f"the probabilities of row {wrong[0]} add up to {sums[wrong[0]]:g}, and those of {wrong.size:,} rows "
                "do not to 1; each row needs what all its actions were drawn with"
            )
        drawn = np.where(known, every[np.arange(log.rows), log.actions], np.nan)
        if done is not None:
            apart = np.flatnonzero(known & ~(np.abs(drawn - done) <= ROUNDED))
            if apart.size:
                raise InvalidOutcome(
                    f"row {apart[0]} has propensity {done[apart[0]]:g}, and its action the probability "
                    f"{drawn[apart[0]]:g}; they must be the same, and are not in {apart.size:,} rows"
                )
        done = drawn
    else:
        check_range(np.asarray(done)[known], "propensity")
    assert done is not None
    check_possible(log, done)
    if every is None and len(log.problem.actions) == 2 and not had_others(log):
        every = np.where(log.actions[:, None] == np.arange(2), done[:, None], 1.0 - done[:, None])  # all the rest
    return Propensities(done, every, "the log's own columns")


def had_others(log: Log) -> bool:
    """Say whether the log may have drawn actions that the problem does not have: it did, or had several versions."""
    versions = np.asarray(log.arrays.get("version", ())).tolist()
    known = occurring(versions, "the column 'version'", InvalidOutcome)
    return bool((log.actions == NOTHING).any()) or len(known) > 1


def check_range(values: Floats, what: str) -> None:
    """Refuse what is no probability."""
    if np.isnan(values).any():
        count = int(np.isnan(values).any(axis=1).sum() if values.ndim > 1 else np.isnan(values).sum())
        raise InvalidOutcome(
            f"the log says nothing of the {what} in {count:,} rows; every row needs one, and leaving such rows out "
            "would weigh users by what was done to them"
        )
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    if low < 0.0 or high > 1.0 + 1e-9:
        wrong = low if low < 0.0 else high
        percent = "; 25 percent are 0.25" if 1.0 < wrong <= 100.0 else ""
        raise InvalidOutcome(f"there is a {what} of {wrong:g} in the log; it must lie between 0 and 1{percent}")


def check_possible(log: Log, done: Floats) -> None:
    """Refuse a log that did what it says it could not do."""
    never = np.flatnonzero((log.actions != NOTHING) & ~(done > 0.0))
    if never.size:
        name = log.problem.actions[log.actions[never[0]]]
        raise InvalidOutcome(
            f"row {never[0]} played {name!r}, which had the probability 0, and so did {never.size:,} rows in all; what "
            "was drawn had a probability above 0, so these are not the probabilities it was drawn with"
        )


def even_shares(log: Log, share: float) -> Floats:
    """Return the shares (K,) of a trial that gave the same to each of its actions."""
    played = np.array([(log.actions == place).any() for place in range(len(log.problem.actions))])
    for drawn in (np.ones_like(played), played):
        if abs(share * int(drawn.sum()) - 1.0) <= ROUNDED:
            return np.where(drawn, 1.0 / drawn.sum(), 0.0)
    if not 0.0 < share <= 1.0:
        raise InvalidOutcome(f"propensity is {share:g}; it is a probability: 25 percent are 0.25")
    raise InvalidOutcome(
        f"propensity is {share:g}; the log plays {int(played.sum())} of {played.size} actions, and so many times "
        f"{share:g} are not 1: give the share of each, as propensity={{'{log.problem.actions[0]}': 0.5, ...}}"
    )


def of_design(log: Log, shares: Floats, source: str, estimated: bool = False) -> Propensities:
    """Return what a design with fixed shares (K,) drew from."""
    check_range(shares, "propensity")
    if shares.sum() > 1.0 + ROUNDED or (not had_others(log) and shares.sum() < 1.0 - ROUNDED):
        raise InvalidOutcome(f"the shares of propensity add up to {shares.sum():g}; they must to 1")
    done = np.where(log.actions == NOTHING, np.nan, shares[log.actions])
    check_possible(log, done)
    every = np.broadcast_to(shares, (log.rows, shares.size))
    return Propensities(done, every, source, estimated)
