"""Checks of the numbers about users: leakage, the form of means, the norm of parameters, numbers without effect.

A check yields what it finds, and at last that nothing is wrong; the most severe finding is reported.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.doctor.findings import FORMATTER, Finding, FindingCode
from stagewise.launch.doctor.log_profile import DECILES, LogProfile, Signal, assign_deciles
from stagewise.launch.doctor.rate_checks import SELECTION_LEVEL
from stagewise.launch.notes import format_number
from stagewise.launch.statistics import (
    KL_INTERVAL,
    bennett_bound,
    chernoff_lower_bound,
    freedman_bound,
    measure_shift,
)

BINARY_AUC_LIMIT = 0.9  # a binary outcome that is predicted better counts as known beforehand
NUMERIC_AUC_LIMIT = 0.99  # the same for other outcomes, which earlier values may predict well
NOTED_AUC = 0.75  # nothing is noted below
AUC_MARGIN = 0.03  # since the distribution of a number is estimated
MIN_RELATIVE_EFFECT = 0.05  # of the mean; a smaller effect is a note
MAX_PRODUCT_NUMBERS = 12  # with more numbers only squares are tested, not products
EFFECT_LEVEL = 0.001  # p-value at which an effect counts as visible


# Leakage has two signs. First, a column predicts an outcome within actions too well: above `BINARY_AUC_LIMIT` it
# contradicts, which is a rule and not a test, since an honest number may be as good; below that, a column that is
# better than any linear mean could be (and than `NOTED_AUC`) is a note. Second, if the log has the probability of every
# action, a number differs between actions more than these probabilities allow: what is known before a decision cannot
# depend on how the decision falls.


def check_leakage(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find numbers and segments that predict outcomes, or the action, too well."""
    log = profile.log
    level = alpha / (2 * max((len(log.problem.numbers) + len(profile.segments)) * len(profile.signals), 1))
    for column, numbers in zip(log.problem.numbers, log.numbers.T, strict=True):
        by_action = sort_by_action(numbers, log.actions)
        for signal in profile.signals:
            auc, limit = estimate_auc(by_action, signal, signal.observed, level)
            details = {"column": column, "name": signal.name, "auc": auc}
            if auc > limit:
                yield Finding.of(FindingCode.PREDICTS_TOO_WELL, **details, threshold=limit)
            elif signal.is_binary and auc > NOTED_AUC:
                plausible = compute_plausible_auc(by_action, signal)
                if auc > min(limit, plausible):
                    yield Finding.of(FindingCode.PREDICTS_WELL, **details, threshold=plausible)
    for column, groups in profile.segments.items():
        for signal in profile.signals:
            auc, limit = estimate_group_auc(signal, groups.codes, level)
            if auc > limit:
                details = {"column": column, "name": signal.name, "auc": auc}
                yield Finding.of(FindingCode.PREDICTS_TOO_WELL, **details, threshold=limit)
    yield from find_imbalances(profile, 0.5 * alpha)
    yield Finding.of(FindingCode.NO_LEAKAGE)


class SortedValues(NamedTuple):
    """The values of a column in the rows of one action: rows, distinct values, and the index of each row's value."""

    rows: Ints
    values: Floats
    codes: Ints


def sort_by_action(column: Floats, actions: Ints) -> list[SortedValues]:
    pieces = []
    for action in np.unique(actions[actions >= 0]).tolist():
        rows = np.flatnonzero((actions == action) & np.isfinite(column))
        values, codes = np.unique(column[rows], return_inverse=True)
        pieces.append(SortedValues(rows, values, codes.reshape(-1)))
    return pieces


class ValueCounts(NamedTuple):
    """For an action with both kinds of rows: the smaller count, the values, and all rows and events by value."""

    fewer: float
    values: Floats
    counts: Floats
    ones: Floats

    @property
    def zeros(self) -> Floats:
        """The rows without an event by value."""
        return self.counts - self.ones


