"""A log, prepared once for all policies: its outcomes by signal, and what a regression expects of them."""

from typing import Any

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.evaluation.balance import Balance
from stagewise.launch.evaluation.estimate import NONE, Estimate, Verdict
from stagewise.launch.evaluation.estimators import effective_size
from stagewise.launch.evaluation.intervals import Rows, estimates_of
from stagewise.launch.evaluation.outcomes import Outcomes, outcomes_of
from stagewise.launch.evaluation.regression import features_of, folds_of, predicted, stretches
from stagewise.launch.evaluation.report import Evaluated
from stagewise.launch.evaluation.support import Support
from stagewise.launch.evaluation.weights import Weights
from stagewise.launch.log import Log


class Board:
    """One log, prepared once for all policies: outcomes by signal and what a regression expects of them."""

    def __init__(
        self,
        log: Log,
        estimators: list[str],
        decisive: str,
        alpha: float,
        folds: int | None,
        now: Any,
        notes: list[str],
        ordered: bool = True,
    ) -> None:
        self.ordered = ordered
        self.log, self.alpha, self.folds, self.notes = log, alpha, folds, notes
        self.estimators = estimators
        self.decisive = decisive
        self.outcomes = {name: outcomes_of(log, name, now) for name in log.problem.signals}
        notes += [one.note for one in self.outcomes.values() if one.note]
        self.predictions: dict[str, Floats] = {}
        self.features = features_of(log) if "dr" in estimators else None

    def expected(self, signal: str) -> Floats:
        """Return what a regression expects of a signal (k, K) in the rows that have it, for every action."""
        if signal not in self.predictions:
            one: Outcomes = self.outcomes[signal]
            assert self.features is not None
            features, actions = self.features[one.known], self.log.actions[one.known]
            parts: Ints = stretches(actions.size) if self.folds is None else folds_of(actions.size, self.folds)
            count = len(self.log.problem.actions)
            self.predictions[signal] = predicted(features, actions, one.values, count, parts, self.folds is None)
        return self.predictions[signal]

    def evaluated(self, name: str, weights: Weights) -> Evaluated:
        """Return what the log says of one policy."""
        problem = self.log.problem
        support, size = Support.of(weights, problem.actions), effective_size(weights.values)
        self.notes += [f"{name}: {support.words}"] if support.words else []
        own = weights.kept is None  # of the policy that made the log a mean is all there is
        estimators, decisive = (["ips"], "ips") if own else (self.estimators, self.decisive)
        estimates, segments = {}, dict[str, dict[str, Estimate]]()
        uneven = dict[str, list[str]]()
        for signal in problem.signals:
            parts = self.parts(signal)
            alpha = self.alpha / (1 + len(parts))
            everybody = self.rows(signal, weights, "dr" in estimators)
            estimates[signal], words = self.estimates(everybody, signal, estimators, alpha)
            uneven.setdefault(words, []).append(signal)
            for part, rows in parts.items():
                told, words = self.estimates(everybody.taken(rows), signal, [decisive], alpha)
                segments.setdefault(signal, {})[part] = told[decisive]
                uneven.setdefault(words, []).append(f"{signal}, {part}")
        self.notes += [f"{name} ({'; '.join(where)}): {words}" for words, where in uneven.items() if words]
        limits, verdicts = problem.policy().presented, {}
        for limit, sign, threshold in zip(limits.names, limits.signs, limits.values, strict=True):
            judged = [estimates[limit][decisive], *segments.get(limit, {}).values()]
            verdicts[limit] = Verdict.of(judged, float(threshold), bool(sign > 0.0), decisive)
        return Evaluated(name, estimates, segments, verdicts, support, size, weights.bound, weights.source)

    def rows(self, signal: str, weights: Weights, regression: bool) -> Rows:
        """Return the rows of a signal for one policy."""
        one = self.outcomes[signal]
        expected = self.expected(signal) if regression else None
        return Rows(self.log.actions[one.known], one.values, weights.taken(one.known), expected, self.ordered)

    def estimates(
        self, rows: Rows, signal: str, estimators: list[str], alpha: float
    ) -> tuple[dict[str, Estimate], str]:
        """Return the estimates of a signal, in its own units, and what is wrong with its weights; empty: nothing."""
        declared = self.log.problem.signals[signal]
        if not rows.outcomes.size:
            return dict.fromkeys(estimators, Estimate(None, declared.low, declared.high, NONE, 0)), ""
        balance, ends = Balance.of(rows.weights, alpha, self.ordered), (declared.low, declared.high)
        return estimates_of(rows, balance, estimators, alpha, ends, self.folds is None), balance.words

    def parts(self, signal: str) -> dict[str, Any]:
        """Return the rows of every segment, of a limit that holds in each by itself; nothing where there is one."""
        by = self.log.problem.signals[signal].by
        if by is None or signal not in self.log.problem.limits:
            return {}
        texts = self.log.segments[by][self.outcomes[signal].known]
        names = sorted({text for text in texts.tolist() if text is not None})
        return {f"{by}={name}": texts == name for name in names} if len(names) > 1 else {}
