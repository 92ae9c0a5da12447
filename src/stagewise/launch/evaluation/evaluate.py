"""`evaluate`: off-policy evaluation of a candidate, the log's own policy and the safe action."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from stagewise.engine.compile import Flags
from stagewise.launch.decision_log import Log, resolve_problem
from stagewise.launch.evaluation.candidates import needs_context, resolve_candidate
from stagewise.launch.evaluation.evaluation_report import Evaluation
from stagewise.launch.evaluation.log_evaluator import LogEvaluator
from stagewise.launch.evaluation.logging_propensities import resolve_propensities
from stagewise.launch.evaluation.row_order import compute_row_order, may_be_adaptive
from stagewise.launch.evaluation.weights import LOGGING_POLICY, Weights, build_logging_weights, compute_weights
from stagewise.launch.notes import Note, NoteCode
from stagewise.policies.problem import Problem
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_choice, check_integer, list_entries
from stagewise.problem.errors import ErrorCode, InvalidOutcome

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


def evaluate(
    log: Any,
    problem: Problem | str | Path,
    candidate: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    propensity: Any = None,
    estimators: Sequence[Estimator] = ESTIMATORS,
    primary_estimator: Literal["dr", "ips"] = "dr",
    delta: float | None = None,
    weight_bound: float | None = None,
    folds: int | None = None,
    now: Any = None,
) -> Evaluation:
    """Evaluate a candidate policy on a log (off-policy evaluation): its reward and every limit, with intervals.

    Rows count in the order of their times, "at", and in a random order if there are none: the order in the file does
    not matter. Without times, and with probabilities that differ between rows, limits are decided by "ips".

    Args:
        log: A file (.csv, .parquet, .jsonl), such as a server's export, a data frame, or a mapping of columns.
        problem: The problem, or the TOML file that declares it.
        candidate: The policy to evaluate: an action's name (always taken), shares by action, probabilities (rows,
            actions), a prefix of columns, a function from a context to an action or to probabilities by name, a
            problem, an agent or the file of a saved one (it decides and does not learn); None: the log's own policy.
        columns: Column mapping from names of the problem, "action" or "propensity" to columns of the log.
        propensity: The probabilities of actions if the log has none: a number for a uniform trial, shares by action,
            or "frequencies".
        estimators: Some of "ips", "snips" and "dr"; the primary one is always among them.
        primary_estimator: The estimator that decides on limits, "dr" or "ips"; choose it before you look at outcomes.
            With `folds` it is "ips".
        delta: The intervals of all signals hold at once with probability 1 − delta; None: the problem's own delta.
        weight_bound: Where to clip weights; None: it follows from the log's probabilities.
        folds: The number of folds of a cross-fitted regression; None: each prediction uses earlier rows only, as an
            anytime interval needs it.
        now: When the log was read, in seconds since 1970 or a datetime; windows that closed by then are closed. None:
            the time of its last row.

    Returns:
        The estimates of the candidate, of the log's own policy and of the safe action.

    Raises:
        InvalidOutcome: The log, a column or an argument cannot be used.
        InvalidActions: The candidate cannot be used.
        InvalidFile: A file cannot be read.

    Example:
        >>> import stagewise as sw
        >>> problem = sw.Problem(
        ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
        ...     limits={"opt_out": sw.Limit(0.2, safe=0.0)},
        ... )
        >>> log = {"action": ["nothing", "offer"] * 1000, "click": [0, 1] * 1000, "opt_out": [0, 0] * 1000}
        >>> evaluation = sw.evaluate(log, problem, "offer", propensity=0.5)
        >>> evaluation["click"]["ips"].value, str(evaluation.candidate.verdicts["opt_out"].verdict)
        (1.0, 'kept')
    """
    declared = resolve_problem(problem)
    level = check_probability(declared.delta if delta is None else delta, "delta")
    fold_count = None if folds is None else check_integer(folds, "folds", "from 2 to 100", 2, 100)
    select_estimators(estimators, primary_estimator)
    all_rows = log if isinstance(log, Log) else Log.of(log, declared, columns=columns)
    kept, notes = select_rows(all_rows, candidate)
    rows = all_rows if kept.all() else all_rows.take(kept)
    if np.isnan(rows.values).all():
        raise InvalidOutcome(ErrorCode.LOG_EMPTY, "no row of the log has an outcome; there is nothing to evaluate")
    needs_propensities = candidate is not None or has_propensities(rows, propensity)
    propensities = resolve_propensities(rows, propensity) if needs_propensities else None
    order = compute_row_order(rows, propensities)
    ordered = not (order.is_random and may_be_adaptive(propensities))
    primary = primary_estimator if folds is None and ordered else "ips"  # others have no anytime interval
    chosen, alpha = select_estimators(estimators, primary), level / len(declared.signals)
    policies: dict[str, tuple[str, Weights]] = {}
    if candidate is not None:
        assert propensities is not None
        resolved = resolve_candidate(candidate, rows, kept)
        weights = compute_weights(rows, propensities, resolved.probabilities, alpha, weight_bound)
        policies["candidate"] = resolved.name, weights
    policies["logged"] = LOGGING_POLICY, build_logging_weights(rows)
    if propensities is not None and not (isinstance(candidate, str) and candidate == declared.safe):
        safe = resolve_candidate(declared.safe, rows, kept)
        weights = compute_weights(rows, propensities, safe.probabilities, alpha)
        policies["safe"] = f"{safe.name} (the safe action)", weights
    notes += [note] if (note := order.make_note(propensities)) is not None else []
    evaluator = LogEvaluator(rows.take(order.rows), chosen, primary, alpha, fold_count, now, notes, ordered)
    evaluated = {key: evaluator.evaluate(name, one.take(order.rows)) for key, (name, one) in policies.items()}
    source = "none are needed" if propensities is None else propensities.source
    if propensities is not None and propensities.is_estimated:
        notes.append(Note.of(NoteCode.PROPENSITIES_ESTIMATED))
    if propensities is not None and propensities.all_actions is None:
        notes.append(Note.of(NoteCode.PROPENSITIES_OF_ACTION_ONLY))
    return Evaluation(declared, evaluated, rows.rows, level, primary, source, tuple(notes))


def select_estimators(estimators: Any, primary_estimator: Any) -> list[str]:
    """Return the requested estimators, checked, with the primary one."""
    given = [estimators] if isinstance(estimators, str) else list_entries(estimators, "estimators", InvalidOutcome)
    chosen = [check_choice(name, ESTIMATORS, "an estimator") for name in given]
    if isinstance(primary_estimator, str) and primary_estimator == "snips":
        raise InvalidOutcome(
            ErrorCode.UNSUPPORTED,
            "primary_estimator is 'snips', whose interval is only approximate; use 'ips' or 'dr' to "
            "decide about limits",
        )
    check_choice(primary_estimator, [name for name in ESTIMATORS if name != "snips"], "primary_estimator")
    if not chosen:
        raise InvalidOutcome(
            ErrorCode.MISSING_VALUE,
            "estimators is empty; it must hold some of {estimators}",
            estimators=", ".join(ESTIMATORS),
        )
    return [name for name in ESTIMATORS if name in (*chosen, primary_estimator)]


def has_propensities(log: Log, propensity: Any) -> bool:
    """Say whether probabilities are given or logged."""
    return propensity is not None or log.propensities is not None or log.probabilities is not None


def select_rows(log: Log, candidate: Any) -> tuple[Flags, list[Note]]:
    """Return which rows (n,) can be evaluated, and notes on the others."""
    notes, rows = list[Note](), np.ones(log.rows, dtype=bool)
    if "shown" in log.arrays:
        shown = log.arrays["shown"].tolist()
        hidden = np.array([isinstance(value, bool | int | float) and not value for value in shown])
        rows &= ~hidden
        if hidden.any():
            notes.append(Note.of(NoteCode.ROWS_NOT_SHOWN, count=int(hidden.sum())))
    if candidate is not None and needs_context(candidate, log):
        if not log.complete_contexts.all():
            count = int(np.count_nonzero(rows & ~log.complete_contexts))
            notes.append(Note.of(NoteCode.ROWS_WITHOUT_CONTEXT, count=count))
        rows &= log.complete_contexts
    if not rows.any():
        raise InvalidOutcome(
            ErrorCode.LOG_EMPTY,
            "no row of the log can be evaluated; a row needs an action that was carried out and a complete context",
        )
    return rows, notes