def count_values(by_action: list[SortedValues], signal: Signal, known: Flags) -> list[ValueCounts]:
    pieces = []
    for rows, values, codes in by_action:
        used = known[rows]
        counts = np.bincount(codes[used], minlength=values.size).astype(np.float64)
        ones = np.bincount(codes[used], signal.events[rows[used]], minlength=values.size).astype(np.float64)
        fewer = min(float(ones.sum()), float((counts - ones).sum()))
        if fewer > 0.0:
            pieces.append(ValueCounts(fewer, values, counts, ones))
    return pieces


def estimate_auc(by_action: list[SortedValues], signal: Signal, known: Flags, p_value: float) -> tuple[float, float]:
    """Return a lower bound on the area under the curve within actions, and the limit above which it is a leak.

    The area is a mean of min(n₁, n₀) independent terms in [0, 1] (Hoeffding 1963, section 5), so Chernoff's bound
    holds: M kl(estimate, truth) ≤ log 1/p_value, with M the number of terms over all actions.
    """
    limit = BINARY_AUC_LIMIT if signal.is_binary else NUMERIC_AUC_LIMIT
    pieces = count_values(by_action, signal, known)
    weight = sum(piece.fewer for piece in pieces)
    if not weight:
        return 0.5, limit
    auc = sum(piece.fewer * compute_auc(piece.ones, piece.zeros) for piece in pieces) / weight
    return chernoff_lower_bound(max(auc, 1.0 - auc), weight, math.log(2.0 / p_value)), limit


def estimate_group_auc(signal: Signal, groups: Ints, p_value: float) -> tuple[float, float]:
    """Return the same for groups, whose rates are estimated from one half of the rows and tested on the other."""
    half, events = signal.profile.half, signal.events
    used = signal.observed & half
    size = int(groups.max(initial=-1)) + 1
    count = np.bincount(groups[used], minlength=size)
    overall = float(events[used].mean()) if used.any() else 0.5
    rates = (np.bincount(groups[used], events[used], minlength=size) + overall) / (count + 1.0)
    return estimate_auc(
        sort_by_action(rates[groups], signal.profile.log.actions), signal, signal.observed & ~half, p_value
    )


def describe_leak(profile: LogProfile, estimate: Callable[[Signal], tuple[float, float]]) -> str:
    """Return why a column counts as recorded after the decision; empty if it does not."""
    for signal in profile.signals:
        auc, limit = estimate(signal)
        if auc > limit:
            area = f"an area under the curve of {format_number(auc)} or more"
            return f"it predicts {signal.name!r} with {area}; is it recorded after the decision?"
    return ""


def compute_plausible_auc(by_action: list[SortedValues], signal: Signal) -> float:
    """Return the largest area under the curve of a column if the mean is linear in it."""
    pieces = count_values(by_action, signal, signal.observed)
    largest = sum(piece.fewer * compute_max_linear_auc(piece) for piece in pieces)
    return max(NOTED_AUC, largest / sum(piece.fewer for piece in pieces) + AUC_MARGIN)


def compute_auc(ones: Floats, zeros: Floats) -> float:
    """Return the area under the curve: how often a value of the ones is above one of the zeros, ties counted half."""
    return float(ones @ (np.cumsum(zeros) - 0.5 * zeros) / (ones.sum() * zeros.sum()))


def compute_max_linear_auc(piece: ValueCounts) -> float:
    """Return the largest area that a probability linear in a column, within [0, 1], can have."""
    values, counts, mean = piece.values, piece.counts, float(piece.ones.sum() / piece.counts.sum())
    centre, best = float(counts @ values / counts.sum()), 0.5
    down, up = max(centre - values[0], 1e-12), max(values[-1] - centre, 1e-12)
    for slope in (min(mean / down, (1.0 - mean) / up), -min(mean / up, (1.0 - mean) / down)):
        ones = counts * np.clip(mean + slope * (values - centre), 0.0, 1.0)
        if 0.0 < ones.sum() < counts.sum():
            auc = compute_auc(ones, counts - ones)
            best = max(best, auc, 1.0 - auc)
    return best


