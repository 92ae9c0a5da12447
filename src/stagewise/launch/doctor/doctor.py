"""Are these numbers right? A log is held against a problem, or a problem is proposed from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stagewise.files.tables import table_at
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.all import NAMES, TESTS, examined
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.proposing.proposal import proposed
from stagewise.launch.doctor.proposing.roles import roles_of
from stagewise.launch.doctor.report import Diagnosis
from stagewise.launch.doctor.splitting import HALF, share_of, split
from stagewise.launch.log import TOLD, Finder, Log, problem_of
from stagewise.policies.problem import Problem
from stagewise.policies.settings import probability
from stagewise.problem.checks import entries_of, is_listing, mapping_of, shown
from stagewise.problem.columns import listed_names, named_column
from stagewise.problem.errors import InvalidFile, InvalidOutcome, InvalidProblem
from stagewise.problem.words import nearest

ALPHA = 0.001


def doctor(
    log: Any,
    problem: Problem | str | Path | Mapping[str, Any] | None = None,
    *,
    names: Mapping[str, str] | None = None,
    action: str | None = None,
    reward: str | None = None,
    limits: Sequence[str] | Mapping[str, float | None] | None = None,
    safe: str | None = None,
    delta: float = 0.05,
    share: float | None = HALF,
    alpha: float = ALPHA,
    accept: Sequence[str] = (),
) -> Diagnosis:
    """Check a problem against a log, or propose one from it (docs/how-to/check-a-log.md).

    Args:
        log: A file (.csv, .parquet, .jsonl) or a frame of pandas, polars or Arrow, or a mapping of columns.
        problem: What the log is held against, or its TOML file; None: one is proposed from part of the rows.
        names: Which columns hold what the problem has another name for; "action", "propensity" and "at" too.
        action: For a proposal, the column of the actions; None: guessed, and said so. So for the next three.
        reward: The column of the reward.
        limits: The columns that have limits, with the limits where these are known.
        safe: The action that is done today.
        delta: The chance of failure that a proposal may have in all.
        share: The share of rows that a proposal is chosen from, the others being left to learn from; None: all rows,
            and what that costs is taken from delta.
        alpha: The chance that a log without a fault raises any alarm.
        accept: Checks whose contradictions are noted only.

    >>> import numpy as np
    >>> chance = np.random.default_rng(1)
    >>> sent = chance.integers(0, 2, 4000)
    >>> told = {"action": np.array(["today", "offer"])[sent], "click": chance.random(4000) < 0.05 + 0.05 * sent,
    ...         "opt_out": chance.random(4000) < 0.01}
    >>> from stagewise import Limit, Problem, Reward
    >>> found = doctor(told, Problem(actions=["today", "offer"], safe="today", reward=Reward("click"),
    ...                              limits={"opt_out": Limit(0.002)}))
    >>> found.contradicted, found["safe action"].verdict
    (True, 'contradicts')
    """
    spent = probability(alpha, "alpha")
    known = accepted(accept)
    called = {} if names is None else mapping_of(names, "names", InvalidOutcome)
    if problem is not None:
        if any(given is not None for given in (action, reward, limits, safe)):
            raise InvalidOutcome("action, reward, limits and safe are for a proposal; here the problem says them")
        return diagnosed(Log.of(log, problem_of(problem), names=called), called, spent, known)
    if probability(delta, "delta") >= 0.5:
        raise InvalidProblem(f"delta is {delta:g}; it is the chance of failure, so that 95 % confidence is 0.05")
    part, columns = share_of(share), table_at(log)
    arrays = {name: named_column(columns, name, "the log") for name in listed_names(columns, InvalidFile)}
    sizes = {array.size for array in arrays.values()}
    if len(sizes) != 1 or not max(sizes):
        raise InvalidOutcome("the log has no rows, or columns of several lengths; every column needs a value a row")
    find = Finder(arrays, called)
    find.refuse_unknown(TOLD, "; the others are told by reward=, limits= and safe=, or --reward, --limit and --safe")
    apart = [called.get(name) for name in ("propensity", "at")]
    roles = roles_of(arrays, called.get("action", action), reward, limits, safe, apart)
    made = proposed(arrays, roles, split(max(sizes), find.times(), part), float(delta), spent)
    told = {**called, **made.names}
    made = replace(made, names=told)
    whole = Log.of({**arrays, **roles.numbers, **roles.outcomes}, made.problem, names=told)
    left = replace(whole, columns=arrays).taken(made.split.left)
    found = diagnosed(whole, told, spent, known, None if part == 1.0 else left)
    return replace(found, findings=made.noted(found.findings), proposal=made, rest=left)


def diagnosed(
    log: Log, names: dict[str, str], alpha: float, accept: tuple[str, ...], fresh: Log | None = None
) -> Diagnosis:
    """Return what all checks find in a log; what is declared of the safe action is held against fresh rows too."""
    found = examined(Chart(log, names), alpha, None if fresh is None else Chart(fresh, names))
    findings = tuple(softened(finding, accept) for finding in found)
    return Diagnosis(findings, log.problem, log, log, alpha, TESTS, names)


def softened(finding: Finding, accept: tuple[str, ...]) -> Finding:
    """Return a finding, noted only where its check is accepted."""
    if finding.verdict != "contradicts" or finding.name not in accept:
        return finding
    return replace(finding, verdict="note", remedy=f"accepted; else: {finding.remedy}")


def accepted(value: Any) -> tuple[str, ...]:
    """Return names of checks."""
    if isinstance(value, str) or not is_listing(value):
        raise InvalidOutcome(f"accept is {shown(value)}; it must be a list of checks, which are {', '.join(NAMES)}")
    names = entries_of(value, "accept", InvalidOutcome)
    for name in names:
        if not isinstance(name, str) or name not in NAMES:
            raise InvalidOutcome(f"accept names {shown(name)}; the checks are {', '.join(NAMES)}{nearest(name, NAMES)}")
    return tuple(names)
