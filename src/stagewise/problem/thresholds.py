"""Limits on the expected costs of every round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.problem.checks import (
    Floats,
    check_length,
    check_mapping,
    check_number,
    check_outcome,
    copy_read_only,
    is_listing,
    list_entries,
    order_by_name,
)
from stagewise.problem.columns import get_named_values
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import join_names
from stagewise.problem.safe_action import SafeAction

# Relative safety margin below a threshold, against rounding.
MARGIN = 1e-14
MOVING_REASON = "which differs by round and has only a cost bound; give the threshold as a number"


@dataclass(frozen=True)
class TimesSafe:
    """A threshold as a multiple of the safe action's cost.

    Example:
        >>> resolve_thresholds(TimesSafe(1.1), SafeAction(arm=0, cost=0.2)).values.round(6)  # at most 10 % above
        array([0.22])
    """

    factor: float
    """The multiple of the safe action's cost, which must be known."""


@dataclass(frozen=True)
class AtLeast:
    """A lower limit: the expected value must not fall below it.

    Example:
        >>> resolve_thresholds({"clicks": AtLeast(0.1)}, SafeAction(arm=0, cost=0.3)).signs
        array([-1.])
    """

    value: float | TimesSafe
    """The limit, or `TimesSafe(…)`."""


OneThreshold = float | TimesSafe | AtLeast
Threshold = OneThreshold | Sequence[OneThreshold] | Mapping[str, OneThreshold] | Floats  # one, several, or by name


class ThresholdParts(NamedTuple):
    """The parts of a threshold: its side, its number, and whether it is relative to the safe action."""

    at_least: bool
    relative: bool
    number: Any  # as it was given

    @property
    def sign(self) -> float:
        """+1 for at most, −1 for at least."""
        return -1.0 if self.at_least else 1.0

    def with_number(self, number: Any) -> OneThreshold:
        """Return a threshold of the same kind with another number."""
        value = TimesSafe(number) if self.relative else number
        return AtLeast(value) if self.at_least else value


def parse_threshold(threshold: Any) -> ThresholdParts:
    """Return the parts of one threshold, unchecked.

    >>> parse_threshold(0.02).number, parse_threshold(AtLeast(TimesSafe(0.9)))
    (0.02, ThresholdParts(at_least=True, relative=True, number=0.9))
    """
    at_least = isinstance(threshold, AtLeast)
    value = threshold.value if at_least else threshold
    relative = isinstance(value, TimesSafe)
    return ThresholdParts(at_least, relative, value.factor if relative else value)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The constraints, resolved: names, directions, limits in the user's units, and the safe action's costs."""

    names: tuple[str, ...]
    signs: Floats  # (m,) +1 for at most, −1 for at least
    values: Floats  # (m,)
    safe: Floats | None  # (m,) the safe action's costs; None: at least one is unknown
    declared_safe: Floats  # (m,) the same, NaN where unknown

    bound_name: ClassVar[str] = "mean_cost_bound"  # the setting that bounds mean costs

    @property
    def promises(self) -> tuple[str, ...]:
        """To whom each limit is promised, in words; empty: it is not said."""
        return ()

    @property
    def limits(self) -> Floats:
        """The signed limits of kernels, with a margin for rounding."""
        scale = np.abs(self.values) if self.safe is None else np.maximum(np.abs(self.values), np.abs(self.safe))
        return self.signs * self.values - MARGIN * scale

    @property
    def at_safe(self) -> Floats:
        """The safe action's costs; its limits where they are unknown."""
        return self.values if self.safe is None else self.safe

    @property
    def signed_safe(self) -> Floats | None:
        """The safe action's costs, signed so that less is better; None: at least one is unknown."""
        return None if self.safe is None else self.signs * self.safe

    @cached_property
    def _all_at_most(self) -> bool:
        return bool(np.all(self.signs > 0.0))

    def to_user_units(self, signed: Floats) -> Floats:
        """Return signed costs in the user's direction."""
        return signed if self._all_at_most else self.signs * signed

    def to_user_unit(self, constraint: int, signed: float) -> float:
        """Return one signed cost in the user's direction."""
        return float(self.signs[constraint]) * signed

    def costs(self, value: Any, error: type[StagewiseError] = InvalidOutcome, what: str = "the cost") -> Floats:
        """Return one finite cost per constraint, from a number, a sequence or a mapping by name."""
        by_name = get_named_values(value, what, error)
        if by_name is not None:
            value = order_by_name(by_name, self.names, what, error)
        entries = list_entries(value, what, error) if is_listing(value) else [value]
        if len(entries) != len(self.names):
            rule = f"one number for each of {join_names(self.names)}"
            raise error.must_be(ErrorCode.WRONG_SHAPE, what, value, rule)
        return np.array([check_outcome(e, f"{what} of {n!r}", error) for e, n in zip(entries, self.names, strict=True)])


