"""Evaluate policies on one log: outcomes by signal and regressions are prepared once."""

from typing import Any

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.balance import Balance
from stagewise.launch.evaluation.estimate import Estimate, LimitVerdict, Validity
from stagewise.launch.evaluation.estimators import effective_sample_size
from stagewise.launch.evaluation.evaluation_report import PolicyEvaluation
from stagewise.launch.evaluation.intervals import SignalRows, compute_estimates
from stagewise.launch.evaluation.outcome_regression import (
    assign_folds,
    assign_time_blocks,
    build_features,
    predict_outcomes,
)
from stagewise.launch.evaluation.signal_outcomes import SignalOutcomes, get_outcomes
from stagewise.launch.evaluation.support import Support
from stagewise.launch.evaluation.weights import Weights
from stagewise.launch.notes import Note


class LogEvaluator:
    """One log, prepared once for all policies."""

    def __init__(
        self,
        log: Log,
        estimators: list[str],
        primary_estimator: str,
        alpha: float,
        folds: int | None,
        now: Any,
        notes: list[Note],
        ordered: bool = True,
    ) -> None:
        self.ordered = ordered
        self.log, self.alpha, self.folds, self.notes = log, alpha, folds, notes
        self.estimators = estimators
        self.primary_estimator = primary_estimator
        self.outcomes = {name: get_outcomes(log, name, now) for name in log.problem.signals}
        notes += [note for one in self.outcomes.values() for note in one.notes]
        self.predictions: dict[str, Floats] = {}
        self.features = build_features(log) if "dr" in estimators else None

    def predict(self, signal: str) -> Floats:
        """Return the regression's predictions (k, K) of a signal, for the rows that have it and every action."""
        if signal not in self.predictions:
            one: SignalOutcomes = self.outcomes[signal]
            assert self.features is not None
            features, actions = self.features[one.known], self.log.actions[one.known]
            parts: Ints = (
                assign_time_blocks(actions.size) if self.folds is None else assign_folds(actions.size, self.folds)
            )
            count = len(self.log.problem.actions)
            self.predictions[signal] = predict_outcomes(features, actions, one.values, count, parts, self.folds is None)
        return self.predictions[signal]

    def evaluate(self, name: str, weights: Weights) -> PolicyEvaluation:
        """Return the evaluation of one policy."""
        problem = self.log.problem
        support, size = Support.of(weights, problem.actions), effective_sample_size(weights.values)
        support_note = support.make_note(name)
        self.notes += [] if support_note is None else [support_note]
        is_logging_policy = weights.covered_mass is None  # its estimate is a mean
        estimators, primary_estimator = (
            (["ips"], "ips") if is_logging_policy else (self.estimators, self.primary_estimator)
        )
        estimates, segments = {}, dict[str, dict[str, Estimate]]()
        unbalanced = dict[Balance, list[str]]()
        for signal in problem.signals:
            segment_rows = self.get_segment_rows(signal)
            alpha = self.alpha / (1 + len(segment_rows))
            all_rows = self.get_rows(signal, weights, "dr" in estimators)
            estimates[signal], balance = self.estimates(all_rows, signal, estimators, alpha)
            if balance is not None:
                unbalanced.setdefault(balance, []).append(signal)
            for segment, rows in segment_rows.items():
                found, balance = self.estimates(all_rows.take(rows), signal, [primary_estimator], alpha)
                segments.setdefault(signal, {})[segment] = found[primary_estimator]
                if balance is not None:
                    unbalanced.setdefault(balance, []).append(f"{signal}, {segment}")
        self.notes += [
            Note.of(
                balance.note_code, policy=name, signals=signals, mean=balance.mean, low=balance.low, high=balance.high
            )
            for balance, signals in unbalanced.items()
            if balance.note_code is not None
        ]
        limits, verdicts = problem.policy().display_thresholds, {}
        for limit, sign, threshold in zip(limits.names, limits.signs, limits.values, strict=True):
            deciding = [estimates[limit][primary_estimator], *segments.get(limit, {}).values()]
            verdicts[limit] = LimitVerdict.of(deciding, float(threshold), bool(sign > 0.0), primary_estimator)
        return PolicyEvaluation(name, estimates, segments, verdicts, support, size, weights.bound, weights.source)

    def get_rows(self, signal: str, weights: Weights, regression: bool) -> SignalRows:
        """Return the rows of a signal for one policy."""
        one = self.outcomes[signal]
        predictions = self.predict(signal) if regression else None
        return SignalRows(self.log.actions[one.known], one.values, weights.take(one.known), predictions, self.ordered)

    def estimates(
        self, rows: SignalRows, signal: str, estimators: list[str], alpha: float
    ) -> tuple[dict[str, Estimate], Balance | None]:
        """Return the estimates of a signal, in its own units, and the balance of its weights; None without rows."""
        declared = self.log.problem.signals[signal]
        if not rows.outcomes.size:
            return dict.fromkeys(estimators, Estimate(None, declared.low, declared.high, Validity.NONE, 0)), None
        balance, ends = Balance.of(rows.weights, alpha, self.ordered), (declared.low, declared.high)
        return compute_estimates(rows, balance, estimators, alpha, ends, self.folds is None), balance

    def get_segment_rows(self, signal: str) -> dict[str, Any]:
        """Return the rows of every segment, for a limit that holds in each; empty if there is one segment."""
        by = self.log.problem.signals[signal].by
        if by is None or signal not in self.log.problem.limits:
            return {}
        texts = self.log.segments[by][self.outcomes[signal].known]
        names = sorted({text for text in texts.tolist() if text is not None})
        return {f"{by}={name}": texts == name for name in names} if len(names) > 1 else {}
