"""`doctor`: check a problem against a log, or propose a problem from one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stagewise.files.tables import read_table
from stagewise.launch.decision_log import RESERVED_NAMES, ColumnFinder, Log, resolve_problem
from stagewise.launch.doctor.checks.registry import CHECK_NAMES, TEST_COUNT, run_checks
from stagewise.launch.doctor.finding import CheckName, Finding, FindingVerdict
from stagewise.launch.doctor.holdout_split import DEFAULT_FRACTION, check_fraction, split_rows
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.log_report import LogReport
from stagewise.launch.doctor.proposing.problem_proposal import propose_problem
from stagewise.launch.doctor.proposing.roles import assign_roles
from stagewise.policies.problem import Problem
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_mapping, is_listing, list_entries
from stagewise.problem.columns import get_column, list_column_names
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr, suggest_name

ALPHA = 0.001


def doctor(
    log: Any,
    problem: Problem | str | Path | Mapping[str, Any] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    action: str | None = None,
    reward: str | None = None,
    limits: Sequence[str] | Mapping[str, float | None] | None = None,
    safe: str | None = None,
    delta: float = 0.05,
    fraction: float | None = DEFAULT_FRACTION,
    alpha: float = ALPHA,
    accept: Sequence[str] = (),
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
        fraction: The share of rows that a proposal is chosen from; the others are the holdout, to learn from. None
            uses all rows for both, and pays for that out of delta.
        alpha: The probability that a log without a fault contradicts any test.
        accept: Names of checks whose contradictions become notes.

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
        >>> problem = sw.Problem(actions=["today", "offer"], safe="today", reward=sw.Reward("click"),
        ...                      limits={"opt_out": sw.Limit(0.002)})
        >>> report = sw.doctor(log, problem)
        >>> report.contradicted, str(report["safe_action"].verdict)
        (True, 'contradicts')
    """
    alpha = check_probability(alpha, "alpha")
    accepted = parse_accepted(accept)
    mapping = {} if columns is None else check_mapping(columns, "columns", InvalidOutcome)
    if problem is not None:
        if any(given is not None for given in (action, reward, limits, safe)):
            raise InvalidOutcome(
                ErrorCode.CONFLICTING_SETTINGS,
                "action, reward, limits and safe describe a proposed problem; leave them out, since the "
                "problem is given",
            )
        return build_log_report(Log.of(log, resolve_problem(problem), columns=mapping), mapping, alpha, accepted)
    if check_probability(delta, "delta") >= 0.5:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "delta is {delta:g}; it is the probability of failure, so 95 % confidence is 0.05",
            delta=delta,
        )
    share, table = check_fraction(fraction), read_table(log)
    arrays = {name: get_column(table, name, "the log") for name in list_column_names(table, InvalidFile)}
    sizes = {array.size for array in arrays.values()}
    if len(sizes) != 1 or not max(sizes):
        raise InvalidOutcome(
            ErrorCode.WRONG_SHAPE,
            "the log has no rows, or its columns differ in length; every column needs one value per row",
        )
    finder = ColumnFinder(arrays, mapping)
    finder.refuse_unknown(
        RESERVED_NAMES, "; the others are given by reward=, limits= and safe=, or --reward, --limit and --safe"
    )
    ignored = [mapping.get(name) for name in ("propensity", "at")]
    roles = assign_roles(arrays, mapping.get("action", action), reward, limits, safe, ignored)
    proposal = propose_problem(arrays, roles, split_rows(max(sizes), finder.times(), share), float(delta), alpha)
    mapping = {**mapping, **proposal.columns}
    proposal = replace(proposal, columns=mapping)
    all_rows = Log.of({**arrays, **roles.numbers, **roles.outcomes}, proposal.problem, columns=mapping)
    holdout = replace(all_rows, columns=arrays).take(proposal.split.holdout)
    report = build_log_report(all_rows, mapping, alpha, accepted, None if share == 1.0 else holdout)
    return replace(report, findings=proposal.add_notes(report.findings), proposal=proposal, holdout=holdout)


def build_log_report(
    log: Log, columns: dict[str, str], alpha: float, accepted: tuple[CheckName, ...], holdout: Log | None = None
) -> LogReport:
    """Return the report of all checks; what is declared of the safe action is checked on the holdout rows too."""
    found = run_checks(LogProfile(log, columns), alpha, None if holdout is None else LogProfile(holdout, columns))
    findings = tuple(apply_acceptance(finding, accepted) for finding in found)
    return LogReport(findings, log.problem, log, log, alpha, TEST_COUNT, columns)


def apply_acceptance(finding: Finding, accepted: tuple[CheckName, ...]) -> Finding:
    """Return a finding, as a note if it contradicts and its check is accepted."""
    if finding.verdict is not FindingVerdict.CONTRADICTS or finding.check not in accepted:
        return finding
    return replace(finding, verdict=FindingVerdict.NOTE, accepted=True)


def parse_accepted(value: Any) -> tuple[CheckName, ...]:
    """Return the names of accepted checks."""
    if isinstance(value, str) or not is_listing(value):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "accept is {value}; it must be a list of checks, chosen from {check_names}",
            value=safe_repr(value),
            check_names=", ".join(CHECK_NAMES),
        )
    names = list_entries(value, "accept", InvalidOutcome)
    for name in names:
        if not isinstance(name, str) or name not in CHECK_NAMES:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_NAME,
                "accept has {name}, which is not a check; the checks are {check_names}{name_2}",
                name=safe_repr(name),
                check_names=", ".join(CHECK_NAMES),
                name_2=suggest_name(name, CHECK_NAMES),
            )
    return tuple(CheckName(name) for name in names)
