"""`evaluate_on_log`: off-policy evaluation of a candidate, the log's own policy and the safe action."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.decision_log import Log, resolve_problem
from stagewise.launch.evaluation.estimators import (
    Estimate,
    SignalRows,
    Validity,
    assign_parts,
    build_features,
    estimate_signal,
    predict_outcomes,
)
from stagewise.launch.evaluation.evaluation_report import Evaluation, LimitVerdict, PolicyEvaluation, Support
from stagewise.launch.evaluation.propensities import (
    LOGGING_POLICY,
    Balance,
    Propensities,
    Weights,
    build_logging_weights,
    compute_weights,
    needs_context,
    resolve_candidate,
    resolve_propensities,
)
from stagewise.launch.notes import Note, NoteCode
from stagewise.launch.statistics import hash_row_numbers
from stagewise.policies.problem import Problem
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_choice, list_entries
from stagewise.problem.columns import GOLDEN_GAMMA, Hashes, finalize_bits
from stagewise.problem.errors import ErrorCode, InvalidOutcome

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
MAX_DEVIATIONS = 4.0  # a difference of missing shares above so many standard deviations is noted


def evaluate_on_log(
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
    as_of: Any = None,
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
        delta: The intervals of all signals hold at once with probability 1 − delta; None: the problem's own delta.
        weight_bound: Where to clip weights; None: it follows from the log's probabilities.
        as_of: When the log was read, in seconds since 1970 or a datetime; windows that closed by then are closed. None:
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
        ...     action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        ...     limits={"opt_out": sw.Limit(0.2, safe_bound=0.0)},
        ... )
        >>> log = {"action": ["nothing", "offer"] * 1000, "click": [0, 1] * 1000, "opt_out": [0, 0] * 1000}
        >>> evaluation = sw.evaluate_on_log(log, problem, "offer", propensity=0.5)
        >>> evaluation["click"]["ips"].value, str(evaluation.candidate.verdicts["opt_out"].verdict)
        (1.0, 'kept')
    """
    declared = resolve_problem(problem)
    level = check_probability(declared.delta if delta is None else delta, "delta")
    select_estimators(estimators, primary_estimator)
    all_rows = log if isinstance(log, Log) else Log.of(log, declared, columns=columns)
    kept, notes = select_rows(all_rows, candidate)
    rows = all_rows if kept.all() else all_rows.take(kept)
    if np.isnan(rows.values).all():
        raise InvalidOutcome(ErrorCode.LOG_EMPTY, "no row of the log has an outcome; there is nothing to evaluate")
    has_propensities = propensity is not None or rows.propensities is not None or rows.probabilities is not None
    is_needed = candidate is not None or has_propensities
    propensities = resolve_propensities(rows, propensity) if is_needed else None
    order, is_random, order_note = order_rows(rows, propensities)
    ordered = not (is_random and may_be_adaptive(propensities))
    primary = primary_estimator if ordered else "ips"  # others have no anytime interval
    chosen, alpha = select_estimators(estimators, primary), level / len(declared.signals)
    policies: dict[str, tuple[str, Weights]] = {"logged": (LOGGING_POLICY, build_logging_weights(rows))}
    if propensities is not None:
        if candidate is not None:
            name, probabilities = resolve_candidate(candidate, rows, kept)
            weights = compute_weights(rows, propensities, probabilities, alpha, weight_bound)
            policies = {"candidate": (name, weights), **policies}
        if not (isinstance(candidate, str) and candidate == declared.safe_name):
            name, probabilities = resolve_candidate(declared.safe_name, rows, kept)
            weights = compute_weights(rows, propensities, probabilities, alpha)
            policies["safe"] = f"{name} (the safe action)", weights
    notes += order_note
    evaluator = LogEvaluator(rows.take(order), chosen, primary, alpha, as_of, notes, ordered)
    evaluated = {key: evaluator.evaluate(name, one.take(order)) for key, (name, one) in policies.items()}
    if propensities is not None and propensities.is_estimated:
        notes.append(Note.of(NoteCode.PROPENSITIES_ESTIMATED))
    if propensities is not None and propensities.all_actions is None:
        notes.append(Note.of(NoteCode.PROPENSITIES_OF_ACTION_ONLY))
    source = "none are needed" if propensities is None else propensities.source
    return Evaluation(declared, evaluated, rows.rows, level, primary, source, tuple(notes))


def select_estimators(estimators: Any, primary_estimator: Any) -> list[str]:
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
        template = "estimators is empty; it must hold some of {estimators}"
        raise InvalidOutcome(ErrorCode.MISSING_VALUE, template, estimators=", ".join(ESTIMATORS))
    return [name for name in ESTIMATORS if name in (*chosen, primary_estimator)]


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
        text = "no row of the log can be evaluated; a row needs an action that was carried out and a complete context"
        raise InvalidOutcome(ErrorCode.LOG_EMPTY, text)
    return rows, notes


