"""`check_log`: check a problem against a log, or propose a problem from one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.files.tables import read_table
from stagewise.launch.decision_log import RESERVED_NAMES, ColumnFinder, Log, resolve_problem
from stagewise.launch.doctor import number_checks, rate_checks, row_checks
from stagewise.launch.doctor import rate_checks as mismatch_check
from stagewise.launch.doctor.column_roles import assign_roles
from stagewise.launch.doctor.findings import CheckName, Finding, FindingVerdict, select_most_severe
from stagewise.launch.doctor.log_profile import DEFAULT_FRACTION, LogProfile, Split, check_fraction
from stagewise.launch.doctor.log_report import LogReport
from stagewise.launch.doctor.problem_proposal import propose_problem
from stagewise.policies.problem import Problem
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_mapping, is_listing, list_entries
from stagewise.problem.columns import get_column, list_column_names
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome, InvalidProblem

ALPHA = 0.001


class Check(NamedTuple):
    """How a check finds, and whether it is a test, which chance can make contradict."""

    run: Callable[[LogProfile, float], Iterator[Finding]]
    is_test: bool = True


CHECKS = {  # in the order of the report
    CheckName.ACTIONS: Check(row_checks.check_actions, is_test=False),
    CheckName.RANGES: Check(row_checks.check_ranges, is_test=False),
    CheckName.UNITS: Check(row_checks.check_units, is_test=False),
    CheckName.DUPLICATES: Check(row_checks.check_duplicates),
    CheckName.PROPENSITIES: Check(row_checks.check_propensities),
    CheckName.MISSING_VALUES: Check(row_checks.check_missing_values),
    CheckName.OUTCOME_GAPS: Check(row_checks.check_outcome_gaps),
    CheckName.SAMPLE_SIZE: Check(rate_checks.check_sample_size, is_test=False),
    CheckName.SAFE_ACTION: Check(rate_checks.check_safe_action),
    CheckName.DECLARED_SAFE: Check(rate_checks.check_declared_safe),
    CheckName.LOOSE_LIMITS: Check(rate_checks.check_loose_limits),
    CheckName.LEAKAGE: Check(number_checks.check_leakage),
    CheckName.MODEL_FORM: Check(number_checks.check_model_form),
    CheckName.MISMATCH: Check(mismatch_check.check_mismatch),
    CheckName.NORM_BOUND: Check(number_checks.check_norm_bound),
    CheckName.SEGMENTS: Check(rate_checks.check_segments),
    CheckName.FEATURES: Check(number_checks.check_features, is_test=False),
    CheckName.DRIFT: Check(rate_checks.check_drift),
}
# Checks that agree with a proposal by construction, on the rows that it is chosen from.
HOLDOUT_CHECKS = (CheckName.SAFE_ACTION, CheckName.DECLARED_SAFE)
TEST_COUNT = sum(check.is_test for check in CHECKS.values())


def check_log(
    log: Any,
    problem: Problem | str | Path | Mapping[str, Any] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    action: str | None = None,
    reward: str | None = None,
    limits: Sequence[str] | Mapping[str, float | None] | None = None,
    safe: str | None = None,
    delta: float = 0.05,
    proposal_fraction: float | None = DEFAULT_FRACTION,
    alpha: float = ALPHA,
    ignore_checks: Sequence[str] = (),
    as_of: Any = None,
) -> LogReport:
    """Check a problem against a log, or propose a problem from a log (docs/how-to/check-a-log.md).

    Args:
        log: A file (.csv, .parquet, .jsonl), a frame of pandas, polars or Arrow, or a mapping of columns.
        problem: The problem to check, or its TOML file; None proposes one from part of the rows.
        columns: Column mapping from names of the problem to columns of the log; also "action", "propensity" and "at".
        action: For a proposal, the column of the actions; None guesses it and reports the guess, as for the next three.
        reward: For a proposal, the column of the reward.
        limits: For a proposal, the columns that have limits, with the limits where they are known.
        safe: For a proposal, the action in use today.
        delta: The probability of failure that a proposal may have in all.
        proposal_fraction: The share of rows that a proposal is chosen from; the others are the holdout, to learn from.
            None uses all rows for both, and pays for that out of delta.
        alpha: The probability that a log without a fault contradicts any test.
        ignore_checks: Names of checks whose contradictions become notes.
        as_of: With a problem, when the log was read, in seconds since 1970 or a datetime: windows that closed by then
            are closed. None: at its last row.

    Returns:
        The findings, and the proposal if no problem was given.

    Raises:
        InvalidOutcome: The log, a column or an argument cannot be used.
        InvalidFile: The file cannot be read.
        InvalidProblem: `delta` or the problem is invalid.

    Example:
        >>> import numpy as np
        >>> import stagewise as sw
        >>> random = np.random.default_rng(1)
        >>> sent = random.integers(0, 2, 4000)
        >>> log = {"action": np.array(["today", "offer"])[sent], "click": random.random(4000) < 0.05 + 0.05 * sent,
        ...        "opt_out": random.random(4000) < 0.01}
        >>> problem = sw.Problem(action_names=["today", "offer"], safe_name="today", reward=sw.Reward("click"),
        ...                      limits={"opt_out": sw.Limit(0.002)})
        >>> report = sw.check_log(log, problem)
        >>> report.contradicted, str(report["safe_action"].verdict)
        (True, 'contradicts')
    """
    alpha = check_probability(alpha, "alpha")
    accepted = parse_ignored(ignore_checks)
    mapping = {} if columns is None else check_mapping(columns, "columns", InvalidOutcome)
    if problem is not None:
        if any(given is not None for given in (action, reward, limits, safe)):
            raise InvalidOutcome(
                ErrorCode.CONFLICTING_SETTINGS,
                "action, reward, limits and safe describe a proposed problem; leave them out, since the "
                "problem is given",
            )
        rows = Log.of(log, resolve_problem(problem), columns=mapping)
        return build_log_report(replace(rows, read_at=rows.read_time(as_of)), mapping, alpha, accepted)
    if as_of is not None:
        text = "as_of is given without a problem, which declares the windows; give the problem, or leave as_of out"
        raise InvalidOutcome(ErrorCode.CONFLICTING_SETTINGS, text)
    if check_probability(delta, "delta") >= 0.5:
        rule = "below 0.5: it is the probability of failure, so 95 % confidence is 0.05"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "delta", delta, rule)
    share, table = check_fraction(proposal_fraction), read_table(log)
    arrays = {name: get_column(table, name, "the log") for name in list_column_names(table, InvalidFile)}
    sizes = {array.size for array in arrays.values()}
    if len(sizes) != 1 or not max(sizes):
        text = "the log has no rows, or its columns differ in length; every column needs one value per row"
        raise InvalidOutcome(ErrorCode.WRONG_SHAPE, text)
    finder = ColumnFinder(arrays, mapping)
    finder.refuse_unknown(
        RESERVED_NAMES, "; the others are given by reward=, limits= and safe=, or --reward, --limit and --safe"
    )
    ignored = [mapping.get(name) for name in ("propensity", "at")]
    roles = assign_roles(arrays, mapping.get("action", action), reward, limits, safe, ignored)
    proposal = propose_problem(arrays, roles, Split.of(max(sizes), finder.times(), share), float(delta), alpha)
    mapping = {**mapping, **proposal.columns}
    proposal = replace(proposal, columns=mapping)
    all_rows = Log.of({**arrays, **roles.numbers, **roles.outcomes}, proposal.problem, columns=mapping)
    holdout = replace(all_rows, columns=arrays).take(proposal.split.holdout)
    report = build_log_report(all_rows, mapping, alpha, accepted, None if share == 1.0 else holdout)
    return replace(report, findings=proposal.add_notes(report.findings), proposal=proposal, holdout=holdout)


def build_log_report(
    log: Log, columns: dict[str, str], alpha: float, accepted: list[str], holdout: Log | None = None
) -> LogReport:
    """Return the report of all checks; what is declared of the safe action is checked on the holdout rows too."""
    found = run_checks(LogProfile(log, columns), alpha, None if holdout is None else LogProfile(holdout, columns))
    findings = tuple(
        replace(finding, verdict=FindingVerdict.NOTE, accepted=True)
        if finding.verdict is FindingVerdict.CONTRADICTS and finding.check in accepted
        else finding
        for finding in found
    )
    return LogReport(findings, log.problem, log, log, alpha, TEST_COUNT, columns)


def run_checks(profile: LogProfile, alpha: float, holdout: LogProfile | None = None) -> Iterator[Finding]:
    """Yield the finding of every check; the tests share alpha equally.

    If a problem is chosen from some of the rows, the checks that agree with the choice by construction run on the
    holdout rows too, each at half of its share.
    """
    share = alpha / TEST_COUNT
    for name, check in CHECKS.items():
        on_both = holdout is not None and name in HOLDOUT_CHECKS
        if holdout is not None and on_both:
            found = select_most_severe(check.run(holdout, 0.5 * share))
            if found.verdict is FindingVerdict.CONTRADICTS:
                yield replace(found, in_holdout=True)
                continue
        yield select_most_severe(check.run(profile, 0.5 * share if on_both else share))


def parse_ignored(value: Any) -> list[str]:
    """Return the names of ignored checks."""
    names = [str(name) for name in CheckName]
    if isinstance(value, str) or not is_listing(value):
        rule = f"a list of checks, chosen from {', '.join(names)}"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "ignore_checks", value, rule)
    given = list_entries(value, "ignore_checks", InvalidOutcome)
    for name in given:
        if not isinstance(name, str) or name not in names:
            raise InvalidOutcome.must_be_one_of(ErrorCode.UNKNOWN_NAME, "a check in ignore_checks", name, names)
    return given
