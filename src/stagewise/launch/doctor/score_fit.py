"""A risk score that is fitted to part of a log; the other rows are to learn from."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.files.tables import format_table
from stagewise.launch.decision_log import Log, resolve_problem
from stagewise.launch.doctor.log_profile import DEFAULT_FRACTION, LogProfile, Split, check_fraction
from stagewise.launch.doctor.problem_proposal import to_toml_key, to_toml_value
from stagewise.launch.statistics import fit_logistic
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_integer, check_mapping, check_name
from stagewise.problem.division import MOST_BUCKETS, RiskScore, ScoreDivision, build_score_terms
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem

MIN_EVENTS = 20  # summed outcomes that a fit needs
DIGITS = 6  # of weights and cuts
WEAK, SHRINKAGE = 0.01, 4.0  # precisions of the priors of constants, and of slopes in log-odds over half a range


class RiskScoreFit(NamedTuple):
    """A problem whose limit is promised to every bucket of a score that was fitted to part of a log."""

    problem: Problem
    score: RiskScore
    rows: int
    """The number of rows that the score was fitted to."""
    events: float
    """The sum of their outcomes, scaled to [0, 1]."""
    holdout: Log
    """The other rows. Learn these, and not those that the score was fitted to."""

    def to_toml(self) -> str:
        """Return the problem as TOML, which `Problem.load` reads."""
        return "\n".join(format_tables(self.problem.to_dict())) + "\n"

    def format_holdout(self, suffix: str) -> bytes:
        """Return the holdout rows as a file: ".csv", ".parquet" or ".jsonl"."""
        return format_table(self.holdout.arrays, suffix)

    def __str__(self) -> str:
        weights = ", ".join(f"{name} {weight:+.4g}" for name, weight in self.score.terms)
        return (
            f"{self.score.name!r} was fitted to {self.rows:,} rows with {self.events:,.0f} events: {weights}\n"
            f"{len(self.score.bucket_names)} buckets: {', '.join(self.score.bucket_names)}\n"
            f"learn the other {self.holdout.rows:,} rows only"
        )


def fit_risk_score(
    log: Any,
    problem: Any,
    limit: str,
    *,
    name: str | None = None,
    buckets: int = 10,
    fraction: float = DEFAULT_FRACTION,
    columns: Mapping[str, str] | None = None,
) -> RiskScoreFit:
    """Fit a risk score to part of a log, by a logistic regression on the context.

    Numbers, booleans and dates have a weight each, in their own units, and so has every level of a category but the
    first. Values beyond their range, missing ones and undeclared levels count as the problem declares; other rows with
    them are left out of the fit.

    Args:
        log: A file (.csv, .parquet, .jsonl), a frame of pandas, polars or Arrow, or a mapping of columns.
        problem: The problem, or its TOML file.
        limit: The limit that is to be promised to every bucket of the score.
        name: The name of the score; None: "risk".
        buckets: The number of buckets, each with as many of these rows.
        fraction: The share of rows that the score is fitted to: the earliest, or without times by a hash.
        columns: Column mapping from names of the problem to columns of the log; also "action" and "at".

    Returns:
        The score, the problem with it, and the rows to learn from.

    Raises:
        InvalidProblem: There is no such limit, or nothing is declared of users.
        InvalidOutcome: The log has too few events, or an argument cannot be used.

    Example:
        >>> import numpy as np
        >>> import stagewise as sw
        >>> problem = sw.Problem(action_names=["a", "b"], safe_name="a", context=["age"], reward=sw.Reward("click"),
        ...                      limits={"opt_out": sw.Limit(0.1, model="rates")})
        >>> random = np.random.default_rng(1)
        >>> age = random.uniform(-1.0, 1.0, 4000)
        >>> log = {"action": np.array(["a", "b"])[random.integers(0, 2, 4000)], "age": age,
        ...        "click": np.zeros(4000), "opt_out": random.random(4000) < 0.05 + 0.04 * age}
        >>> fitted = sw.fit_risk_score(log, problem, "opt_out", buckets=3)
        >>> fitted.problem.promises["opt_out"], fitted.score.terms[0][1] > 0.0
        ("promised to the average user of every bucket of 'risk', if means do not fall with it", True)
    """
    declared, mapping = resolve_problem(problem), {} if columns is None else check_mapping(columns, "columns")
    if not isinstance(limit, str) or limit not in declared.limits:
        raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_NAME, "the limit", limit, list(declared.limits))
    if not declared.context_columns:
        text = "the context declares no number, boolean, date or category, so there is nothing to fit a score to"
        raise InvalidProblem(ErrorCode.MISSING_VALUE, text)
    called = "risk" if name is None else check_name(name, "the name of a score")
    parts = check_integer(buckets, "buckets", f"from 2 to {MOST_BUCKETS}", 2, MOST_BUCKETS)
    rows = Log.of(log, declared, columns=mapping)
    selection = Split.of(rows.rows, rows.at, check_fraction(fraction)).selection
    profile = LogProfile(rows.take(selection), mapping)
    signal = next(one for one in profile.signals if one.name == limit)
    usable = signal.observed & profile.log.complete_contexts
    outcomes = signal.scaled[usable] if not declared.limits[limit].at_least else 1.0 - signal.scaled[usable]
    if not MIN_EVENTS <= outcomes.sum() <= outcomes.size - MIN_EVENTS:
        template = "{limit!r} has {events:g} events in the {rows:,} rows of the fit; a score needs {least} at least"
        data = {"limit": limit, "events": float(outcomes.sum()), "rows": int(outcomes.size), "least": MIN_EVENTS}
        raise InvalidOutcome(ErrorCode.LOG_TOO_SHORT, template, **data)
    weights = fit_weights(profile, usable, outcomes)
    totals = compute_totals(profile, RiskScore(called, cuts=[0.0], weights=weights))[usable]
    points = np.unique(np.round(np.quantile(totals, np.linspace(0.0, 1.0, parts + 1)[1:-1]), DIGITS))
    score = RiskScore(
        called, cuts=points.tolist(), weights=weights, rows_digest=compute_digest(profile, usable, outcomes)
    )
    score = replace(score, digest=score.compute_digest())
    changed = replace(declared.limits[limit], model=None, by=None, score=score)
    made = replace(declared, limits={**declared.limits, limit: changed})
    return RiskScoreFit(made, score, int(outcomes.size), float(outcomes.sum()), rows.take(~selection))


def fit_weights(profile: LogProfile, usable: Any, outcomes: Floats) -> dict[str, float]:
    """Return the weights of numbers, in their own units, and of levels beside the first; actions have constants."""
    problem, actions = profile.log.problem, profile.log.actions[usable]
    constants, slopes_of = actions[:, None] == np.unique(actions), profile.design[usable, 1:]
    prior = np.repeat([WEAK, SHRINKAGE], [constants.shape[1], slopes_of.shape[1]])
    slopes = fit_logistic(np.column_stack([constants, slopes_of]), outcomes, prior)[constants.shape[1] :]
    ends = problem.ends
    weights = slopes[: len(ends)] * 2.0 / (ends[:, 1] - ends[:, 0])
    fitted = dict(zip(problem.numbers, weights, strict=True))
    for name, category, *_, at in problem.category_slots:
        each = category.features @ slopes[at]
        fitted |= {f"{name}={label}": one - each[0] for label, one in zip(category.labels[1:], each[1:], strict=True)}
    return {name: float(f"{weight:.{DIGITS}g}") for name, weight in fitted.items()}


def compute_totals(profile: LogProfile, score: RiskScore) -> Floats:
    """Return the scores (n,) of all rows, as decisions compute them."""
    terms = build_score_terms(score, profile.log.problem.context_columns)
    return ScoreDivision((), score, terms).compute_totals(profile.log.readings)


def compute_digest(profile: LogProfile, usable: Any, outcomes: Floats) -> str:
    """Return the SHA-256 of the rows of a fit."""
    parts = profile.log.actions[usable], profile.design[usable], outcomes
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def format_tables(content: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the lines of nested settings as TOML."""
    lines = [f"[{path}]"] * bool(path)
    plain = {key: value for key, value in content.items() if value is not None and not isinstance(value, Mapping)}
    lines += [f"{to_toml_key(key)} = {to_toml_value(value)}" for key, value in plain.items()]
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            lines += ["", *format_tables(value, f"{path}.{to_toml_key(key)}" if path else to_toml_key(key))]
    return lines