# The order of rows (docs/theory/evaluation.md). A confidence sequence uses rows one after another and learns from
# earlier ones, so their order must not depend on the outcomes. The order of a file may. Without times the order is
# random, derived from a digest of the rows, so the same rows always have the same order, and nobody chooses it.


def order_rows(log: Log, propensities: Propensities | None) -> tuple[Ints, bool, list[Note]]:
    """Return the order of a log's rows: by time, and random for equal times or if a time is missing.

    Also, whether it is random, and a note on it.
    """
    shuffled = shuffle_rows(hash_rows(log, propensities))
    missing = None if log.at is None else int(np.isnan(log.at).sum())
    if log.at is not None and not missing:
        rows = shuffled[np.argsort(log.at[shuffled], kind="stable")]
        same = np.diff(log.at[rows]) == 0.0
        ties = int((np.append(same, False) | np.append(False, same)).sum())
        return rows, False, [Note.of(NoteCode.TIMES_TIED, count=ties)] if ties else []
    if not may_be_adaptive(propensities):
        code = NoteCode.ORDER_RANDOM
    else:
        is_open = propensities is None or propensities.all_actions is None
        code = NoteCode.ORDER_IRRELEVANT if is_open else NoteCode.ORDER_UNKNOWN
    return shuffled, True, [Note.of(code, count=missing)]


def shuffle_rows(digests: Hashes) -> Ints:
    """Return rows (n,) in a random order that does not depend on their order in the file."""
    canonical = np.argsort(digests, kind="stable")  # rows with equal digests are equal
    key = int.from_bytes(sha256(digests[canonical].astype("<u8").tobytes()).digest()[:8], "little")
    return np.asarray(canonical[np.argsort(hash_row_numbers(digests.size, key), kind="stable")], dtype=np.int64)


def hash_rows(log: Log, propensities: Propensities | None) -> Hashes:
    """Return 64 bits of everything that an evaluation reads of every row (n,), including outcomes."""
    columns = [log.actions.astype(np.float64), *log.numbers.T, *log.values.T]
    columns += [] if propensities is None else [propensities.logged]
    columns += [] if log.at is None else [log.at]
    digests = np.zeros(log.rows, dtype=np.uint64)
    for column in columns:
        canonical = np.where(np.isnan(column), np.nan, column + 0.0)  # one NaN, and one zero
        digests = finalize_bits(digests + canonical.view(np.uint64) + GOLDEN_GAMMA)
    for texts in log.segments.values():
        bits = {text: hash_text(text) for text in dict.fromkeys(texts.tolist())}
        digests = finalize_bits(digests + np.array([bits[text] for text in texts.tolist()], dtype=np.uint64))
    return digests


def hash_text(text: str | None) -> int:
    """Return 64 bits of a text; 0 if it is missing."""
    return 0 if text is None else int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def may_be_adaptive(propensities: Propensities | None) -> bool:
    """Say whether probabilities may depend on earlier outcomes: not if they are the same in all rows."""
    if propensities is None or propensities.all_actions is None:
        return True
    return bool((propensities.all_actions != propensities.all_actions[0]).any())


class SignalOutcomes(NamedTuple):
    """The outcomes of one signal."""

    known: Flags
    """Which rows (n,) count."""
    values: Floats
    """Their outcomes (k,), scaled so that the declared range is [0, 1]."""


def get_outcomes(log: Log, name: str, as_of: Any, notes: list[Note]) -> SignalOutcomes:
    """Return the outcomes of a signal as known at the time `as_of`, when the log was read."""
    signal, index = log.problem.signals[name], list(log.problem.signals).index(name)
    is_open, window = log.open_windows(as_of), signal.outcome_window
    column, open_rows = log.fill_closed_windows(is_open)[:, index], is_open[:, index]
    known, absent = ~np.isnan(column), np.isnan(log.values[:, index]) & ~open_rows
    if window is not None and open_rows.any():
        details = {"name": name, "count": int(open_rows.sum()), "window": window.duration_text}
        notes.append(Note.of(NoteCode.ROWS_WITH_OPEN_WINDOWS, **details))
    count = int(absent.sum())
    if count and window is not None and not window.drops:
        details = {"name": name, "count": count, "default": float(window.missing), "has_times": log.at is not None}
        notes.append(Note.of(NoteCode.OUTCOMES_FILLED, **details))
    elif count:
        notes.append(Note.of(NoteCode.OUTCOMES_MISSING, name=name, count=count))
        notes += find_uneven_missing(log, name, absent)
    values = column[known]
    wrong = values[(values < signal.low) | (values > signal.high)]
    if wrong.size:
        rule = f"in the declared range [{signal.low:g}, {signal.high:g}], which confidence intervals rely on"
        what = f"an outcome of {name!r} in the log"
        raise InvalidOutcome.must_be(ErrorCode.OUTCOME_OUT_OF_RANGE, what, float(wrong[0]), rule)
    return SignalOutcomes(known, (values - signal.low) / (signal.high - signal.low))


