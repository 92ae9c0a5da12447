"""Off-policy evaluation: what a log says of a policy that did not make it, of the one that did, and of the safe one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from stagewise.kernels.compile import Flags
from stagewise.launch.evaluation.board import Board
from stagewise.launch.evaluation.candidates import candidate_of, looks
from stagewise.launch.evaluation.order import may_adapt, order_of
from stagewise.launch.evaluation.propensities import propensities_of
from stagewise.launch.evaluation.report import Evaluation
from stagewise.launch.evaluation.weights import OWN, Weights, own_weights, weights_of
from stagewise.launch.log import Log, problem_of
from stagewise.policies.problem import Problem
from stagewise.policies.settings import probability
from stagewise.problem.checks import entries_of, one_of, whole
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import several

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
FREQUENCIES_NOTE = (
    "the probabilities were reckoned from the log itself: intervals take them for true, which leaves out their own "
    "error, and a design that differed from user to user would make all of this wrong; so they judge no limit"
)
DONE_NOTE = (
    "the log says only how likely what was done was: what else it could have done is not known, so intervals hold "
    "whatever that is, and dr has those of ips; columns 'probability.ACTION' for all actions make them narrower"
)


def evaluate(
    log: Any,
    problem: Problem | str | Path,
    candidate: Any = None,
    *,
    names: Mapping[str, str] | None = None,
    propensity: Any = None,
    estimators: Sequence[Estimator] = ESTIMATORS,
    decisive: Literal["dr", "ips"] = "dr",
    delta: float | None = None,
    weight_bound: float | None = None,
    folds: int | None = None,
    now: Any = None,
) -> Evaluation:
    """Return what a log says of a candidate: its reward and every limit, each with an interval.

    Rows count in the order of their times, "at", and by lot where these do not tell it: how they stand has no part in
    it. Without times, and with probabilities that differ between rows, limits are judged by "ips".

    Args:
        log: A file (.csv, .parquet, .jsonl), such as a desk's export, a data frame, or columns by name.
        problem: The problem, or the TOML file that declares it.
        candidate: The policy to evaluate: an action's name (it is always taken), shares by action, probabilities
            (rows, actions) for the rows as given, a prefix of columns, a function from a context to an action or to
            probabilities by name, a problem, an agent or the file of a saved one (frozen: it decides and does not
            learn); None: the policy that made the log.
        names: From names of the problem, "action" or "propensity", to the columns that hold them.
        propensity: How likely actions were, where the log does not say: a number for a uniform trial, shares by action,
            or "frequencies".
        estimators: Some of "ips", "snips" and "dr"; the decisive one is always among them.
        decisive: By which limits are judged, "dr" or "ips"; name it before you look. With `folds` it is "ips".
        delta: The intervals of all signals hold at once with probability 1 − δ; None: the problem's own.
        weight_bound: At which number weights are clipped, if it is not to follow from the log's probabilities.
        folds: Into how many folds a regression is cross-fitted; None: each is made of earlier rows only, as an interval
            that holds at all times needs it.
        now: When the log was read, in seconds since 1970 or a datetime: windows that closed by then are closed; None:
            at its last row.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.2, safe=0.0)},
    ... )
    >>> log = {
    ...     "action": ["nothing", "offer"] * 1000, "click": [0, 1] * 1000, "opt_out": [0, 0] * 1000,
    ... }
    >>> evaluation = sw.evaluate(log, problem, "offer", propensity=0.5)
    >>> evaluation["click"]["ips"].value, evaluation.candidate.verdicts["opt_out"].verdict
    (1.0, 'under')
    """
    declared = problem_of(problem)
    level = probability(declared.delta if delta is None else delta, "delta")
    parts = None if folds is None else whole(folds, "folds", "from 2 to 100", 2, 100)
    asked_for(estimators, decisive)
    given = log if isinstance(log, Log) else Log.of(log, declared, names=names)
    kept, notes = usable(given, candidate)
    read = given if kept.all() else given.taken(kept)
    if np.isnan(read.values).all():
        raise InvalidOutcome("no row of the log has an outcome; there is nothing to evaluate")
    drawn = None if candidate is None and not known(read, propensity) else propensities_of(read, propensity)
    order = order_of(read, drawn)
    ordered = not (order.missing and may_adapt(drawn))
    judge = decisive if folds is None and ordered else "ips"  # what else has no interval for all times
    asked, alpha = asked_for(estimators, judge), level / len(declared.signals)
    policies: dict[str, tuple[str, Weights]] = {}
    if candidate is not None:
        assert drawn is not None
        told = candidate_of(candidate, read, kept)
        policies["candidate"] = told.name, weights_of(read, drawn, told.probabilities, alpha, weight_bound)
    policies["logged"] = OWN, own_weights(read)
    if drawn is not None and not (isinstance(candidate, str) and candidate == declared.safe):
        safe = candidate_of(declared.safe, read, kept)
        policies["safe"] = f"{safe.name} (the safe action)", weights_of(read, drawn, safe.probabilities, alpha)
    notes += [note] if (note := order.note(drawn)) else []
    board = Board(read.taken(order.rows), asked, judge, alpha, parts, now, notes, ordered)
    evaluated = {key: board.evaluated(name, one.taken(order.rows)) for key, (name, one) in policies.items()}
    source = "none are needed" if drawn is None else drawn.source
    if drawn is not None and drawn.estimated:
        notes.append(FREQUENCIES_NOTE)
    if drawn is not None and drawn.every is None:
        notes.append(DONE_NOTE)
    return Evaluation(declared, evaluated, read.rows, level, judge, source, tuple(dict.fromkeys(notes)))


def asked_for(estimators: Any, decisive: Any) -> list[str]:
    """Return the estimators that were asked for, checked."""
    given = [estimators] if isinstance(estimators, str) else entries_of(estimators, "estimators", InvalidOutcome)
    asked = [one_of(name, ESTIMATORS, "an estimator") for name in given]
    if isinstance(decisive, str) and decisive == "snips":
        raise InvalidOutcome(
            "decisive is 'snips', whose interval is an approximation; limits are judged by 'ips' or 'dr'"
        )
    one_of(decisive, [name for name in ESTIMATORS if name != "snips"], "decisive")
    if not asked:
        raise InvalidOutcome(f"estimators are empty; they must be some of {', '.join(ESTIMATORS)}")
    return [name for name in ESTIMATORS if name in (*asked, decisive)]


def known(log: Log, propensity: Any) -> bool:
    """Say whether anything is told of probabilities."""
    return propensity is not None or log.propensities is not None or log.probabilities is not None


def usable(log: Log, candidate: Any) -> tuple[Flags, list[str]]:
    """Return which rows (n,) can be evaluated, and what is to be said of the others."""
    notes, rows = [], np.ones(log.rows, dtype=bool)
    if "shown" in log.arrays:
        told = log.arrays["shown"].tolist()
        hidden = np.array([isinstance(value, bool | int | float) and not value for value in told])
        rows &= ~hidden
        if hidden.any():
            notes.append(f"left out: {several(hidden.sum(), 'row')}, not carried out (shown is false)")
    if candidate is not None and looks(candidate, log):
        if not log.placed.all():
            notes.append(f"{np.count_nonzero(rows & ~log.placed):,} rows without a whole context are left out")
        rows &= log.placed
    if not rows.any():
        raise InvalidOutcome("no row of the log can be evaluated: none was carried out, or none has a whole context")
    return rows, notes
