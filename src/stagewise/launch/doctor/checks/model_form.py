"""Check `model_form`: every signal has its declared form, linear in the numbers or one rate per action.

Linear. Let g be a column that is not part of a linear mean: a product of numbers, or membership in a decile of the
predictions from the other half. Made orthogonal to the constant and the numbers, by action, Σ g y contains no part of
any linear mean, whatever its parameter; the rest is noise in [−1, 1], which Bennett's inequality bounds. No error of a
fit enters.

Rates. Within an action (and a segment) outcomes are exchangeable, whoever the users are (`permutation_tests.py`).
"""

from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.calibration import GROUP_COUNT, assign_deciles
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode, describe_dependence
from stagewise.launch.doctor.linear_fits import LinearFits
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import bennett_bound, measure_shift

MIN_RELATIVE_EFFECT = 0.05  # of the mean; a smaller effect is a note
SELECTION_LEVEL = 0.05  # probability that a proposal relies on an effect that does not exist
MAX_PRODUCT_NUMBERS = 12  # with more numbers only squares are tested, not products


class Misfit(NamedTuple):
    """A test of a linear mean: of a product of two numbers, or of a decile of the predictions."""

    p_value: float
    relative_effect: float  # of the mean
    action: str | None  # None: all actions
    numbers: tuple[str, str] | None
    decile: int | None


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find signals that do not have their declared form."""
    problem, findings = profile.log.problem, []
    if not problem.context:
        return Finding.of(FindingCode.NO_NUMBERS)
    for signal, name in enumerate(profile.names):
        share = alpha / len(profile.names)
        linear = problem.choices[name].model == "linear"
        findings += (
            check_linear_signal(profile, signal, name, share)
            if linear
            else check_rate_signal(profile, signal, name, share)
        )
    return select_most_severe(findings, Finding.of(FindingCode.FORM_AGREES))


def check_linear_signal(profile: LogProfile, signal: int, name: str, alpha: float) -> list[Finding]:
    """Return a finding if a signal that is declared linear is not."""
    fits = LinearFits(profile, signal)
    outcomes = fits.outcomes[fits.rows]
    if not outcomes.size:
        return []
    mean = float(outcomes.mean())
    scale = max(min(mean, 1.0 - mean), 1e-12)
    misfits = [*score_products(fits, scale), *score_deciles(fits, scale)]
    if not misfits:
        return []
    worst = min(misfits, key=lambda misfit: misfit.p_value)
    if worst.p_value * len(misfits) > alpha:
        return []
    certain = worst.relative_effect >= MIN_RELATIVE_EFFECT
    return [
        Finding.of(
            FindingCode.NOT_LINEAR if certain else FindingCode.SLIGHTLY_NOT_LINEAR,
            name=name,
            action=worst.action,
            numbers=None if worst.numbers is None else list(worst.numbers),
            decile=worst.decile,
            effect=worst.relative_effect,
        )
    ]


def score_products(fits: LinearFits, scale: float) -> list[Misfit]:
    """Return the tests of squares and products of numbers, by action and in all actions together."""
    names, misfits = list(fits.profile.log.problem.context), []
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    pairs = pairs if len(names) <= MAX_PRODUCT_NUMBERS else [(i, i) for i in range(len(names))]
    terms = [(names[i], names[j]) for i, j in pairs]
    all_rows, count, total = np.ones(fits.profile.log.rows, dtype=bool), 0, Scores.none(len(pairs))
    for action, name in enumerate(fits.profile.log.problem.actions):
        rows = fits.get_rows(action, all_rows)
        if rows.size:
            numbers = fits.scaled[rows]
            scores = compute_scores(fits, rows, np.column_stack([numbers[:, i] * numbers[:, j] for i, j in pairs]))
            tested = zip(*score_misfits(scores, rows.size, scale), terms, strict=True)
            misfits += [Misfit(p_value, effect, name, term, None) for p_value, effect, term in tested]
            total, count = total.add(scores), count + rows.size
    if count:
        tested = zip(*score_misfits(total, count, scale), terms, strict=True)
        misfits += [Misfit(p_value, effect, None, term, None) for p_value, effect, term in tested]
    return misfits


def score_deciles(fits: LinearFits, scale: float) -> list[Misfit]:
    """Return the tests of one half of the rows, by decile of the predictions from the other half."""
    half, log = fits.profile.half, fits.profile.log
    predictions = fits.predict(half, ~half)
    rows = np.flatnonzero(np.isfinite(predictions))
    if rows.size < 10 * GROUP_COUNT:
        return []
    member = np.zeros((log.rows, GROUP_COUNT))
    member[rows, assign_deciles(predictions[rows])] = 1.0
    total = Scores.none(GROUP_COUNT)
    for action in range(len(log.problem.actions)):
        chosen = rows[log.actions[rows] == action]
        if chosen.size:
            total = total.add(compute_scores(fits, chosen, member[chosen]))
    tested = zip(*score_misfits(total, rows.size, scale), range(1, GROUP_COUNT + 1), strict=True)
    return [Misfit(p_value, effect, None, None, decile) for p_value, effect, decile in tested]


def score_misfits(scores: "Scores", count: int, scale: float) -> tuple[list[float], list[float]]:
    """Return the p-value of every sum, and its effect relative to the mean."""
    p_values = bennett_bound(scores.sums, scores.variances, scores.largest)
    effects = np.abs(scores.sums) / np.maximum(np.sqrt(scores.squares * count), 1e-12) / scale
    return p_values.tolist(), effects.tolist()


class Scores(NamedTuple):
    """Scores of columns g that are orthogonal to all linear means: Σ g y, a bound on its variance, Σ g² and max |g|."""

    sums: Floats
    variances: Floats
    squares: Floats
    largest: Floats

    @classmethod
    def none(cls, columns: int) -> "Scores":
        """Return the scores of no rows."""
        return cls(*np.zeros((4, columns)))

    def add(self, other: "Scores") -> "Scores":
        """Return the scores of these rows and others."""
        sums, variances, squares = (mine + theirs for mine, theirs in zip(self[:3], other[:3], strict=True))
        return Scores(sums, variances, squares, np.maximum(self.largest, other.largest))


def compute_scores(fits: LinearFits, rows: Ints, columns: Floats) -> Scores:
    """Return the scores of rows of one action, with columns made orthogonal to the constant and the numbers."""
    design, outcomes = fits.design[rows], fits.outcomes[rows]
    gram = design.T @ design
    residuals = columns - design @ np.linalg.lstsq(gram, design.T @ columns, rcond=None)[0]
    squared = residuals**2
    linear = squared.sum(axis=0) <= 1e-9 * np.maximum((columns**2).sum(axis=0), 1e-300)
    residuals[:, linear], squared[:, linear] = 0.0, 0.0
    means = design @ np.linalg.lstsq(gram, design.T @ outcomes, rcond=None)[0]
    noise = np.clip(means, 0.0, 1.0) * (1.0 - np.clip(means, 0.0, 1.0))
    variances = np.maximum(noise @ squared, (outcomes - means) ** 2 @ squared)
    return Scores(outcomes @ residuals, variances, squared.sum(axis=0), np.sqrt(squared.max(axis=0)))


class RateDependence(NamedTuple):
    """How a rate depends on a number about users; the p-value accounts for all tests."""

    p_value: float
    relative_effect: float  # of the mean
    name: str
    action: str | None  # None: all actions
    number: str
    low: float
    """The mean in the lower half of the number, or in its middle."""
    high: float
    """The mean in the upper half of the number, or at its ends."""
    at_ends: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the details of a finding."""
        return {name: value for name, value in self._asdict().items() if name != "relative_effect"}

    @property
    def message(self) -> str:
        """How the rate depends on the number, as a sentence."""
        return describe_dependence(self.to_dict())