def find_uneven_missing(log: Log, name: str, absent: Flags) -> list[Note]:
    """Return a note if outcomes are missing more often after one action than overall."""
    overall = float(absent.mean())
    for index, action in enumerate(log.problem.action_names):
        rows = absent[log.actions == index]
        if rows.size:
            deviation, share = np.sqrt(overall * (1.0 - overall) / rows.size), float(rows.mean())
            if abs(share - overall) > MAX_DEVIATIONS * deviation:
                code = NoteCode.OUTCOMES_MISSING_UNEVENLY
                return [Note.of(code, name=name, action=action, share=share, overall=overall)]
    return []


class LogEvaluator:
    """One log, prepared once for all policies: outcomes by signal and regressions."""

    def __init__(
        self,
        log: Log,
        estimators: list[str],
        primary_estimator: str,
        alpha: float,
        as_of: Any,
        notes: list[Note],
        ordered: bool = True,
    ) -> None:
        self.log, self.alpha, self.notes, self.ordered = log, alpha, notes, ordered
        self.estimators, self.primary_estimator = estimators, primary_estimator
        self.outcomes = {name: get_outcomes(log, name, as_of, notes) for name in log.problem.signals}
        self.predictions = {}
        if "dr" in estimators:
            features, count = build_features(log), len(log.problem.action_names)
            for name, (known, values) in self.outcomes.items():
                parts = assign_parts(values.size)
                self.predictions[name] = predict_outcomes(features[known], log.actions[known], values, count, parts)

    def evaluate(self, name: str, weights: Weights) -> PolicyEvaluation:
        problem, support = self.log.problem, Support.of(weights, self.log.problem.action_names)
        self.notes += support.make_notes(name)
        is_logging_policy = weights.covered_mass is None  # its estimate is a mean
        estimators = ["ips"] if is_logging_policy else self.estimators
        primary = "ips" if is_logging_policy else self.primary_estimator
        estimates, segments = dict[str, dict[str, Estimate]](), dict[str, dict[str, Estimate]]()
        unbalanced = dict[Balance, list[str]]()

        def estimate(rows: SignalRows, signal: str, where: str, asked: list[str], alpha: float) -> dict[str, Estimate]:
            ends = problem.signals[signal].low, problem.signals[signal].high
            if not rows.outcomes.size:
                return dict.fromkeys(asked, Estimate(None, *ends, Validity.NONE, 0))
            balance = Balance.of(rows.weights, alpha, self.ordered)
            if not balance.is_balanced:
                unbalanced.setdefault(balance, []).append(where)
            return estimate_signal(rows, balance, asked, alpha, ends)

        for signal in problem.signals:
            known, values = self.outcomes[signal]
            segment_rows = self.get_segment_rows(signal)
            alpha = self.alpha / (1 + len(segment_rows))
            predictions = self.predictions.get(signal) if "dr" in estimators else None
            actions = self.log.actions[known]
            all_rows = SignalRows(actions, values, weights.take(known), predictions, self.ordered)
            estimates[signal] = estimate(all_rows, signal, signal, estimators, alpha)
            for segment, rows in segment_rows.items():
                found = estimate(all_rows.take(rows), signal, f"{signal}, {segment}", [primary], alpha)
                segments.setdefault(signal, {})[segment] = found[primary]
        for balance, signals in unbalanced.items():
            details = {"mean": balance.mean, "low": balance.low, "high": balance.high}
            self.notes.append(Note.of(balance.note_code, policy=name, signals=signals, **details))
        limits, verdicts = problem.policy().display_thresholds, {}
        for limit, sign, threshold in zip(limits.names, limits.signs, limits.values, strict=True):
            deciding = [estimates[limit][primary], *segments.get(limit, {}).values()]
            verdicts[limit] = LimitVerdict.of(deciding, float(threshold), bool(sign > 0.0), primary)
        size = weights.effective_sample_size
        return PolicyEvaluation(name, estimates, segments, verdicts, support, size, weights.bound, weights.source)

    def get_segment_rows(self, signal: str) -> dict[str, Any]:
        """Return the rows of every segment, for a limit that holds in each; empty if there is one segment."""
        by = self.log.problem.choices[signal].by
        if by is None or signal not in self.log.problem.limits:
            return {}
        division = next(one for one in self.log.problem.divisions if one.name == by)
        texts = self.log.get_group_names(division)[self.outcomes[signal].known]
        names = sorted({text for text in texts.tolist() if text is not None})
        return {f"{by}={name}": texts == name for name in names} if len(names) > 1 else {}
