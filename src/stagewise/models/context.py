"""Signals of actions in a context: linear or logistic per action, or rates by action and segment."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.models.drifting_rates import JUMPING_RATES, MOVING_RATES
from stagewise.models.drifting_ridge import DRIFTING_RIDGE
from stagewise.models.drifting_scores import JUMPING_SCORES, MOVING_SCORES
from stagewise.models.epochs import CELL_SIZE as EPOCH_CELL_SIZE
from stagewise.models.epochs import HEADER_SIZE, SLOPE
from stagewise.models.epochs import NOISE as NOISE_AT
from stagewise.models.forgetting import CELL_SIZE as FORGETTING_CELL_SIZE
from stagewise.models.forgetting import FORGETTING_RATES, FORGETTING_RIDGE
from stagewise.models.logistic import LOGISTIC
from stagewise.models.logistic_fit import PRIOR_BOUND, PRIOR_DEVIATION
from stagewise.models.model_block import ModelBlockSpec
from stagewise.models.noisy_rates import HEADER_SIZE as NOISY_HEADER_SIZE
from stagewise.models.noisy_rates import NOISY_MOVING_RATES, NOISY_RATES
from stagewise.models.per_action_events import PER_ACTION_EVENTS
from stagewise.models.per_action_ridge import PER_ACTION_RIDGE
from stagewise.models.rare_events import TABLE
from stagewise.models.regression import JOINT
from stagewise.models.score_rates import SCORE_RATES
from stagewise.models.segment_rates import CELL_SIZE, SEGMENT_RATES, count_runs

SignalModel = Literal["linear", "rates"]
CostModel = Literal["linear", "rates", "logistic"]
NOISE = 0.5  # of numbers in a range of length 1
SMALLEST_RATE = 1e-6  # smallest prior rate
RESERVED = 0.1  # of δ, for actions that come later
UNUSED = 0.05  # of the upper ends of initial actions, for a safe action whose cost is declared
COUNT_RUNS = as_python(count_runs)


class Buckets(NamedTuple):
    """The buckets of a score by which rates are kept."""

    size: int
    pooled: bool = True  # means do not fall from bucket to bucket
    version: int = 1  # of the score: a new version has new cells

    @property
    def share(self) -> float:
        """The share of δ of the cells of this version.

        >>> [Buckets(10, version=version).share for version in (1, 2, 3)]
        [0.9, 0.05, 0.016666666666666666]
        """
        return 1.0 - RESERVED if self.version == 1 else RESERVED / (self.version * (self.version - 1))


class Signal(NamedTuple):
    """The assumptions about one signal, whose outcomes lie in [low, low + 1]."""

    signal: int  # 0: the reward
    low: float
    lower: float  # log 1/δ of the lower ends of all its actions together, and of all its segments
    upper: float  # the same of the upper ends
    declared: float  # bound of the safe action: largest cost, least reward; ±∞: none
    prior: float  # prior rate of a linear or logistic cost, above `low`: its limit
    forgetting: Sequence[float] = ()  # the column of the time and the half-life, where it is forgotten

    def linear(
        self, size: int, shares: Floats, ridge: float, bound: float, drift: Sequence[float] = ()
    ) -> ModelBlockSpec:
        """Return regressions on n features, one for each action; `shares` are the actions' shares of δ.

        `drift` is empty where means are constant, or what `models.drifting_ridge` reads.
        """
        both = -math.log(math.exp(-self.lower) + math.exp(-self.upper))  # an ellipsoid has both ends
        rows = [[ridge, 1.0, 0.0, NOISE, bound, both - math.log(share), 0.0] for share in shares]
        last = np.array([*self.forgetting, *drift])
        numbers = np.concatenate([*rows, [self.low, self.low + 1.0, self.declared], last])
        model = DRIFTING_RIDGE if len(drift) else FORGETTING_RIDGE if self.forgetting else PER_ACTION_RIDGE
        return ModelBlockSpec(model, (self.signal, 1, size, JOINT, 0, 0, shares.size, 0), numbers)

    def events(self, size: int, shares: Floats, bound: float) -> ModelBlockSpec:
        """Return rare costs that are linear in n features, with a set for each action."""
        both = -math.log(math.exp(-self.lower) + math.exp(-self.upper))  # one set has both ends
        guess = min(max(self.prior, SMALLEST_RATE), 0.5)
        rows = [[bound, both - math.log(share), guess, 1.0, 0.0] for share in shares]
        numbers = np.concatenate([*rows, [self.low, self.declared]])
        return ModelBlockSpec(PER_ACTION_EVENTS, (self.signal, 1, size, TABLE, 0, 0, shares.size, 0), numbers)

    def logistic(self, size: int, shares: Floats, slope_scale: float) -> ModelBlockSpec:
        """Return logistic signals on n features, one for each action; the prior of the intercept is at the limit."""
        both = -math.log(math.exp(-self.lower) + math.exp(-self.upper))  # one set has both ends
        rate = min(max(self.prior, SMALLEST_RATE), 1.0 - SMALLEST_RATE)
        prior = [math.log(rate / (1.0 - rate)), 1.0 / PRIOR_DEVIATION**2, 1.0 / slope_scale**2, PRIOR_BOUND]
        numbers = np.concatenate([[self.low, self.declared, both], prior, -np.log(shares)])
        return ModelBlockSpec(LOGISTIC, (self.signal, 1, size, 0, 0, 0, shares.size, 0), numbers)

    def rates(
        self, column: int, shares: Floats, uppers: Floats, drift: Sequence[float] = (), buckets: Buckets | None = None,
        noise: float = 0.0,
    ) -> ModelBlockSpec:  # fmt: skip
        """Return rates, by the segment or the bucket in a column of the rows; −1: by action alone.

        `uppers` are the shares of upper ends. `drift` is empty where means are constant, or what `models.epochs` reads;
        0 is the noise of bounded outcomes.
        """
        drift = [0.0] * NOISE_AT + [noise] if noise > 0.0 and not len(drift) else drift
        spent = -np.log(np.concatenate([shares, uppers]) * (1.0 if buckets is None else buckets.share))
        numbers = np.concatenate([[self.low, self.declared, self.lower, self.upper], spent, np.array(drift)])
        if self.forgetting:
            numbers = np.concatenate([numbers, np.array(self.forgetting)])
            integers = self.signal, 1, shares.size, FORGETTING_CELL_SIZE, 1, 0, column, 0
            return ModelBlockSpec(FORGETTING_RATES, integers, numbers)
        if noise > 0.0 and not drift[SLOPE] > 0.0:
            integers = self.signal, 1, shares.size, CELL_SIZE, NOISY_HEADER_SIZE, 0, column, 0
            return ModelBlockSpec(NOISY_RATES, integers, numbers)
        pooled, count = (0, 0) if buckets is None else (int(buckets.pooled), buckets.size)
        if not len(drift):
            integers = self.signal, 1, shares.size, CELL_SIZE, 1, pooled, column, count
            return ModelBlockSpec(SCORE_RATES if count else SEGMENT_RATES, integers, numbers)
        integers = self.signal, 1, shares.size, EPOCH_CELL_SIZE, 1 + HEADER_SIZE, pooled, column, count
        if drift[SLOPE] > 0.0:
            moving = NOISY_MOVING_RATES if noise > 0.0 else MOVING_RATES
            return ModelBlockSpec(MOVING_SCORES if count else moving, integers, numbers)
        if column >= 0:
            numbers[2] += math.log(2.0)  # the other half is that of the test of all segments together
        if pooled:
            numbers[2:4] += math.log(count / COUNT_RUNS(count))  # only single buckets are used, so they have all
        return ModelBlockSpec(JUMPING_SCORES if count else JUMPING_RATES, integers, numbers)


def compute_action_shares(actions: int, initial_actions: int) -> Floats:
    """Return each action's share of δ: initial actions share alike, later ones share what was reserved.

    >>> compute_action_shares(3, 2).round(4)
    array([0.45, 0.45, 0.05])
    """
    later = np.arange(1.0, actions - initial_actions + 1.0)
    return np.concatenate(
        [np.full(initial_actions, (1.0 - RESERVED) / initial_actions), RESERVED / (later * (later + 1.0))]
    )


def compute_upper_shares(shares: Floats, initial_actions: int, safe_index: int) -> Floats:
    """Return the shares of upper ends where the safe action's cost is declared: it has little, as its end is not used.

    Its end is used only after data have contradicted the declaration and a person has acknowledged that.

    >>> compute_upper_shares(compute_action_shares(3, 2), 2, 0).round(3)
    array([0.045, 0.855, 0.05 ])
    """
    uppers, others = shares.copy(), initial_actions - 1
    if others > 0 and safe_index < initial_actions:
        uppers[:initial_actions] = (1.0 - UNUSED) * (1.0 - RESERVED) / others
        uppers[safe_index] = UNUSED * (1.0 - RESERVED)
    return uppers
