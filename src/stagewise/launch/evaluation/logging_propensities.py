"""The probabilities that the log was drawn with: from its columns, as given, or estimated from frequencies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log
from stagewise.problem.checks import check_number
from stagewise.problem.columns import list_unique_names
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr

FREQUENCIES = "frequencies"
SUM_TOLERANCE = 1e-3  # of a sum of probabilities that were rounded to three digits
NEEDED_MESSAGE = (
    "evaluation needs a log that was drawn with known probabilities: columns 'probability.ACTION' or 'propensity', or "
    "for a randomised trial propensity=0.25 or propensity={'offer': 0.5, ...}; propensity='frequencies' takes how "
    "often each action was played, for a trial whose shares were lost"
)


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probabilities that the log was drawn with."""

    logged: Floats
    """The probability (n,) of the action taken."""
    all_actions: Floats | None
    """The probability (n, K) of every action; None if only that of the action taken is known."""
    source: str
    """Where they come from."""
    is_estimated: bool = False
    """Whether they were estimated from the log."""


def resolve_propensities(log: Log, given: Any = None) -> Propensities:
    """Return the probabilities that a log was drawn with, checked."""
    if given is None:
        return read_propensities(log)
    if isinstance(given, str) and given == FREQUENCIES:
        counts = np.array([(log.actions == index).sum() for index in range(len(log.problem.actions))])
        known = max(int(counts.sum()), 1)
        return build_design_propensities(
            log, counts / known, "frequencies of the actions in the log", is_estimated=True
        )
    if isinstance(given, Mapping):
        return build_design_propensities(
            log, log.parse_shares(given, "propensity", InvalidOutcome), "as given, by action"
        )
    if isinstance(given, str):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "propensity is {given}; it must be a number, a mapping from actions to shares, or 'frequencies'",
            given=safe_repr(given),
        )
    return build_design_propensities(
        log,
        compute_uniform_shares(log, check_number(given, "propensity", InvalidOutcome)),
        "as given, for every action",
    )


def read_propensities(log: Log) -> Propensities:
    """Return the probabilities in the log's columns."""
    all_actions, logged = log.probabilities, log.propensities
    if all_actions is None and logged is None:
        raise InvalidOutcome(
            ErrorCode.PROPENSITY_MISSING,
            "the log has no propensities, the probabilities of the logged actions; {needed_message}",
            needed_message=NEEDED_MESSAGE,
        )
    known = log.actions != UNKNOWN_ACTION
    if all_actions is not None:
        check_range(all_actions, "probability")
        sums = all_actions.sum(axis=1)
        wrong = np.flatnonzero(
            (sums > 1.0 + SUM_TOLERANCE) | ((sums < 1.0 - SUM_TOLERANCE) & (not has_other_actions(log)))
        )
        if wrong.size:
            raise InvalidOutcome(
                ErrorCode.INVALID_PROBABILITY,
                "the probabilities of row {row} sum to {total:g}, and those of {size:,} rows do not sum "
                "to 1; every row needs the probabilities of all actions",
                row=wrong[0],
                total=sums[wrong[0]],
                size=wrong.size,
            )
        taken = np.where(known, all_actions[np.arange(log.rows), log.actions], np.nan)
        if logged is not None:
            different = np.flatnonzero(known & ~(np.abs(taken - logged) <= SUM_TOLERANCE))
            if different.size:
                raise InvalidOutcome(
                    ErrorCode.INVALID_PROBABILITY,
                    "row {row} has propensity {propensity:g}, and its action has probability {probability:g}; they "
                    "must be equal, and they differ in {size:,} rows",
                    row=different[0],
                    propensity=logged[different[0]],
                    probability=taken[different[0]],
                    size=different.size,
                )
        logged = taken
    else:
        check_range(np.asarray(logged)[known], "propensity")
    assert logged is not None
    check_possible(log, logged)
    if all_actions is None and len(log.problem.actions) == 2 and not has_other_actions(log):
        all_actions = np.where(
            log.actions[:, None] == np.arange(2), logged[:, None], 1.0 - logged[:, None]
        )  # the complement
    return Propensities(logged, all_actions, "the log's own columns")


def has_other_actions(log: Log) -> bool:
    """Say whether the log may have drawn actions that are not in the problem: it has some, or several versions."""
    versions = np.asarray(log.arrays.get("version", ())).tolist()
    known = list_unique_names(versions, "the column 'version'", InvalidOutcome)
    return bool((log.actions == UNKNOWN_ACTION).any()) or len(known) > 1


def check_range(values: Floats, what: str) -> None:
    """Reject values that are not probabilities."""
    if np.isnan(values).any():
        count = int(np.isnan(values).any(axis=1).sum() if values.ndim > 1 else np.isnan(values).sum())
        raise InvalidOutcome(
            ErrorCode.PROPENSITY_MISSING,
            "the log lacks the {what} in {count:,} rows; every row needs one, since dropping these "
            "rows would bias the estimate",
            what=what,
            count=count,
        )
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    if low < 0.0 or high > 1.0 + 1e-9:
        wrong = low if low < 0.0 else high
        percent = "; 25 percent are 0.25" if 1.0 < wrong <= 100.0 else ""
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "the log has a {what} of {wrong:g}; it must be between 0 and 1{percent}",
            what=what,
            wrong=wrong,
            percent=percent,
        )


def check_possible(log: Log, logged: Floats) -> None:
    """Reject a log that took an action whose probability is 0."""
    impossible = np.flatnonzero((log.actions != UNKNOWN_ACTION) & ~(logged > 0.0))
    if impossible.size:
        name = log.problem.actions[log.actions[impossible[0]]]
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "row {row} played {name!r}, whose logged probability is 0, as in {size:,} rows in all; "
            "a played action has a probability above 0",
            row=impossible[0],
            name=name,
            size=impossible.size,
        )


def compute_uniform_shares(log: Log, share: float) -> Floats:
    """Return the shares (K,) of a trial with equal shares."""
    played = np.array([(log.actions == index).any() for index in range(len(log.problem.actions))])
    for taken in (np.ones_like(played), played):
        if abs(share * int(taken.sum()) - 1.0) <= SUM_TOLERANCE:
            return np.where(taken, 1.0 / taken.sum(), 0.0)
    if not 0.0 < share <= 1.0:
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "propensity is {share:g}; it must be a probability, with 25 percent written as 0.25",
            share=share,
        )
    raise InvalidOutcome(
        ErrorCode.INVALID_PROBABILITY,
        "propensity is {share:g}; the log plays {played} of {size} actions, and {share:g} for "
        "each does not sum to 1, so give each share, as propensity={{'{actions}': 0.5, ...}}",
        share=share,
        played=int(played.sum()),
        size=played.size,
        actions=log.problem.actions[0],
    )


def build_design_propensities(log: Log, shares: Floats, source: str, is_estimated: bool = False) -> Propensities:
    """Return the probabilities of a design with fixed shares (K,)."""
    check_range(shares, "propensity")
    if shares.sum() > 1.0 + SUM_TOLERANCE or (not has_other_actions(log) and shares.sum() < 1.0 - SUM_TOLERANCE):
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "the shares in propensity sum to {total:g}; they must sum to 1",
            total=shares.sum(),
        )
    logged = np.where(log.actions == UNKNOWN_ACTION, np.nan, shares[log.actions])
    check_possible(log, logged)
    all_actions = np.broadcast_to(shares, (log.rows, shares.size))
    return Propensities(logged, all_actions, source, is_estimated)
