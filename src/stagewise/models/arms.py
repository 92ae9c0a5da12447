"""Arms: the mean of every arm's outcomes, with a confidence interval around it.

    memory:   a table of rows, K numbers each: pulls | centres | halves | means, k rows each;
              then the pulls of all arms, and for each signal the summed squares of all deviations (1 + k,)
    settings: log 1/δ', blind | R | lowest value | known at the safe arm, all (k,);
              and for RATES: log 1/δ' of the lower end | of the upper end, all (k,)

RATES keeps the tightest ends so far. If they have crossed, the half-width is below 0: either the means have changed, or
an interval has failed, which has probability at most δ. The larger end is then used (see `fill_arm_bounds`).

To add an interval, add a number here, a branch in `compute_interval` and a name in `ArmRadius`. A number without a
branch gives the interval of all possible values.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    SAFE_INDEX,
    ModelBlock,
    get_model_block,
    get_posterior_scale,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model
from stagewise.engine.random import POSTERIOR, fill_normal
from stagewise.engine.workspace import (
    ALARM,
    CENTRE,
    HALF,
    NOISE,
    SAFE_COST,
    SAMPLED,
    clip_to_bounds,
    encode_contradiction,
    get_limit,
)
from stagewise.models.diagnostics import (
    LEAST_RATIO,
    Evidence,
    Marks,
    MeanChange,
    ModelDiagnostics,
    Sums,
    UpperForecast,
    compute_least_noise,
    compute_max_deviation,
    compute_max_squares,
    split_at_marks,
)
from stagewise.models.intervals import (
    LOG_WEIGHTS,
    LOWER_ETAS,
    UPPER_ETAS,
    Interval,
    compute_average_interval,
    compute_kl_interval,
    draw_rate,
    log_likelihood,
    log_mixture,
)
from stagewise.models.model_block import ModelBlockSpec, build_known_values, split_regressions
from stagewise.models.rate_changes import RATE_MARKS, find_shifts

ANYTIME, UNION, UNION_ANYTIME, KL, RATES = 0, 1, 2, 3, 4


@kernel
def is_ranged(kind: int) -> bool:
    """Return whether an interval is for outcomes in [low, low + 1]; the others are for noise of a known scale."""
    return kind in (KL, RATES)


@kernel
def unit_radius(kind: int, pulls: float, confidence: float) -> float:
    """Return the radius of the mean of n 1-sub-Gaussian numbers; `confidence` is log 1/δ'. Zero pulls count as one.

    ANYTIME:        √((1 + 1/n) (log(1 + n) + 2 log 1/δ') / n)        all n at once, two-sided (Robbins' normal mixture)
    UNION:          √(2 log(1/δ') / n)                                δ' already divided by the horizon
    UNION_ANYTIME:  √(2 log(n (n + 1)/δ') / n)                        Σ 1/n(n+1) = 1
    """
    n = max(pulls, 1.0)
    if kind == ANYTIME:
        return math.sqrt((1.0 + 1.0 / n) * (math.log1p(n) + 2.0 * confidence) / n)
    if kind == UNION:
        return math.sqrt(2.0 * confidence / n)
    if kind == UNION_ANYTIME:
        return math.sqrt(2.0 * (math.log(n * (n + 1.0)) + confidence) / n)
    return math.inf


@kernel
def compute_interval(kind: int, pulls: float, mean: float, low: float, confidence: float) -> Interval:
    """Return the interval of the mean of numbers in [low, low + 1] after n pulls, by KL."""
    within = Interval(0.0, 1.0)
    if kind == KL:
        within = compute_kl_interval(pulls, mean - low, confidence)
    return Interval(low + within.low, low + within.high)


class ArmTable(NamedTuple):
    """The state of a block's K arms, as views of the memory."""

    table: Floats  # (1 + 3k, K) pulls | centres | halves | means, row after row
    deviation_sums: Floats  # (1 + k,) the pulls of all arms, and the summed squares of every signal


class ArmsAssumptions(NamedTuple):
    """The assumptions about k signals."""

    noise: Floats  # R
    low: Floats  # the lowest value, where a range is declared
    known: Floats  # at the safe arm
    lower: Floats  # for RATES: log 1/δ' of the lower end
    upper: Floats  # log 1/δ' of the upper end


@kernel
def get_arm_table(block: ModelBlock, memory: Floats) -> ArmTable:
    """Return the state of a block's arms."""
    rows = 1 + 3 * block.signals
    at = block.memory + rows * block.size
    return ArmTable(memory[block.memory : at], memory[at : at + 1 + block.signals])


class KeptIntervals(NamedTuple):
    """The intervals that a block keeps of its arms."""

    rows: Floats  # (2k, K) centres | halves


@kernel
def get_kept_intervals(block: ModelBlock, memory: Floats) -> KeptIntervals:
    """Return the intervals that a block keeps, as a view of the memory."""
    return KeptIntervals(get_arm_table(block, memory).table[block.size : (1 + 2 * block.signals) * block.size])


class PullSummary(NamedTuple):
    """Statistics of one signal: over all arms, and of one arm."""

    pulls: float  # of all arms
    squares: float  # summed squared deviations of all arms
    at_arm: float  # pulls of the one arm
    mean: float  # mean of the one arm


@kernel
def get_pull_summary(block: ModelBlock, memory: Floats, arm: int, signal: int) -> PullSummary:
    """Return the statistics of a signal over all arms and of one arm."""
    table, deviation_sums = get_arm_table(block, memory).table, get_arm_table(block, memory).deviation_sums
    return PullSummary(
        deviation_sums[0],
        deviation_sums[1 + signal],
        table[arm],
        table[(1 + 2 * block.signals + signal) * block.size + arm],
    )


class ArmMeans(NamedTuple):
    """The number of pulls and the mean outcomes of every arm."""

    pulls: Floats  # (K,)
    means: Floats  # (k, K)


@kernel
def get_arm_means(block: ModelBlock, memory: Floats) -> ArmMeans:
    """Return the pulls and the means of every arm, as views of the memory."""
    table, k, count = get_arm_table(block, memory).table, block.signals, block.size
    return ArmMeans(table[:count], table[(1 + 2 * k) * count : (1 + 3 * k) * count].reshape(k, count))


@kernel
def get_arms_assumptions(block: ModelBlock, settings: Floats) -> ArmsAssumptions:
    """Return the assumptions about a block's signals, as views of the settings."""
    at, k = block.settings + 2, block.signals
    ends = at + 3 * k
    extra = k if block.radius == RATES else 0
    return ArmsAssumptions(
        settings[at : at + k],
        settings[at + k : at + 2 * k],
        settings[at + 2 * k : ends],
        settings[ends : ends + extra],
        settings[ends + extra : ends + 2 * extra],
    )


@kernel
def get_confidence(block: ModelBlock, settings: Floats) -> float:
    """Return log 1/δ' of one interval."""
    return settings[block.settings]


@kernel
def start_arms(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write the state without data: an interval of half-width `blind`, the a-priori bound, or the whole range."""
    table, declared, k = get_arm_table(block, memory).table, get_arms_assumptions(block, settings), block.signals
    confidence, blind = settings[block.settings], settings[block.settings + 1]
    for signal in range(k):
        centre, half = 0.0, max(declared.noise[signal] * unit_radius(block.radius, 0.0, confidence), blind)
        if is_ranged(block.radius):
            centre, half = declared.low[signal] + 0.5, 0.5
        centres, halves = (1 + signal) * block.size, (1 + k + signal) * block.size
        for arm in range(block.size):
            table[centres + arm], table[halves + arm] = centre, half


@kernel
def learn_arm(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    values: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (k,) of one pull; a negative index is the safe arm."""
    kept, declared, k = get_arm_table(block, memory), get_arms_assumptions(block, settings), block.signals
    arm = index if index >= 0 else layout[SAFE_INDEX]
    table, deviation_sums = kept.table, kept.deviation_sums
    table[arm] += 1.0
    deviation_sums[0] += 1.0
    pulls, stride = table[arm], k * block.size  # length of the rows of one kind
    wide = unit_radius(block.radius, pulls, settings[block.settings])
    for signal in range(k):
        centre = (1 + signal) * block.size + arm  # half-width and mean follow at distances of one stride
        before = table[centre + 2 * stride]
        mean = before + (values[signal] - before) / pulls
        deviation_sums[1 + signal] += (values[signal] - before) * (values[signal] - mean)
        table[centre + 2 * stride] = mean
        noise, low = declared.noise[signal], declared.low[signal]
        if not is_ranged(block.radius):
            table[centre] = mean
            table[centre + stride] = noise * wide
        elif block.radius == RATES:
            tighten_arm(block, arm, signal, settings, memory)
        else:
            ends = compute_interval(block.radius, pulls, mean, low, settings[block.settings])
            table[centre] = 0.5 * (ends.low + ends.high)
            table[centre + stride] = 0.5 * (ends.high - ends.low)


@kernel
def tighten_arm(block: ModelBlock, arm: int, signal: int, settings: Floats, memory: Floats) -> None:
    """Tighten the ends of an arm's interval by the interval of its pulls, for RATES."""
    table, declared = get_arm_table(block, memory).table, get_arms_assumptions(block, settings)
    stride = block.signals * block.size
    at, low = (1 + signal) * block.size + arm, declared.low[signal]
    mean = table[at + 2 * stride] - low
    ends = compute_average_interval(table[arm], mean, declared.lower[signal], declared.upper[signal])
    least = max(table[at] - table[at + stride], low + ends.low)
    most = min(table[at] + table[at + stride], low + ends.high)
    table[at], table[at + stride] = 0.5 * (least + most), 0.5 * (most - least)


@kernel
def fill_arm_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every arm, and of the safe arm; a known value has no width.

    With RATES the safe arm is known where it is listed too, so its ends take no share of δ.
    """
    table, declared, k = get_arm_table(block, memory).table, get_arms_assumptions(block, settings), block.signals
    last = block.size
    for signal in range(k):
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        at, other = (1 + signal) * last, (1 + k + signal) * last
        centres, halves = table[at : at + last], table[other : other + last]
        for arm in range(last):
            centre[arm] = centres[arm]
            half[arm] = abs(halves[arm])
        safe_index = layout[SAFE_INDEX]
        if block.anchored == 1 or safe_index < 0:
            centre[last], half[last] = declared.known[signal], 0.0
            if block.radius == RATES and safe_index >= 0:
                centre[safe_index], half[safe_index] = centre[last], 0.0
        else:
            centre[last], half[last] = centre[safe_index], half[safe_index]


@kernel
def check_arms(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of the first contradicted noise, or value at the safe arm, of a cost; 0: none."""
    deviation_sums, declared = get_arm_table(block, memory).deviation_sums, get_arms_assumptions(block, settings)
    alarm = settings[ALARM]
    for signal in range(block.signals):
        if block.first + signal == 0:
            continue  # a reward has no limit
        noise = declared.noise[signal]
        is_suspicious = (
            not is_ranged(block.radius) and deviation_sums[1 + signal] > LEAST_RATIO * deviation_sums[0] * noise * noise
        )
        if is_suspicious and deviation_sums[1 + signal] > compute_max_squares(deviation_sums[0], alarm) * noise * noise:
            return encode_contradiction(NOISE, block.first + signal - 1)
        if block.anchored == 1 and exceeds_known_mean(layout[SAFE_INDEX], block, settings, memory, signal):
            return encode_contradiction(SAFE_COST, block.first + signal - 1)
    return 0


@kernel
def exceeds_known_mean(arm: int, block: ModelBlock, settings: Floats, memory: Floats, signal: int) -> bool:
    """Return whether the pulls of an arm show that its mean is above the known one, by the radius' kind of interval.

    For "kl": where log mixture − log likelihood(known) > log 1/a. A signal that is at least 0 and has a known mean of 0
    is always 0, so one larger outcome is enough.
    """
    table, declared, k = get_arm_table(block, memory).table, get_arms_assumptions(block, settings), block.signals
    alarm = settings[ALARM]
    pulls, mean = table[arm], table[(1 + 2 * k + signal) * block.size + arm]
    noise, low, known = declared.noise[signal], declared.low[signal], declared.known[signal]
    if not mean > known:
        return False
    if not is_ranged(block.radius):
        return pulls * (mean - known) > compute_max_deviation(pulls, noise, alarm)
    if alarm == math.inf:
        return False
    if not known > low:
        return True
    ones = pulls * min(mean - low, 1.0)
    return log_mixture(ones, pulls - ones) - log_likelihood(known - low, ones, pulls - ones) > alarm


@kernel
def sample_arms(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every arm's mean, and of the safe arm's, given its n pulls.

    N(mean, ν² R²/n), or `draw_rate` for outcomes in a range of length 1. The prior mean of a cost is its limit, so an
    arm with few pulls is neither excluded nor free.
    """
    table, declared, k = get_arm_table(block, memory).table, get_arms_assumptions(block, settings), block.signals
    count = block.size
    for signal in range(k):
        at = block.first + signal
        drawn, centre, half = bounds[at, SAMPLED], bounds[at, CENTRE], bounds[at, HALF]
        means, noise, low = (1 + 2 * k + signal) * count, declared.noise[signal], declared.low[signal]
        fill_normal(drawn[:count], seed, run, round_, POSTERIOR + int(at))
        prior = 0.5 if at == 0 else min(max(get_limit(layout, settings, at - 1) - low, 1e-6), 0.5)
        for arm in range(count):
            pulls, mean = table[arm], table[means + arm]
            deviate = get_posterior_scale(settings) * drawn[arm]
            if is_ranged(block.radius):
                drawn[arm] = low + draw_rate(pulls * (mean - low), pulls, prior, deviate)
            elif pulls > 0.0:
                drawn[arm] = mean + deviate * noise / math.sqrt(pulls)
            else:
                drawn[arm] = centre[arm] + deviate * half[arm]
        safe_index = layout[SAFE_INDEX]
        drawn[count] = centre[count] if half[count] == 0.0 or safe_index < 0 else drawn[safe_index]
    clip_to_bounds(block, bounds)


GET_ARM_MEANS, GET_PULL_SUMMARY = as_python(get_arm_means), as_python(get_pull_summary)
GET_ASSUMPTIONS, EXCEEDS_KNOWN_MEAN = as_python(get_arms_assumptions), as_python(exceeds_known_mean)
INTERVAL, RADIUS, GET_CONFIDENCE = as_python(compute_interval), as_python(unit_radius), as_python(get_confidence)


class ArmsDiagnostics(ModelDiagnostics):
    """Diagnostics of an arm model."""

    checks_safe_value = True
    kept_marks, per_doubling = RATE_MARKS

    def tests_noise(self, block: ModelBlock) -> bool:
        return not is_ranged(block.radius)

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        summary = GET_PULL_SUMMARY(block, memory, int(layout[SAFE_INDEX]), signal)
        noise = GET_ASSUMPTIONS(block, settings).noise[signal]
        least = compute_least_noise(summary.squares, summary.pulls, settings[ALARM])
        return Evidence(float(summary.pulls), float(noise), least, float(summary.at_arm), float(summary.mean))

    def contradicts_safe_value(
        self,
        block: ModelBlock,
        layout: Ints,
        settings: Floats,
        memory: Floats,
        signal: int,
        observed: Evidence,
        known: float,
    ) -> bool:
        return bool(EXCEEDS_KNOWN_MEAN(int(layout[SAFE_INDEX]), block, settings, memory, signal))

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        observed = GET_ARM_MEANS(block, memory)
        return {
            f"pulls {key}": observed.pulls.copy(),
            f"totals {key}": observed.pulls * observed.means,
            f"outcomes {key}": np.array(observed.pulls.sum()),
        }

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        declared = GET_ASSUMPTIONS(block, settings)
        for signal in range(block.signals):
            if is_ranged(block.radius):
                yield from find_ranged_changes(block, float(declared.low[signal]), marks, key, signal, alarms)
                continue
            for early, late, alarm in split_at_marks(marks, alarms):
                fields = block, float(declared.noise[signal]), early, late, key, signal, alarm
                yield from find_noisy_changes(*fields)

    def forecast(
        self, block: ModelBlock, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        pulled, declared = GET_ARM_MEANS(block, memory), GET_ASSUMPTIONS(block, settings)
        confidence = GET_CONFIDENCE(block, settings)
        mean, low, noise = float(pulled.means[signal, arm]), float(declared.low[signal]), float(declared.noise[signal])

        def upper(count: float) -> float:
            if is_ranged(block.radius):
                return float(INTERVAL(block.radius, count, mean, low, confidence).high)
            return mean + noise * float(RADIUS(block.radius, count, confidence))

        return UpperForecast(0, float(pulled.pulls[arm]), mean, upper)


def find_ranged_changes(
    block: ModelBlock, low: float, marks: Marks, key: str, signal: int, alarms: Sequence[float]
) -> Iterator[MeanChange]:
    """Yield the arm whose mean of numbers in [low, low + 1] changed, or all arms, mark by mark."""
    pulls = [sums[f"pulls {key}"] for sums in marks]
    totals = [sums[f"totals {key}"][signal] - low * sums[f"pulls {key}"] for sums in marks]
    for found in find_shifts(pulls, totals, block.size, False, alarms):
        arm = found.cells[0] if len(found.cells) == 1 else -1
        fields = found.early, found.late, (low + found.before, low + found.after), arm
        yield MeanChange(signal, *fields, cells=len(found.cells), word="arm", unit="pull")


def find_noisy_changes(
    block: ModelBlock, noise: float, early: Sums, late: Sums, key: str, signal: int, alarm: float
) -> Iterator[MeanChange]:
    """Yield the arms whose earlier and later intervals, given the noise, are disjoint."""
    first, second, confidence = early[f"pulls {key}"], late[f"pulls {key}"], alarm + math.log(2.0 * block.size)
    for arm in np.flatnonzero((first > 0.0) & (second > 0.0)).tolist():
        n, m = float(first[arm]), float(second[arm])
        means = float(early[f"totals {key}"][signal, arm]) / n, float(late[f"totals {key}"][signal, arm]) / m
        if abs(means[0] - means[1]) > compute_mean_radius(n, noise, confidence) + compute_mean_radius(
            m, noise, confidence
        ):
            yield MeanChange(signal, n, m, means, arm, word="arm", unit="pull")


def compute_mean_radius(count: float, noise: float, confidence: float) -> float:
    """Return the radius of the mean of n R-sub-Gaussian numbers, for all n at once (docs/theory/arms.md)."""
    return noise * math.sqrt((1.0 + 1.0 / count) * (math.log1p(count) + 2.0 * confidence) / count)


def arms_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector((1 + 3 * block.signals) * block.size + 1 + block.signals))


ARMS = Model(
    "stagewise.models.arms:ARMS", get_model_block, arms_size, start_arms, fill_arm_bounds, check_arms, learn_arm,
    None, None, sample_arms, counts=get_arm_means, diagnostics=ArmsDiagnostics(), between=0,
)  # fmt: skip
RANGED = {"kl": KL, "rates": RATES}  # radii for outcomes in [0, 1]
ArmInterval = Literal["hoeffding", "kl", "rates", "paper"]
INTERVAL_KINDS = get_args(ArmInterval)
AVERAGE_ETAS = LOWER_ETAS, UPPER_ETAS
UPPER_SHARE = 0.8  # of δ, for RATES: share of the costs' upper ends, which safety needs; the rest is for the other ends


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsModel:
    """The assumptions about K arms. The first signal is the reward."""

    arms: int
    signals: int  # 1 + m
    noise: Floats  # (1 + m,) R; not read where a range is declared
    lows: Floats  # (1 + m,) where every signal's range begins, where one is declared
    kind: int
    confidence: float  # log 1/δ' of one interval
    blind: float  # the least radius of an arm without pulls
    reward: float | None  # at the safe arm; None: unknown
    costs: Floats | None  # (m,) at the safe arm; None: unknown
    ends: Floats | None = None  # for RATES (2, 1 + m): log 1/δ' of lower and of upper ends
    separate_models: bool = False  # whether every signal has a block of its own

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the blocks: one, or one each for reward and costs if only one of them is known at the safe arm."""
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in split_regressions(self.signals, *known, self.separate_models):
            yield self.build_block(first, last, anchored)

    def build_block(self, first: int, last: int, known: bool) -> ModelBlockSpec:
        """Return the intervals of signals `first` to `last`."""
        values = build_known_values(self.reward, self.costs, self.signals)
        ends = () if self.ends is None else tuple(self.ends)
        rows = (self.noise, self.lows, values if known else np.zeros(values.size), *ends)
        numbers = np.concatenate([[self.confidence, self.blind], *(row[first:last] for row in rows)])
        return ModelBlockSpec(ARMS, (first, last - first, self.arms, self.kind, int(known), 0, 0, 0), numbers)

    def longest_halves(self, count: int) -> Floats:
        """Return the largest half-width that an interval can have after 0, 1, …, count − 1 pulls."""
        pulls = np.maximum(np.arange(count, dtype=np.float64), 1.0)
        if self.kind == KL:  # Pinsker, and the redundancy of the mixture: ½ log n + log 2
            halves = np.sqrt((self.confidence + 0.5 * np.log(pulls) + math.log(2.0)) / (2.0 * pulls))
            return np.minimum(halves, 0.5)
        if self.kind == RATES:
            return np.minimum(sum(compute_term_widths(pulls, etas, self.confidence) for etas in AVERAGE_ETAS) / 2, 0.5)
        halves = float(self.noise.max()) * np.array([unit_radius(self.kind, n, self.confidence) for n in pulls])
        halves[0] = max(halves[0], self.blind)
        return halves


def compute_term_widths(pulls: Floats, etas: tuple[float, ...], confidence: float) -> Floats:
    """Return an upper bound on the distance of an end of RATES from the mean: min_j (log 1/w_jδ')/n η_j + η_j/8.

    Hoeffding's lemma gives log(1 − κp) ≤ −ηp + η²/8 and log(1 + κ'p) ≤ ηp + η²/8 for each term alone.
    """
    widths = [
        (confidence - log_weight) / (pulls * eta) + eta / 8.0 for eta, log_weight in zip(etas, LOG_WEIGHTS, strict=True)
    ]
    return np.min(widths, axis=0)


def get_interval_kind(interval: str, horizon: int | None) -> int:
    """Return the kind of interval, which is valid for all numbers of pulls at once."""
    if interval in RANGED:
        return RANGED[interval]
    if horizon is not None:
        return UNION
    return UNION_ANYTIME if interval == "paper" else ANYTIME


def compute_confidence(kind: int, delta: float, arms: int, signals: int, horizon: int | None) -> float:
    """Return log 1/δ' such that all intervals together fail with probability at most δ.

    δ' = δ/(2(m+1)KT) with a horizon, because a union bound counts each side and each number of pulls; δ' = δ/(2(m+1)K)
    where Σ 1/n(n+1) covers the numbers of pulls; δ/((m+1)K) for the others, which are two-sided.
    """
    share = delta / (arms * signals)
    if kind == UNION:
        return math.log(2.0 * float(horizon or 1) / share)
    return math.log(2.0 / share) if kind == UNION_ANYTIME else math.log(1.0 / share)


def split_delta(costs: int) -> tuple[float, float]:
    """Return the share of δ of each cost's upper ends, and of each signal's other ends, for RATES."""
    upper = UPPER_SHARE if costs > 0 else 0.0
    return upper / max(costs, 1), (1.0 - upper) / (costs + 2)


def build_rate_ends(delta: float, costs: int, arms: Floats) -> Floats:
    """Return the settings of RATES for every signal: log 1/δ' of lower and of upper ends.

    δ is shared by the costs, and a signal's ends share theirs among its `arms` (1 + m,).
    """
    upper, other = split_delta(costs)
    shares = np.array([np.full(arms.size, other), [other, *np.full(arms.size - 1, upper)]])
    return np.log(np.maximum(arms, 1.0) / (delta * shares))


def compute_lows(signs: Any) -> Floats:
    """Return where the range [0, 1] of every signal begins once it is signed: −1 for a limit from below."""
    return np.concatenate([[0.0], np.where(np.asarray(signs) < 0.0, -1.0, 0.0)])
