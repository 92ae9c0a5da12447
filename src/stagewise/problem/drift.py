"""How far a mean may move with time: a slope, a budget, or jumps that are found."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from stagewise.problem.checks import check_bool, check_number, is_listing
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.window import UNITS, parse_seconds

JUMPS = "jumps"
DAY = UNITS["d"]
LONGEST = 3.0 * DAY  # step of the grid, so that changes are found soon where means hardly move
STEPS = 48  # of the grid of epochs, in the time in which a mean may move by its limit
EXPECTED = "'0.005/30d' (a slope), ('0.01', '30d') (a budget in any window of that length) or 'jumps'"


class Drift(NamedTuple):
    """A declared modulus: within a time a the mean moves by at most ω(a).

    Attributes:
        amount: By how much the mean moves, in the units of the outcomes; 0: it is constant between jumps.
        seconds: In how long.
        is_budget: Whether the amount may be moved at once, anywhere in a window of that length.
    """

    amount: float
    seconds: float
    is_budget: bool = False

    @property
    def slope(self) -> float:
        """ρ, per second."""
        return self.amount / self.seconds

    @property
    def budget(self) -> float:
        """B, which the mean may move by at once."""
        return self.amount if self.is_budget else 0.0

    def scaled(self, length: float) -> "Drift":
        """Return the drift of outcomes that are divided by the length of their range."""
        return self._replace(amount=self.amount / length)

    def compute_step(self, ceiling: float) -> float:
        """Return the step of the grid of epochs, in seconds; `ceiling` is the limit, above the lowest outcome."""
        return DAY if self.amount == 0.0 else min(max(ceiling, 1e-6) / self.slope / STEPS, LONGEST)

    def compute_least_bound(self, rate: float, per_second: float, lag: float, confidence: float) -> float:
        """Return about the least upper bound that can ever be had of a mean, in the units of the drift.

            p + ρ w + B + (3/2)(2 p ℓ ρ/r)^{1/3}        (docs/theory/drift.md, Feasibility)

        `per_second` is r, the plays per second; `lag` is w, the age at which outcomes are learned; `confidence` is ℓ.
        """
        slowest = float((2.0 * max(rate, 1e-6) * confidence * self.slope / per_second) ** (1.0 / 3.0))
        return rate + self.budget + self.slope * lag + 1.5 * slowest

    def to_settings(self, column: int, ceiling: float, noise: float = 0.0) -> list[float]:
        """Return the numbers that `models.epochs` reads; `column` holds the time; no noise: bounded outcomes."""
        step = self.compute_step(ceiling)
        window = self.seconds / step if self.is_budget else 0.0
        return [float(column), step, self.slope * step, self.budget, window, noise]

    def __str__(self) -> str:
        if self.amount == 0.0:
            return "means jump, and the jumps are found"
        days = f"{self.seconds / DAY:g} day" + "s" * (self.seconds != DAY)
        return f"the mean moves by at most {self.amount:g} " + (f"in any {days}" if self.is_budget else f"per {days}")


def can_drift(model: str | None, has_modulus: bool, has_noise: bool = False) -> bool:
    """Return whether the drift of a model is bounded: of rates any, of others a slope or a budget."""
    return (has_modulus or not has_noise) if model in (None, "rates") else model == "linear" and has_modulus


def normalise_drift(value: Any) -> Any:
    """Return a declared drift as it is kept: lists as tuples."""
    return tuple(value) if is_listing(value) else value


def parse_drift(value: Any, what: str) -> Drift | None:
    """Return a declared drift; None: means are constant.

    >>> parse_drift("0.005/30d", "the limit")
    Drift(amount=0.005, seconds=2592000.0, is_budget=False)
    >>> str(parse_drift(("0.01", "30d"), "the limit"))
    'the mean moves by at most 0.01 in any 30 days'
    """
    if value is None:
        return None
    subject = f"the drift of {what}"
    if isinstance(value, str):
        if value.strip() == JUMPS:
            return Drift(0.0, DAY)
        amount, slash, length = value.partition("/")
        if not slash:
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)
        return build_drift(amount, length, subject, value, is_budget=False)
    if isinstance(value, Sequence) and len(value) == 2:
        return build_drift(value[0], value[1], subject, value, is_budget=True)
    raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)


def parse_stored_drift(value: Any, what: str) -> Drift | None:
    """Return a declared drift, or the three numbers of one, as files hold it."""
    if not (is_listing(value) and len(value) == 3):
        return parse_drift(value, what)
    amount, seconds = (check_number(number, f"the drift of {what}") for number in value[:2])
    is_budget = check_bool(bool(value[2]) if value[2] in (0, 1) else value[2], f"the drift of {what}")
    if not (amount >= 0.0 and seconds > 0.0):
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the drift of {what}", value, "positive")
    return Drift(float(amount), float(seconds), is_budget)


def build_drift(amount: Any, length: Any, subject: str, value: Any, is_budget: bool) -> Drift | None:
    """Return a drift from its two parts; None: an amount of 0."""
    if isinstance(amount, str):
        if re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)(e-?\d+)?\s*", amount) is None:
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)
        amount = float(amount)
    number = check_number(amount, subject)
    if not number >= 0.0:
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, subject, value, "not negative")
    seconds = parse_seconds(length)
    return Drift(float(number), seconds, is_budget) if number > 0.0 else None