NO_THRESHOLDS = Thresholds((), np.empty(0), np.empty(0), np.empty(0), np.empty(0))


def resolve_thresholds(threshold: Any, safe_action: SafeAction) -> Thresholds:
    """Return the constraints of a `threshold` and a safe action.

    >>> resolve_thresholds({"opt_out": 0.02, "clicks": AtLeast(0.1)}, SafeAction(arm=0, cost=[0.01, 0.2])).signs
    array([ 1., -1.])
    """
    entries, names = list_thresholds(threshold)
    parts = [parse_threshold(entry) for entry in entries]
    costs = get_safe_costs(safe_action, names)
    safe = None if np.isnan(costs).any() else costs
    signs = np.array([entry.sign for entry in parts])
    rows = zip(parts, names, costs.tolist(), strict=True)
    values = np.array([resolve_value(entry, name, cost, safe_action.is_per_round) for entry, name, cost in rows])
    safe = None if safe is None else copy_read_only(safe)
    thresholds = Thresholds(names, copy_read_only(signs), copy_read_only(values), safe, copy_read_only(costs))
    for name, sign, cost, value, limit in zip(names, signs, costs, values, thresholds.limits, strict=True):
        if sign * cost >= limit:
            raise slack_error(f"the safe action's {name!r}", cost, sign > 0.0, f"its threshold, {float(value)}")
    return thresholds


def slack_error(
    what: str, cost: float, at_most: bool, limit: str, error: type[StagewiseError] = InvalidProblem
) -> StagewiseError:
    """Return the error of a safe action that does not keep strictly within a limit."""
    rule = f"strictly {'below' if at_most else 'above'} {limit}, since learning needs slack"
    return error.must_be(ErrorCode.SAFE_ACTION_OVER_LIMIT, what, cost, rule)


def get_safe_costs(safe_action: SafeAction, names: tuple[str, ...]) -> Floats:
    """Return the safe action's costs, NaN where unknown."""
    cost, what = safe_action.cost, "the safe action's cost"
    entries = order_by_name(check_mapping(cost, what), names, what) if isinstance(cost, Mapping) else cost
    listing = list_entries(entries, what) if is_listing(entries) else [entries] * (len(names) if entries is None else 1)
    if safe_action.is_origin:
        listing = [0.0 if entry is None else entry for entry in listing]
    check_length(listing, names, what)
    named = zip(listing, names, strict=True)
    costs = np.array([np.nan if e is None else check_number(e, f"{what} of {n!r}") for e, n in named])
    if safe_action.is_origin and np.any(costs):
        rule = "0 at the zero vector, as all linear costs are; add a constant feature, or subtract the cost there"
        raise InvalidProblem.must_be(ErrorCode.SAFE_ACTION_INVALID, what, costs.tolist(), rule)
    return costs


def resolve_value(entry: ThresholdParts, name: str, cost: float, moving: bool) -> float:
    """Return one threshold as a number; `cost` is the safe action's, NaN where it is unknown."""
    if not entry.relative:
        return check_number(entry.number, f"the threshold of {name!r}")
    factor = check_number(entry.number, f"the factor of {name!r} relative to the safe action")
    if np.isnan(cost) or moving:
        reason = "whose cost is unknown; give that cost" if np.isnan(cost) else MOVING_REASON
        template = "the threshold of {name!r} is relative to the safe action, {reason}"
        raise InvalidProblem(ErrorCode.SAFE_COST_UNKNOWN, template, name=name, reason=reason)
    return check_number(factor * cost, f"the threshold of {name!r}, {factor:g} times the safe action's,")


def list_thresholds(threshold: Any) -> tuple[list[Any], tuple[str, ...]]:
    if isinstance(threshold, Mapping):
        threshold = check_mapping(threshold, "threshold")
        for name in threshold:
            if not isinstance(name, str):
                raise InvalidProblem.must_be(ErrorCode.INVALID_NAME, "a name in threshold", name, "a string")
        entries, names = list(threshold.values()), tuple(threshold)
    elif isinstance(threshold, str | bytes):
        rule = "a number, or one for each constraint, with two percent written as 0.02"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "threshold", threshold, rule)
    else:
        entries = list_entries(threshold, "threshold") if is_listing(threshold) else [threshold]
        names = build_default_names(len(entries))
    if threshold is None or not entries:
        rule = "the limit on every round's expected cost, or at least one"
        raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, "threshold", threshold, rule)
    return entries, names


def build_default_names(count: int) -> tuple[str, ...]:
    """Return the default names of constraints.

    >>> build_default_names(1), build_default_names(2)
    (('cost',), ('cost 1', 'cost 2'))
    """
    return ("cost",) if count == 1 else tuple(f"cost {i}" for i in range(1, count + 1))
