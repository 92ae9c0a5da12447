"""A log, prepared once for all policies: its outcomes by signal, and what a regression expects of them."""

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.evaluation.estimators import effective_size
from stagewise.launch.evaluation.intervals import Rows, estimates_of
from stagewise.launch.evaluation.outcomes import Outcomes, outcomes_of
from stagewise.launch.evaluation.regression import features_of, folds_of, predicted, stretches
from stagewise.launch.evaluation.report import Evaluated, Verdict
from stagewise.launch.evaluation.support import Support, weak
from stagewise.launch.evaluation.weights import Weights
from stagewise.launch.log import Log


class Board:
    """One log, prepared once for all policies: outcomes by signal and what a regression expects of them."""

    def __init__(
        self, log: Log, estimators: list[str], decisive: str, alpha: float, folds: int | None, notes: list[str]
    ) -> None:
        self.log, self.alpha, self.folds, self.notes = log, alpha, folds, notes
        self.estimators = estimators
        self.decisive = decisive if decisive in estimators else estimators[-1]
        self.outcomes = {name: outcomes_of(log, name) for name in log.problem.signals}
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
        log, problem = self.log, self.log.problem
        support, size = Support.of(weights, problem.actions), effective_size(weights.values)
        self.notes += [f"{name}: {words}" for words in (support.words, weak(weights, size, log.rows)) if words]
        estimators = [one for one in self.estimators if one != "dr" or weights.kept is not None]
        decisive = self.decisive if self.decisive in estimators else "ips"
        estimators = estimators if decisive in estimators else ["ips", *estimators]
        estimates, verdicts = {}, {}
        for signal, declared in problem.signals.items():
            one = self.outcomes[signal]
            regression = self.expected(signal) if "dr" in estimators else None
            rows = Rows(log.actions[one.known], one.values, weights.taken(one.known), regression)
            ends = (declared.low, declared.high)
            estimates[signal] = estimates_of(rows, estimators, self.alpha, ends, support.enough, self.folds is None)
        limits = problem.policy().presented
        for limit, sign, threshold in zip(limits.names, limits.signs, limits.values, strict=True):
            verdicts[limit] = Verdict.of(estimates[limit][decisive], float(threshold), sign > 0.0, decisive)
        return Evaluated(name, estimates, verdicts, support, size, weights.bound, weights.source)