def find_imbalances(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find the numbers that differ between actions more than the logged probabilities allow."""
    probabilities, problem = profile.action_probabilities, profile.log.problem
    if probabilities is None or not profile.ranks:
        return
    rows = profile.known & np.isfinite(probabilities).all(axis=1)
    taken = profile.log.actions[rows, None] == np.arange(len(problem.action_names))
    for column, ranks in zip(problem.numbers, profile.ranks, strict=True):
        centred = ranks[rows] - 0.5
        sums = centred @ (taken - probabilities[rows])
        variances = centred**2 @ (probabilities[rows] * (1.0 - probabilities[rows]))
        p_values = (
            freedman_bound(sums, variances, 0.5, int(rows.sum())) * len(problem.numbers) * len(problem.action_names)
        )
        worst = int(np.argmin(p_values))
        if p_values[worst] <= alpha:
            action, higher = problem.action_names[worst], bool(sums[worst] > 0.0)
            yield Finding.of(FindingCode.DEPENDS_ON_ACTION, column=column, action=action, higher=higher)


# The form of means. Linear: let g be a column that is not part of a linear mean: a product of numbers, or membership in
# a decile of the predictions from the other half. Made orthogonal to the constant and the numbers, by action, Σ g y
# contains no part of any linear mean, whatever its parameter; the rest is noise in [−1, 1], which Bennett's inequality
# bounds. No error of a fit enters. Logistic: the same with weights p(1 − p), where an error of the fit enters in second
# order; its mean size is subtracted. Rates: within an action (and a segment) outcomes are exchangeable, whoever the
# users are (`statistics.py`).


def check_model_form(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find signals that do not have their declared form."""
    if not profile.log.problem.context:
        yield Finding.of(FindingCode.NO_NUMBERS)
        return
    for signal in profile.signals:
        check = check_form if signal.is_per_user else check_rate_signal
        yield from check(signal, alpha / len(profile.signals))
    yield Finding.of(FindingCode.FORM_AGREES)


class Misfit(NamedTuple):
    """A test of a mean's form: of a product of two numbers, or of a decile of the predictions."""

    p_value: float
    relative_effect: float  # of the mean
    action: str | None = None  # None: all actions
    numbers: tuple[str, str] | None = None
    decile: int | None = None


def check_form(signal: Signal, alpha: float) -> Iterator[Finding]:
    """Find out whether a signal that is declared linear or logistic is not."""
    outcomes = signal.scaled[signal.fitted_rows]
    if not outcomes.size:
        return
    mean = float(outcomes.mean())
    scale = max(min(mean, 1.0 - mean), 1e-12)
    misfits = [*score_products(signal, scale), *score_deciles(signal, scale)]
    worst = min(misfits, key=lambda misfit: misfit.p_value, default=None)
    if worst is not None and worst.p_value * len(misfits) <= alpha:
        certain = worst.relative_effect >= MIN_RELATIVE_EFFECT
        numbers = None if worst.numbers is None else list(worst.numbers)
        details: dict[str, Any] = {"name": signal.name, "form": signal.model, "action": worst.action}
        details |= {"numbers": numbers, "decile": worst.decile}
        code = FindingCode.NOT_LINEAR if certain else FindingCode.SLIGHTLY_NOT_LINEAR
        yield Finding.of(code, **details, effect=worst.relative_effect)


def score_products(signal: Signal, scale: float) -> Iterator[Misfit]:
    """Yield the tests of squares and products of numbers, by action and in all actions together."""
    names = list(signal.profile.log.problem.numbers)
    if not names:
        return
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    pairs = pairs if len(names) <= MAX_PRODUCT_NUMBERS else [(i, i) for i in range(len(names))]
    terms, total = [(names[i], names[j]) for i, j in pairs], Scores.none(len(pairs))
    for action, of_action in signal.profile.by_action:
        rows = signal.get_fit_rows(of_action)
        if rows.size:
            numbers = signal.profile.design[rows, 1:]
            scores = compute_scores(signal, rows, np.column_stack([numbers[:, i] * numbers[:, j] for i, j in pairs]))
            tested = zip(*scores.test(scale), terms, strict=True)
            yield from (Misfit(p_value, effect, action, numbers=term) for p_value, effect, term in tested)
            total = total.add(scores)
    if total.rows:
        tested = zip(*total.test(scale), terms, strict=True)
        yield from (Misfit(p_value, effect, numbers=term) for p_value, effect, term in tested)


def score_deciles(signal: Signal, scale: float) -> Iterator[Misfit]:
    """Yield the tests of one half of the rows, by decile of the predictions from the other half."""
    half = signal.profile.half
    predictions = signal.predict(half, ~half)
    predicted = np.isfinite(predictions)
    if predicted.sum() < 10 * DECILES:
        return
    member = np.zeros((predictions.size, DECILES))
    member[predicted, assign_deciles(predictions[predicted])] = 1.0
    total = Scores.none(DECILES)
    for _, of_action in signal.profile.by_action:
        rows = np.flatnonzero(predicted & of_action)
        if rows.size:
            total = total.add(compute_scores(signal, rows, member[rows]))
    tested = zip(*total.test(scale), range(1, DECILES + 1), strict=True)
    yield from (Misfit(p_value, effect, decile=decile) for p_value, effect, decile in tested)


class Scores(NamedTuple):
    """Scores of columns g orthogonal to means of the form: Σ g y, a bound on its variance, Σ g² and max |g|."""

    sums: Floats
    variances: Floats
    squares: Floats
    largest: Floats
    rows: int

    @classmethod
    def none(cls, columns: int) -> "Scores":
        zeros = np.zeros(columns)
        return cls(zeros, zeros, zeros, zeros, 0)

    def add(self, other: "Scores") -> "Scores":
        sums, variances, squares = (mine + theirs for mine, theirs in zip(self[:3], other[:3], strict=True))
        return Scores(sums, variances, squares, np.maximum(self.largest, other.largest), self.rows + other.rows)

    def test(self, scale: float) -> tuple[list[float], list[float]]:
        """Return the p-value of every sum, and its effect relative to the mean."""
        p_values = bennett_bound(self.sums, self.variances, self.largest)
        effects = np.abs(self.sums) / np.maximum(np.sqrt(self.squares * self.rows), 1e-12) / scale
        return p_values.tolist(), effects.tolist()


def compute_scores(signal: Signal, rows: Ints, columns: Floats) -> Scores:
    """Return the scores of rows of one action, with columns made orthogonal to the constant and the numbers."""
    design, outcomes = signal.profile.design[rows], signal.scaled[rows]
    means = signal.compute_means(rows, signal.fit(rows))
    weights = means * (1.0 - means) if signal.model == "logistic" else np.ones(rows.size)
    weighted = design * weights[:, np.newaxis]
    residuals = columns - design @ np.linalg.lstsq(weighted.T @ design, weighted.T @ columns, rcond=None)[0]
    squared = residuals**2
    linear = squared.sum(axis=0) <= 1e-9 * np.maximum((columns**2).sum(axis=0), 1e-300)
    residuals[:, linear], squared[:, linear] = 0.0, 0.0
    noise = np.clip(means, 0.0, 1.0) * (1.0 - np.clip(means, 0.0, 1.0))
    variances = np.maximum(noise @ squared, (outcomes - means) ** 2 @ squared)
    largest, sums = np.sqrt(squared.max(axis=0)), (outcomes - means) @ residuals
    if signal.model == "logistic":  # ½ Σ |g| p (1 − p) xᵀH⁻¹x
        errors = np.einsum("ij,ji->i", weighted, np.linalg.pinv(weighted.T @ design) @ design.T)
        sums = np.sign(sums) * np.maximum(np.abs(sums) - 0.5 * errors @ np.abs(residuals), 0.0)
    return Scores(sums, variances, squared.sum(axis=0), largest, rows.size)


@dataclass(frozen=True)
class RateDependence:
    """How a rate depends on a number about users, as the details of a finding; the p-value accounts for all tests."""

    p_value: float
    name: str
    action: str | None  # None: all actions
    number: str
    low: float  # the mean in the lower half of the number, or in its middle
    high: float  # the mean in the upper half of the number, or at its ends
    at_ends: bool

    @property
    def message(self) -> str:
        """How the rate depends on the number, as a sentence."""
        return FORMATTER.make_text("{dependence}", asdict(self))


def check_rate_signal(signal: Signal, alpha: float) -> Iterator[Finding]:
    """Find out whether a signal that is declared to be one rate per action depends on a number about users.

    If it is not certain at alpha, but a proposal would make the limit linear, it is a note.
    """
    dependence, relative_effect = measure_rate_dependence(signal)
    if dependence is None:
        return
    if dependence.p_value <= alpha:
        certain = relative_effect >= MIN_RELATIVE_EFFECT
        code = FindingCode.RATE_DEPENDS_ON_NUMBER if certain else FindingCode.RATE_SLIGHTLY_DEPENDS_ON_NUMBER
        yield Finding.of(code, **asdict(dependence))
    elif signal.index:
        level = get_selection_level(signal.profile)
        in_selection = dependence.p_value > level
        if in_selection:
            dependence, _ = measure_rate_dependence(signal.profile.selection_half.get_signal(signal.index))
        if dependence is not None and dependence.p_value <= level:
            yield Finding.of(FindingCode.RATE_MAY_DEPEND_ON_NUMBER, **asdict(dependence), in_selection=in_selection)


def get_selection_level(profile: LogProfile) -> float:
    """Return the p-value at which a proposal takes a limit to depend on a number."""
    return 0.5 * SELECTION_LEVEL / max(len(profile.costs), 1)


def measure_rate_dependence(signal: Signal) -> tuple[RateDependence | None, float]:
    """Return how a signal depends on the number with the smallest p-value, and how much relative to its mean.

    None: there are no rows.
    """
    profile, numbers, observed = signal.profile, list(signal.profile.log.problem.numbers), signal.observed
    p_values: dict[tuple[int, int], float] = {}  # by number, and by action, or −1 for all and −2 for its ends
    for index, ranks in enumerate(profile.ranks):
        tested = [(-1, ranks, observed), (-2, np.abs(ranks - 0.5), observed)]
        tested += [(action, ranks, observed & rows) for action, (_, rows) in enumerate(profile.by_action)]
        for where, values, rows in tested:
            if rows.any():
                shift = measure_shift(values[rows], signal.events[rows], signal.cells[rows])
                p_values[index, where] = shift.p_value
    if not p_values:
        return None, 0.0
    (index, where), p_value = min(p_values.items(), key=lambda one: one[1])
    action, chosen = profile.by_action[where] if where >= 0 else (None, observed)
    upper = np.abs(profile.ranks[index] - 0.5) > 0.25 if where == -2 else profile.ranks[index] > 0.5
    low, high, effect = signal.compute_change(chosen & ~upper, chosen & upper)
    p_value = min(p_value * len(p_values), 1.0)
    return RateDependence(p_value, signal.name, action, numbers[index], low, high, where == -2), effect


def check_norm_bound(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find linear signals with an action whose parameter is certainly longer than `norm_bound`."""
    norm_bound = float(profile.log.problem.settings.get("norm_bound", 1.0))
    for signal, action, norm in estimate_norms(profile, alpha):
        if norm.low > norm_bound:
            details = {"name": signal, "action": action, "low": norm.low, "high": norm.high, "norm_bound": norm_bound}
            yield Finding.of(FindingCode.PARAMETER_TOO_LONG, **details)
    yield Finding.of(FindingCode.PARAMETERS_WITHIN_BOUND, norm_bound=norm_bound)


class ParameterNorm(NamedTuple):
    """The norm of a parameter: the fit, a lower bound, and an upper bound rounded up to a half."""

    fit: float
    low: float
    high: float


def estimate_norms(profile: LogProfile, p_value: float) -> Iterator[tuple[str, str, ParameterNorm]]:
    """Yield the norm of every linear signal's parameter by action; all bounds hold with probability 1 − p_value."""
    linear = [signal for signal in profile.signals if signal.model == "linear"]
    log_level = math.log(2.0 * max(len(linear), 1) * len(profile.by_action) / p_value)
    for signal in linear:
        for action, of_action in profile.by_action:
            norm = estimate_norm(signal, signal.get_fit_rows(of_action), log_level)
            if norm is not None:
                yield signal.name, action, norm


def estimate_norm(signal: Signal, rows: Ints, log_level: float) -> ParameterNorm | None:
    """Return the norm of the parameter of some rows, with error probability 2 exp(−log_level); None: not identified.

    With noise of ½, ‖θ̂ − θ‖² ≤ ¼ (tr + 2 √(t tr²) + 2 λ t) with probability 1 − e⁻ᵗ, where tr, tr² and λ are those
    of the rows' inverse matrix (Hsu, Kakade and Zhang 2012). For every θ, ‖θ‖ ‖x̄‖ is at least the mean outcome.
    """
    if not rows.size:
        return None
    design = signal.profile.design[rows]
    centre = float(np.linalg.norm(design.mean(axis=0)))
    mean = KL_INTERVAL(float(rows.size), float(signal.scaled[rows].mean()), log_level).low / centre
    values = np.linalg.eigvalsh(design.T @ design)
    if values[0] <= 1e-9 * values[-1]:  # collinear numbers do not identify a parameter
        return None
    inverse = 1.0 / values
    error = 0.25 * (
        inverse.sum() + 2.0 * math.sqrt(log_level * float(inverse @ inverse)) + 2.0 * inverse[0] * log_level
    )
    norm = float(np.linalg.norm(signal.fit(rows)))
    return ParameterNorm(norm, max(norm - math.sqrt(error), mean), math.ceil(2.0 * (norm + math.sqrt(error))) / 2.0)


def check_features(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find numbers that have no visible effect on any linear signal; each number makes all bounds wider."""
    names, numbers = list(profile.log.problem.numbers), profile.log.numbers.T
    by_user = [signal for signal in profile.signals if signal.is_per_user]
    if not names or not by_user:
        yield Finding.of(FindingCode.NO_LINEAR_SIGNAL)
        return
    constant = [name for name, column in zip(names, numbers, strict=True) if np.unique(column).size < 2]
    if constant:
        yield Finding.of(FindingCode.FEATURES_CONSTANT, names=constant)
        return
    ranked = zip(names, profile.ranks, strict=True)
    idle: list[Any] = [name for name, ranks in ranked if not any(has_effect(ranks, signal) for signal in by_user)]
    if idle:
        signals = [signal.name for signal in by_user]
        yield Finding.of(FindingCode.FEATURES_WITHOUT_EFFECT, names=idle, signals=signals)
    yield Finding.of(FindingCode.FEATURES_MATTER, names=names)


def has_effect(ranks: Floats, signal: Signal) -> bool:
    """Say whether a number has a visible effect on a signal, by Σ z² over actions, a χ² statistic."""
    total, degrees = 0.0, 0
    for _, of_action in signal.profile.by_action:
        rows = signal.observed & of_action
        if not rows.any():
            continue
        chosen, events = ranks[rows], signal.events[rows]
        hits, count = float(events.sum()), events.size
        variance = float(chosen.var()) * hits * (count - hits) / max(count - 1, 1)
        if variance > 0.0:
            total += float((chosen - chosen.mean())[events].sum()) ** 2 / variance
            degrees += 1
    return bool(degrees and chdtrc(degrees, total) <= EFFECT_LEVEL)