def check_rate_signal(profile: LogProfile, signal: int, name: str, alpha: float) -> list[Finding]:
    """Return a finding if a signal that is declared to be one rate per action depends on a number about users.

    If it is not certain at alpha, but a proposal would make the limit linear, it is a note.
    """
    dependence = measure_rate_dependence(profile, signal)
    if dependence is None:
        return []
    if dependence.p_value <= alpha:
        certain = dependence.relative_effect >= MIN_RELATIVE_EFFECT
        code = FindingCode.RATE_DEPENDS_ON_NUMBER if certain else FindingCode.RATE_SLIGHTLY_DEPENDS_ON_NUMBER
        return [Finding.of(code, **dependence.to_dict())]
    if not signal:
        return []
    in_selection = dependence.p_value > get_selection_level(profile)
    if in_selection:
        dependence = measure_rate_dependence(profile.selection_half, signal)
    if dependence is None or dependence.p_value > get_selection_level(profile):
        return []
    return [Finding.of(FindingCode.RATE_MAY_DEPEND_ON_NUMBER, **dependence.to_dict(), in_selection=in_selection)]


def get_selection_level(profile: LogProfile) -> float:
    """Return the p-value at which a proposal takes a limit to depend on a number."""
    return 0.5 * SELECTION_LEVEL / max(len(profile.names) - 1, 1)


def measure_rate_dependence(profile: LogProfile, signal: int) -> RateDependence | None:
    """Return how a signal depends on the number with the smallest p-value; None: there are no rows."""
    name, rows, marked, cells = (
        profile.names[signal],
        profile.observed(signal),
        find_events(profile, signal),
        profile.cells(signal),
    )
    numbers, actions = list(profile.log.problem.context), profile.log.actions
    p_values: dict[tuple[int, int], float] = {}  # by number, and by action, or −1 for all and −2 for its ends
    for index, ranks in enumerate(profile.ranks):
        p_values[index, -1] = measure_shift(ranks[rows], marked[rows], cells[rows]).p_value
        p_values[index, -2] = measure_shift(np.abs(ranks[rows] - 0.5), marked[rows], cells[rows]).p_value
        for action in range(len(profile.log.problem.actions)):
            chosen = rows & (actions == action)
            if chosen.any():
                p_values[index, action] = measure_shift(ranks[chosen], marked[chosen], cells[chosen]).p_value
    if not p_values or not rows.any():
        return None
    (index, where), p_value = min(p_values.items(), key=lambda one: one[1])
    chosen = rows & (actions == where) if where >= 0 else rows
    upper = np.abs(profile.ranks[index] - 0.5) > 0.25 if where == -2 else profile.ranks[index] > 0.5
    _, low, _ = profile.rate(signal, chosen & ~upper, 0.5)
    _, high, _ = profile.rate(signal, chosen & upper, 0.5)
    least = profile.ends(signal)[0]
    effect = abs(high - low) / max(min(abs(high - least), abs(low - least)), 1e-12)
    action_name = profile.log.problem.actions[where] if where >= 0 else None
    return RateDependence(
        min(p_value * len(p_values), 1.0), effect, name, action_name, numbers[index], low, high, where == -2
    )
